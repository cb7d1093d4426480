"""Servers that tests and latency runs talk to in place of real ones."""
