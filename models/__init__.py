"""Who answers and who embeds."""
