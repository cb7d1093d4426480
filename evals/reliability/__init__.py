"""Evaluations of what faults, kills and other users do to what is kept."""
