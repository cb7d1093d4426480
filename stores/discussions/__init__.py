"""Discussions and the memories of their agents."""
