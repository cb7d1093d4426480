"""Rules that answer the questions of `prompts/learning/`."""

from mneme.rules.learning import compound_learning, dispute_resolution

__all__ = ["compound_learning", "dispute_resolution"]
