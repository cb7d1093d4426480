"""`mneme prompts …`."""
