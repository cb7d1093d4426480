"""The command line and what every layer shares: errors and settings."""
