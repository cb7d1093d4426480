"""Knowledge cards of a team."""
