"""`mneme pddl`."""
