"""The command line's threads."""
