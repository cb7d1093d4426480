"""What is remembered of each user."""
