"""Worlds of files that a command checks: tests, a benchmark, an output; a solution changes a copy of them."""
