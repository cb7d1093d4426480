"""Fingerprints of vectors, kept in the payload of a head, so that a damaged vector is noticed.

A fingerprint is a weighted sum. Whatever happens to one number of a vector changes it by at least as much, so
that a change which it does not show moves no score by more than `SLIGHT`. It stays as it is, up to rounding,
where the engine brings a vector to the length 1 once more.
"""

from collections.abc import Sequence
from math import isclose
from typing import Any

import numpy as np
import qdrant_edge as edge

from mneme.stores.ledger.engine import DENSE, SPARSE, Payload, Point

FIELDS = {DENSE: "dense_sum", SPARSE: "bm25_sum"}
"""The field of a head's payload for each of its vectors; heads of earlier versions have none."""
SLIGHT = 1e-4
GOLDEN = 0.6180339887498949


def with_fingerprints(point: Point) -> Payload:
    """Return the payload of a point with the fingerprints of its vectors, and of no others."""
    payload = {name: value for name, value in point.payload.items() if name not in FIELDS.values()}
    if point.dense is not None:
        payload[FIELDS[DENSE]] = of_dense(point.dense)
    if point.words is not None:
        payload[FIELDS[SPARSE]] = _sum(point.words.indices, point.words.values)
    return payload


def of_dense(vector: Sequence[float]) -> float:
    """Return the fingerprint of a vector of any length, as the engine keeps it: of the length 1, or of 0."""
    length = float(np.linalg.norm(vector)) or 1.0
    return _sum(range(len(vector)), np.asarray(vector) / length)


def differs(payload: Payload, vectors: Any) -> bool:
    """Say whether one of a point's vectors, by their names, is not the one that its payload knows."""
    return any(
        not isclose(payload[field], _stored(vectors.get(name)), rel_tol=SLIGHT / 10, abs_tol=SLIGHT)
        for name, field in FIELDS.items()
        if field in payload
    )


def _stored(vector: Any) -> float:
    if isinstance(vector, edge.SparseVector):
        return _sum(vector.indices, vector.values)
    return _sum(range(len(vector)), vector) if vector else float("nan")


def _sum(places: Sequence[int], values: Any) -> float:
    """Weigh each number with 1 to 2, by its place, and add them up."""
    weights = 1 + np.asarray(places, np.float64) * GOLDEN % 1
    return float(weights @ np.asarray(values, np.float64))
