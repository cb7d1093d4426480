"""Trials and insights that memories of a team's tasks keep."""
