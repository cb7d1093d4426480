"""Learning of knowledge cards, retrieval from very many of them, and the check against poisoned ones."""

from pathlib import Path

DATA = Path(__file__).parent / "data"
