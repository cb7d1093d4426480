"""What the rules know: how a plan is read, and which untried remedy shares words with a query's features."""

import re
from collections.abc import Iterator, Sequence

from pydantic import BaseModel

from mneme.prompts.learning.trials import Measurement, about

CLEARLY = 10.0
"""A draft with a weakness in its plan passes where it makes the query an order of magnitude faster."""


class Symptom(BaseModel):
    evidence: str
    blocking: bool
    remedy: str = ""
    assumed: bool = False


def claim(condition: str, pattern: str, noun: str) -> str:
    """Say a lesson in one sentence, the same for the same lesson."""
    return f"{about(condition, noun)}, {_verb(pattern)} {pattern}"


def in_vain(condition: str, noun: str) -> str:
    """Say which tasks a card of dead ends is about; the approaches themselves stand beside it."""
    return f"{about(condition, noun)}, what was tried in vain"


def _verb(pattern: str) -> str:
    return "build" if "INDEX" in pattern.partition("(")[0] else "the remedy is"


def symptoms(  # noqa: PLR0913, PLR0917  (all that the devil's advocate looks at)
    features: str,
    pattern: str,
    trial: Measurement,
    tried: Sequence[str],
    remedies: Sequence[str],
    proven: bool,
) -> Iterator[Symptom]:
    """Yield what is wrong with a tried draft, worst first; each with an untried remedy.

    A weakness in the plan of a draft that solves its task does not block what a card has proven before.
    """
    untried = [each for each in remedies if each not in (*tried, pattern)]
    remedy = max(untried, key=lambda each: len(_stems(each) & _stems(features)), default="")
    if trial.problem:
        yield Symptom(evidence=f"The trial says: {trial.problem}", blocking=True, remedy=remedy)
        return
    weakness = _weakness(features, trial)
    if trial.solved:
        passes = proven or trial.gain >= CLEARLY or not remedy
        if weakness:
            yield Symptom(evidence=weakness, blocking=not passes, remedy=remedy, assumed=True)
        return
    yield Symptom(
        evidence=f"{trial.summary} {weakness or _plainly(trial.evidence)}", blocking=True, remedy=remedy
    )


def _stems(text: str) -> set[str]:
    return {word[:5] for word in re.findall(r"[a-z]+", text.lower())}


def _weakness(features: str, trial: Measurement) -> str:
    """Return what a plan leaves undone; nothing where it does all that an index can."""
    lines = [line.strip() for line in trial.evidence.splitlines()]
    scans = [line for line in lines if line.startswith("SCAN") and "COVERING" not in line]
    look_ups = [line for line in lines if line.startswith("SEARCH") and "USING INDEX" in line]
    if scans:
        return f"An index was expected; the plan reads the whole table: {scans[0]}."
    if "USE TEMP B-TREE FOR ORDER BY" in lines and "top-k" in features:
        return "The plan sorts in a temporary B-tree although only the first rows are wanted."
    if look_ups:
        return (
            f"Each row that the index finds is looked up in the table ({look_ups[0]}): that is fast only "
            "while the rows lie in the order of the index."
        )
    return ""


def _plainly(plan: str) -> str:
    return f"The trial shows: {'; '.join(line.strip() for line in plan.splitlines()[-5:])}."
