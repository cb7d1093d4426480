"""Household tasks: MiTa beside its baselines and ablations."""
