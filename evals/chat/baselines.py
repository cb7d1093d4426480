"""Memory without a memory agent, for comparison on the contradiction set.

Each baseline is at its best: the similarity threshold is the one that does best on the very set in hand, and
an update comes in two wordings, since replacing loses what was known and appending keeps what is false.
"""

from collections.abc import Callable, Sequence

import numpy as np

from mneme.evals.chat.contradictions import Case, as_row, score
from mneme.evals.report import Row
from mneme.evals.scoring import Done
from mneme.models.embedding.embedders import Embedder

Wording = Callable[[str, str], str]
THRESHOLDS = [round(0.3 + 0.05 * step, 2) for step in range(14)]


async def play(cases: Sequence[Case], embedder: Embedder) -> dict[str, dict[str, Row]]:
    """Return what every baseline does with every case: name, then case id, then journal row."""
    nearest = [await _nearest(case, embedder) for case in cases]
    played = {"store nothing": [as_row([]) for _ in cases], "insert everything": [_all(c) for c in cases]}
    for name, wording in {"replaces": _replaced, "appends": _appended}.items():
        played |= _best(name, cases, nearest, wording)
    return {
        name: {case.id: row for case, row in zip(cases, rows, strict=True)} for name, rows in played.items()
    }


def _all(case: Case) -> Row:
    return as_row([Done(operation="insert", content=case.message)])


async def _nearest(case: Case, embedder: Embedder) -> tuple[int, float]:
    """Return the memory nearest to the message, and its cosine; -1 where there is no memory."""
    if not case.memories:
        return -1, -1.0
    message = np.array(await embedder.embed_query(case.message))
    cosines = np.array(await embedder.embed_documents(case.memories)) @ message
    return int(cosines.argmax()), float(cosines.max())


def _best(
    name: str, cases: Sequence[Case], nearest: Sequence[tuple[int, float]], wording: Wording
) -> dict[str, list[Row]]:
    """Return the rows of the threshold with the most cases wholly right."""

    def play_at(threshold: float) -> list[Row]:
        return [_by_similarity(c, n, threshold, wording) for c, n in zip(cases, nearest, strict=True)]

    def right_at(threshold: float) -> int:
        return sum(score(c, row).right for c, row in zip(cases, play_at(threshold), strict=True))

    best = max(THRESHOLDS, key=right_at)
    return {f"nearest over {best} {name}": play_at(best)}


def _by_similarity(case: Case, nearest: tuple[int, float], threshold: float, wording: Wording) -> Row:
    """Discard what asks a question; update the nearest memory if it is near enough, else insert."""
    if "?" in case.message:
        return as_row([])
    index, cosine = nearest
    if cosine <= threshold:
        return _all(case)
    before = case.memories[index]
    content = wording(before, case.message)
    return as_row([Done(operation="update", target=index, before=before, content=content)])


def _replaced(memory: str, message: str) -> str:
    return message


def _appended(memory: str, message: str) -> str:
    return f"{memory} {message}"
