"""Bringing in what other programs keep."""
