"""`mneme share`."""
