"""Episodes of household tasks."""
