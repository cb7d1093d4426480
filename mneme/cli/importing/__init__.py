"""`mneme import …`."""
