"""How rules answer the questions of `prompts/discussion/judging_rivals.py`: they count, and judge nothing."""

import json
from typing import Any

from mneme.prompts.discussion.design_judge import Design
from mneme.prompts.discussion.document import UNSAID
from mneme.prompts.discussion.judging_rivals import (
    PRINTED,
    Pair,
    Preference,
    PrintedJudgement,
    compare_designs,
    judge_as_printed,
)
from mneme.rules.discussion.design_judge import judge_design
from mneme.rules.registry import rule


@rule(judge_as_printed)
def printed(given: Design) -> PrintedJudgement:
    """Give the counts of the other judge for the five metrics."""
    return PrintedJudgement.model_validate(judge_design(given).model_dump(include={*PRINTED}))


@rule(compare_designs)
def compare(given: Pair) -> Preference:
    """Prefer the design with more parts that say something; of as many, neither."""
    first, second = _said(given.first), _said(given.second)
    reason = (
        f"Counted by rules, not judged: {first} parts of the first say something, {second} of the second."
    )
    better = "first" if first > second else "second" if second > first else "neither"
    return Preference(reason=reason, better=better)


def _said(design: str) -> int:
    try:
        return _parts(json.loads(design))
    except ValueError:
        return len(set(design.split("\n")) - {""})


def _parts(value: Any) -> int:
    if isinstance(value, dict):
        return sum(map(_parts, value.values()))
    return int(value not in ("", UNSAID, None))
