"""`mneme learn`, `mneme cards` and `mneme disputes`."""
