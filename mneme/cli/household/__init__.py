"""`mneme household`."""
