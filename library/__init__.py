"""Teams, agents, rubrics and examples that come with Mneme, and their readers."""

from pathlib import Path

PAIRS = Path(__file__).parent / "pairs"
"""Prompt-answer pairs of the nine agents, a JSON Lines file each."""
EXAMPLES = Path(__file__).parent / "examples"
