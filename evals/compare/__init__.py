"""Comparison of memories: every memory on the same tasks, with the same budget, in one table."""
