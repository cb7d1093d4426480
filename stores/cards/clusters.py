"""Clusters of cards for large bases (§10, §12): retrieve clusters first, then the cards in them.

Clustering is k-means on the cards' vectors, with as many clusters as the root of the number of cards.
A cluster is known by its medoid, the card nearest to its centre: its text is the cluster's record in
("teams", team, "clusters"), so that clusters are found by the engine like anything else, and read by
people. Which cluster a card is in is noted by the engine and is not a version of the card. A card that was
written to since is in no cluster, and is looked at in every retrieval, so that nothing new is missed;
upkeep lets such cards join the nearest cluster, and makes new ones where the base has doubled.

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
from mneme.stores.ledger.records import Change, Version, Write, make_write

Floats = NDArray[np.float32]
SAMPLED = 64
"""Cards of each cluster, on average, that the centres are computed from."""
ROUNDS = 12
REMADE_AT = 2
"""How many times as many cards as when clusters were made call for new ones."""
AT_ONCE = 2_000
"""Cards that join clusters in one go."""
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

    async def keep(self) -> int:
        """Bring the clusters of more than 20,000 cards up to date; return how many cards joined one.

        Cards that are in none join the nearest, some thousand at a time. Where the base has doubled since
        clusters were made, or there are none, they are made.
        """
        count = await self._ledger.shelved(self._cards, "active")
        if count <= self._settings.clustered_over:
            return 0
        made = await self._records()
        await self._retire_emptied(made)
        if count > REMADE_AT * sum(int(str(each.value["cards"])) for each in made):
            await self.make()
            return count
        return await self._join(made)

    async def _records(self) -> list[Version]:
        return await self._ledger.records(self.namespace, limit=None)

    async def _retire_emptied(self, made: Sequence[Version]) -> None:
        """Finish a division that was stopped: clusters of an older one that hold nothing any more go."""
        if len({each.key.partition("-")[0] for each in made}) < 2:
            return
        for each in made:
            if not await self._ledger.shelved(self._cards, "active", each.key):
                await self._retire(each)

    async def _join(self, made: Sequence[Version]) -> int:
        """Put cards that are in no cluster into the one whose medoid is nearest."""
        loose = await self._ledger.vectors(self._cards, "active", "")
        middles = await self._ledger.vectors(self.namespace, "")
        known = await self._ledger.by_ids([*middles])
        if not (loose and middles):
            return 0
        some = dict(list(loose.items())[:AT_ONCE])
        rows, centres = (np.array(list(each.values()), dtype=np.float32) for each in (some, middles))
        names = [known[point].key for point in middles]
        groups: dict[str, list[str]] = {}
        for point, nearest in zip(some, _nearest(rows, centres).tolist(), strict=True):
            groups.setdefault(names[nearest], []).append(point)
        await self._ledger.group(self._cards, "active", groups)
        return len(some)

    async def make(self) -> int:
        """Divide the cards in use into clusters, which retrieval looks at first; return how many."""
        vectors = await self._ledger.vectors(self._cards, "active")
        if not vectors:
            return 0
        rows = np.array(list(vectors.values()), dtype=np.float32)
        labels, medoids = await asyncio.to_thread(cluster, rows)
        before = await self._records()
        made, points = uuid.uuid4().hex[:8], list(vectors)
        groups = {f"{made}-{name}": ids for name, ids in members(points, labels).items()}
        middle = {f"{made}-{number}": points[row] for number, row in enumerate(medoids.tolist())}
        known = await self._ledger.by_ids([*middle.values()])
        texts = {name: known[point].text for name, point in middle.items() if point in known}
        await self._ledger.write([self._write(name, text, len(groups[name])) for name, text in texts.items()])
        for name in texts:  # one by one: in between it can be stopped
            await self._ledger.group(self._cards, "active", {name: groups[name]})
        for old in before:
            await self._retire(old)
        return len(texts)

    async def _retire(self, old: Version) -> None:
        change = Change(reason="clustered anew", actor=ACTOR)
        await self._ledger.retire(self.namespace, old.key, change=change, expected_version=old.version)

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
