"""Errors and settings, used by every other package."""
