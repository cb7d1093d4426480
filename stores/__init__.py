"""What is remembered: the ledger and the typed stores on it."""
