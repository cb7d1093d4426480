"""Clusters of cards for large bases (§10, §12): retrieve clusters first, then the cards in them.

Clustering is k-means on the cards' vectors, with as many clusters as the root of the number of cards.
A cluster is known by its medoid, the card nearest to its centre: its text is the cluster's record in
("teams", team, "clusters"), so that clusters are found by the engine like anything else, and read by
people. Which cluster a card is in is noted by the engine and is not a version of the card. A card that was
written to since is in no cluster, and is looked at in every retrieval, so that nothing new is missed;
when such cards are more than a tenth of the base, it is time to cluster again.

The k-means is ours, in thirty lines of numpy: scipy's, which would do as well, comes with an extra that
retrieval must not depend on.
"""

import asyncio
import math
import uuid
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mneme.stores.cards.settings import CardSettings
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.namespaces import team_namespace
from mneme.stores.ledger.records import Change, Write, make_write

Floats = NDArray[np.float32]
SAMPLED = 64
"""Cards of each cluster, on average, that the centres are computed from."""
ROUNDS = 12
ACTOR = "card lifecycle"


class Clusters:
    """The clusters of one team's cards in use."""

    def __init__(self, ledger: Ledger, team: str, settings: CardSettings) -> None:
        self._ledger, self._settings = ledger, settings
        self._cards = team_namespace(team, "cards")
        self.namespace = team_namespace(team, "clusters")

    async def nearest(self, text: str, vector: Sequence[float] | None, most: int) -> list[str]:
        """Return the names of the clusters nearest to a text; none without clusters or without a vector."""
        if not vector:
            return []
        hits = await self._ledger.search(self.namespace, text, limit=most, mode="dense", vector=vector)
        return [hit.version.key for hit in hits]

    async def make_if_large(self) -> int:
        """Cluster a base of more than 20,000 cards, anew when a tenth is in no cluster; see `make`."""
        count = await self._ledger.shelved(self._cards, "active")
        if count <= self._settings.clustered_over:
            return 0
        loose = await self._ledger.shelved(self._cards, "active", "")
        return await self.make() if loose > self._settings.recluster_at * count else 0

    async def make(self) -> int:
        """Divide the cards in use into clusters, which retrieval looks at first; return how many."""
        vectors = await self._ledger.vectors(self._cards, "active")
        if not vectors:
            return 0
        rows = np.array(list(vectors.values()), dtype=np.float32)
        labels, medoids = await asyncio.to_thread(cluster, rows)
        before = await self._ledger.records(self.namespace, limit=len(vectors))
        made, points = uuid.uuid4().hex[:8], list(vectors)
        groups = {f"{made}-{name}": ids for name, ids in members(points, labels).items()}
        middle = {f"{made}-{number}": points[row] for number, row in enumerate(medoids.tolist())}
        known = await self._ledger.by_ids([*middle.values()])
        texts = {name: known[point].text for name, point in middle.items() if point in known}
        await self._ledger.write([self._write(name, text, len(groups[name])) for name, text in texts.items()])
        await self._ledger.group(self._cards, "active", {name: groups[name] for name in texts})
        change = Change(reason="clustered anew", actor=ACTOR)
        for old in before:
            await self._ledger.retire(self.namespace, old.key, change=change, expected_version=old.version)
        return len(texts)

    def _write(self, name: str, text: str, size: int) -> Write:
        return make_write(
            event="insert",
            namespace=self.namespace,
            key=name,
            value={"cards": size},
            text=text,
            change=Change(reason="clustered", actor=ACTOR),
        )


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
