"""Memory without a memory agent, for comparison on the contradiction set.

Each baseline is at its best: the similarity threshold is the one that does best on the very set in hand, and
an update comes in two wordings, since replacing loses what was known and appending keeps what is false.
"""

from collections.abc import Sequence

import numpy as np

from mneme.evals.chat.contradictions import Case, as_row, score
from mneme.evals.report import Row
from mneme.evals.scoring import Done
from mneme.models.embedding.embedders import Embedder

THRESHOLDS = [round(0.3 + 0.05 * step, 2) for step in range(14)]
WORDINGS = {"replaces": "{message}", "appends": "{memory} {message}"}


async def play(cases: Sequence[Case], embedder: Embedder) -> dict[str, dict[str, Row]]:
    """Return what every baseline does with every case: name, then case id, then journal row."""
    nearest = {case.id: await _nearest(case, embedder) for case in cases}
    played = {
        "store nothing": {case.id: as_row([]) for case in cases},
        "insert everything": {case.id: as_row([_inserted(case)]) for case in cases},
    }
    for name, wording in WORDINGS.items():
        by_threshold = {
            threshold: {case.id: _decided(case, *nearest[case.id], threshold, wording) for case in cases}
            for threshold in THRESHOLDS
        }
        right = {
            threshold: sum(score(case, rows[case.id]).right for case in cases)
            for threshold, rows in by_threshold.items()
        }
        best = max(THRESHOLDS, key=lambda threshold: right[threshold])
        played[f"nearest over {best} {name}"] = by_threshold[best]
    return played


def _inserted(case: Case) -> Done:
    return Done(operation="insert", content=case.message)


async def _nearest(case: Case, embedder: Embedder) -> tuple[int, float]:
    """Return the memory nearest to the message, and its cosine; -1 where there is no memory."""
    if not case.memories:
        return -1, -1.0
    message = np.array(await embedder.embed_query(case.message))
    cosines = np.array(await embedder.embed_documents(case.memories)) @ message
    return int(cosines.argmax()), float(cosines.max())


def _decided(case: Case, index: int, cosine: float, threshold: float, wording: str) -> Row:
    """Discard what asks a question; update the nearest memory if it is near enough, else insert."""
    if "?" in case.message:
        return as_row([])
    if cosine <= threshold:
        return as_row([_inserted(case)])
    before = case.memories[index]
    content = wording.format(memory=before, message=case.message)
    return as_row([Done(operation="update", target=index, before=before, content=content)])
