"""What the rules know: how a query's plan is read, and which remedy to think of next."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from mneme.core.trial import Trial
from mneme.prompts.learning.compound_learning.challenge import Objection
from mneme.prompts.learning.compound_learning.task import Severity, about

LADDER: list[list[dict[str, Any]]] = yaml.safe_load(
    Path(__file__).with_name("ladder.yaml").read_text(encoding="utf-8")
)
CLEARLY = 10.0
"""A draft with a weakness in its plan passes where it makes the query an order of magnitude faster."""


def claim(condition: str, pattern: str, noun: str) -> str:
    """Say a lesson in one sentence, the same for the same lesson."""
    verb = "build" if "INDEX" in pattern.partition("(")[0] else "the remedy is"
    return f"{about(condition, noun)}, {verb} {pattern}"


def in_vain(condition: str, noun: str) -> str:
    """Say which tasks a card of dead ends is about; the approaches themselves stand beside it."""
    return f"{about(condition, noun)}, what was tried without success"


def symptoms(  # noqa: PLR0913, PLR0917  (all that the devil's advocate looks at)
    features: str,
    pattern: str,
    trial: Trial,
    tried: Sequence[str],
    remedies: Sequence[str],
    proven: bool,
) -> Iterator[Objection]:
    """Yield what is wrong with a tried draft, worst first; each with the next remedy to think of.

    A weakness in the plan of a draft that solves its task does not block what a card has proven before.
    """
    open_ = [each for each in _ladder(features, trial) if each in remedies and each not in (*tried, pattern)]
    if not open_ and not trial.solved:
        open_ = [each for each in remedies if each not in (*tried, pattern)]
    remedy = open_[0] if open_ else ""
    if trial.problem:
        evidence = f"The trial says: {trial.problem}"
        yield Objection(evidence=evidence, kind="missing_edge_case", remedy=remedy, severity="blocking")
        return
    weakness = _weakness(features, trial)
    if not trial.solved:
        plan = "; ".join(line.strip() for line in trial.evidence.splitlines()[-5:])
        evidence = f"{trial.summary} {weakness or f'The trial shows: {plan}.'}"
        yield Objection(evidence=evidence, kind="missing_edge_case", remedy=remedy, severity="blocking")
    elif weakness:
        passes = proven or trial.gain >= CLEARLY or not remedy
        severity: Severity = "advisory" if passes else "blocking"
        yield Objection(evidence=weakness, kind="unstated_assumption", remedy=remedy, severity=severity)


def _weakness(features: str, trial: Trial) -> str:
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


def _ladder(features: str, trial: Trial) -> Iterator[str]:
    """Yield the remedies to think of for a query with these features, simplest first."""
    if trial.over_limit:
        yield "INDEX (join)"  # the narrowest, where there is a join
        yield from ("INDEX (range, group) WHERE equality", "COVERING INDEX (range, group) WHERE equality")
    for group in LADDER:
        yield from next((each["try"] for each in group if re.search(each["when"], features)), ())
