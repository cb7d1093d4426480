"""Score the answers of a run of Memory Sharing, each pair of texts once, and read the scores back."""

from mneme.evals.report import Journal, Progress, Row, digest
from mneme.evals.sharing.scores import BertScore, rouge_l
from mneme.evals.sharing.tables import MEASURES

AT_ONCE = 64
"""Pairs that are scored together."""


def score_all(journal: Journal, bert: BertScore, progress: Progress) -> None:
    """Score every answer that has no score yet, each pair of texts once, those of one reference together."""
    pairs = {_name(*pair): pair for row in journal.rows for pair in _pairs(row)}
    waiting = sorted(
        (pair for name, pair in pairs.items() if name not in journal), key=lambda pair: pair[::-1]
    )
    for start in range(0, len(waiting), AT_ONCE):
        part = waiting[start : start + AT_ONCE]
        found = bert.both([answer for answer, _ in part], [reference for _, reference in part])
        for pair, value in zip(part, found, strict=True):
            scores = {"bert_score": value.f1, "bert_precision": value.precision, "rouge_l": rouge_l(*pair)}
            journal.add(_name(*pair), {"kind": "score"} | scores)
        progress(start + len(part), len(waiting), "scoring the answers")


def _pairs(row: Row) -> list[tuple[str, str]]:
    """Return the answers of a row, each with its standard answer."""
    if row["kind"] == "test":
        return [(row["answer"], row["reference"])]
    if row["kind"] == "judge":
        return [(way["answer"], row["reference"]) for way in row["ways"].values()]
    return []


def _name(answer: str, reference: str) -> str:
    return f"score/{digest({'answer': answer, 'reference': reference})}"


def with_scores(journal: Journal) -> list[Row]:
    """Return the rows with the scores of their answers."""

    def scored(row: Row, reference: str) -> Row:
        score = journal[_name(row["answer"], reference)]
        return row | {measure: score[measure] for measure in MEASURES}

    rows = [row for row in journal.rows if row["kind"] != "score"]
    return [
        scored(row, row["reference"])
        if row["kind"] == "test"
        else row | {"ways": {way: scored(found, row["reference"]) for way, found in row["ways"].items()}}
        if row["kind"] == "judge"
        else row
        for row in rows
    ]
