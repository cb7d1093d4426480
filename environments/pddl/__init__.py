"""PDDL tasks: typed STRIPS worlds with observations and actions as sentences."""

from mneme.environments.pddl.generating import DOMAINS, SIZES, Domain, example_of, generate, generate_suite
from mneme.environments.pddl.loading import load, load_folder, load_one
from mneme.environments.pddl.world import MAX_STEPS, PddlWorld, Problem, StepResult

__all__ = [
    "DOMAINS",
    "MAX_STEPS",
    "SIZES",
    "Domain",
    "PddlWorld",
    "Problem",
    "StepResult",
    "example_of",
    "generate",
    "generate_suite",
    "load",
    "load_folder",
    "load_one",
]
