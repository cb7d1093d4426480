"""PDDL tasks: typed STRIPS worlds described in sentences and acted in by sentences."""

from environments.pddl.compiling import Compiled, Literal, Schema, compile_problem
from environments.pddl.generating import DOMAINS, SHARES, SIZES, Domain, generate, generate_suite
from environments.pddl.loading import load, load_folder, load_one
from environments.pddl.world import STEPS, Observed, PddlWorld, Problem

__all__ = [
    "DOMAINS",
    "SHARES",
    "SIZES",
    "STEPS",
    "Compiled",
    "Domain",
    "Literal",
    "Observed",
    "PddlWorld",
    "Problem",
    "Schema",
    "compile_problem",
    "generate",
    "generate_suite",
    "load",
    "load_folder",
    "load_one",
]
