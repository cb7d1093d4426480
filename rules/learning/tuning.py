"""What the rules know: how a query's plan is read, and which remedy to think of next."""

from collections.abc import Iterator, Sequence

from mneme.core.trial import Trial
from mneme.prompts.learning.compound_learning.challenge import Objection
from mneme.prompts.learning.compound_learning.task import Severity, about

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
    if "leading wildcard" in features:
        yield from ("COVERING INDEX (hidden)", "INDEX (filter, group)")
    elif "hidden by pattern" in features:
        yield "INDEX (expression)"
    elif "column hidden" in features:
        yield from ("REWRITE sargable; INDEX (filters, group)", "INDEX (expression)")
    if "OR across columns" in features:
        yield from ("EACH INDEX (alternatives)", "REWRITE alternatives; EACH INDEX (alternatives)")
    if "correlated subquery" in features:
        yield from ("INDEX (join)", "COVERING INDEX (join, filters)", "REWRITE correlated; INDEX (join)")
        yield "REWRITE correlated"
    elif "join" in features.split("; "):
        yield from ("COVERING INDEX (join)", "COVERING INDEX (join, filters)", "INDEX (join)")
    if "top-k order" in features:
        yield from ("INDEX (equality, order)", "INDEX (order)")
    if "more than three filters" in features:
        yield from ("INDEX (equality)", "INDEX (range, group) WHERE equality")
    if "filters" in features or features.count(" filter") > 1:
        yield from ("INDEX (equality, range, group)", "COVERING INDEX (filters, group)")
    yield from ("INDEX (filter, group)", "COVERING INDEX (filter, group)")
    yield from ("COVERING INDEX (filters, group)", "COVERING INDEX (group, filters)")
