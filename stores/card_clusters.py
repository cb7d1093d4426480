"""Clusters of cards for large bases (§10, §12): retrieve clusters first, then drill down.

Clustering is k-means on the cards' vectors, with as many clusters as the root of the number of cards.
A cluster is known by its medoid, the card nearest to its centre: its text is the cluster's record in
("teams", team, "clusters"), so that clusters are found by the engine like anything else, and read by
people. Which cluster a card is in is a note of the engine's, not a version of the card. A card that was
written to since is in no cluster, and is looked at in every retrieval, so that nothing new is missed;
when such cards are more than a tenth of the base, it is time to cluster again.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
SAMPLED = 64
"""Cards of each cluster, on average, that the centres are computed from."""
ROUNDS = 12


def cluster(vectors: Floats, seed: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return each row's cluster, and each cluster's medoid as a row; rows are of length 1.

    k-means by cosine (Lloyd), on a sample where there are very many; empty clusters are left out.
    """
    count = max(1, round(math.sqrt(len(vectors))))
    chance = np.random.default_rng(seed)
    sample = vectors[chance.permutation(len(vectors))[: count * SAMPLED]]
    centres = sample[:count].copy()
    for _ in range(ROUNDS):
        centres = _centres(sample, _nearest(sample, centres), centres)
    labels = _nearest(vectors, centres)
    used = np.unique(labels)
    renamed = np.searchsorted(used, labels)
    return renamed, _medoids(vectors, renamed, centres[used])


def _nearest(rows: Floats, centres: Floats) -> NDArray[np.int64]:
    parts = [np.argmax(rows[n : n + 4096] @ centres.T, axis=1) for n in range(0, len(rows), 4096)]
    return np.concatenate(parts)


def _centres(rows: Floats, labels: NDArray[np.int64], before: Floats) -> Floats:
    order = np.argsort(labels, kind="stable")
    used, starts = np.unique(labels[order], return_index=True)
    sums = np.zeros_like(before)
    sums[used] = np.add.reduceat(rows[order], starts)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    return np.where(lengths > 0, sums / np.maximum(lengths, 1e-9), before).astype(np.float32)


def _medoids(rows: Floats, labels: NDArray[np.int64], centres: Floats) -> NDArray[np.int64]:
    closeness = np.einsum("ij,ij->i", rows, centres[labels])
    order = np.lexsort((-closeness, labels))
    firsts: NDArray[np.int64] = order[np.searchsorted(labels[order], np.arange(len(centres)))]
    return firsts


def members(ids: Sequence[str], labels: NDArray[np.int64]) -> dict[str, list[str]]:
    """Return the ids of each cluster."""
    found: dict[str, list[str]] = {}
    for point, label in zip(ids, labels.tolist(), strict=True):
        found.setdefault(str(label), []).append(point)
    return found
