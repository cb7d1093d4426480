"""Rules that solve planning problems."""

from mneme.rules.pddl import pddl_team

__all__ = ["pddl_team"]
