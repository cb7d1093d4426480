"""Nodes of a team that solves planning problems."""
