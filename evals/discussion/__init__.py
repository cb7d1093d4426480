"""Discussions of a design task, with and without structured memories."""
