"""Nodes of a discussion in which each agent has a memory of its own."""
