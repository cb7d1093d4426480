"""Say for which roles a responder is fit, from what came of the golden cases.

A role's figures are over all cases of all its questions; questions without a rule do not count for `rules`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from mneme.evals.prompts.asking import Outcome
from mneme.evals.prompts.roles import Role
from mneme.evals.scoring import share
from mneme.prompts.every import Key

USABLE, RIGHT, RIGHT_OF_EACH = 0.9, 0.8, 0.6
THRESHOLD = (
    f"Fit: at least {USABLE:.0%} of the answers usable, {RIGHT:.0%} right, and of each question by itself "
    f"{RIGHT_OF_EACH:.0%} right (plain shares)."
)


class Figures(BaseModel):
    """What came of some cases; tokens and seconds are per case, every attempt included."""

    cases: int
    first: int
    repaired: int
    refused: int
    right: dict[str, Any]
    """With the share's 95 % Wilson interval."""
    injected: dict[str, Any]
    """The same of the cases with orders hidden in the data."""
    tokens: float
    seconds: float


def figures_of(outcomes: Sequence[Outcome]) -> Figures:
    """Sum up what came of some cases; questions without a rule do not count."""
    asked = [each for each in outcomes if each.is_asked]
    injected = [each for each in asked if each.kind == "injected"]
    came, count = Counter(each.came for each in asked), max(1, len(asked))
    return Figures(
        cases=len(asked),
        **{name: came[name] for name in ("first", "repaired", "refused")},
        right=share(sum(each.is_right for each in asked), len(asked)),
        injected=share(sum(each.is_right for each in injected), len(injected)),
        tokens=sum(each.prompt_tokens + each.reply_tokens for each in asked) / count,
        seconds=sum(each.seconds for each in asked) / count,
    )


def why_not(role: Role, found: Mapping[Key, Figures]) -> str | None:
    """Return why a model is not fit for a role: empty where it is, None where not all was asked.

    `found` has the figures of every question that was asked.
    """
    if any(key not in found for key in role.questions):
        return None
    questions = {key[1]: found[key] for key in role.questions}
    cases = sum(each.cases for each in questions.values())
    usable = sum(each.first + each.repaired for each in questions.values())
    right = sum(each.right["right"] for each in questions.values())
    reasons = []
    if usable < USABLE * cases:
        reasons.append(f"{usable} of {cases} usable")
    if right < RIGHT * cases:
        reasons.append(f"{right} of {cases} right")
    weak = [
        f"{name} {each.right['right']} of {each.cases} right"
        for name, each in questions.items()
        if each.right["right"] < RIGHT_OF_EACH * each.cases
    ]
    return "; ".join([*reasons, *(weak if len(questions) > 1 else ())])
