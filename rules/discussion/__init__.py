"""How rules discuss a design."""

from mneme.rules.discussion import (
    answer_from_context,
    design_judge,
    document,
    intrinsic_memory,
    judging_rivals,
    template_making,
)

__all__ = [
    "answer_from_context",
    "design_judge",
    "document",
    "intrinsic_memory",
    "judging_rivals",
    "template_making",
]
