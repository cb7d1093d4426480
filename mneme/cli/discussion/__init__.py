"""`mneme discuss`."""
