"""Bring in what other programs keep of a user: a reader for each source, and two ways to write."""
