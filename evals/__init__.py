"""One module per result table."""
