"""Clusters of cards for large bases (§10, §12): retrieve clusters first, then the cards in them.

Clustering is k-means on the cards' vectors, with as many clusters as the root of the number of cards.
A cluster is known by its medoid, the card nearest to its centre: its text is the cluster's record in
("teams", team, "clusters"), so that clusters are found by the engine like anything else, and read by
people. Which cluster a card is in is noted by the engine and is not a version of the card. A card that was
written to since is in no cluster, and is looked at in every retrieval, so that nothing new is missed;
upkeep lets such cards join the nearest cluster, and makes new ones where the base has doubled.

The k-means is ours, in fifteen lines of numpy: scipy's, which would do as well, comes with an extra that
retrieval must not depend on.
"""

import asyncio
import math
import uuid
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mneme.stores.cards.card import CardSettings, Frozen
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.namespaces import team_namespace
from mneme.stores.ledger.records import Change, Version
from mneme.stores.shelf import Shelf, kind_of

Floats = NDArray[np.float32]
SAMPLES_PER_CLUSTER = 64
"""Cards of each cluster, on average, that the centres are computed from."""
ROUNDS = 12
REMADE_AT = 2
"""How many times as many cards as when clusters were made call for new ones."""
BATCH_SIZE = 2_000
"""Cards that join clusters in one go."""
ACTOR = "card lifecycle"


class Medoid(Frozen):
    """A cluster: how many cards it has, and the text of its medoid."""

    cards: int
    text: str = ""


MEDOID = kind_of(Medoid, text=lambda medoid: medoid.text, outside=frozenset({"text"}))


class Clusters(Shelf[Medoid, Medoid]):
    """The clusters of one team's cards in use."""

    def __init__(self, ledger: Ledger, team: str, settings: CardSettings) -> None:
        super().__init__(ledger, team_namespace(team, "clusters"), MEDOID)
        self._settings, self._cards = settings, team_namespace(team, "cards")

    async def nearest(self, text: str, vector: Sequence[float] | None, most: int) -> list[str]:
        """Return the names of the clusters nearest to a text; none without clusters or without a vector."""
        if not vector:
            return []
        hits = await self.search(text, limit=most, mode="dense", vector=vector)
        return [hit.version.key for hit in hits]

    async def keep(self) -> int:
        """Bring the clusters of more than 20,000 cards up to date; return how many cards joined one.

        Cards that are in none join the nearest, some thousand at a time. Where the base has doubled since
        clusters were made, or there are none, they are made.
        """
        count = await self.ledger.shelved(self._cards, "active")
        if count <= self._settings.clustered_over:
            return 0
        made = await self.heads()
        if len({each.key.partition("-")[0] for each in made}) > 1:  # a division was stopped before its end
            sizes = [await self.ledger.shelved(self._cards, "active", each.key) for each in made]
            await self._retire([each for each, size in zip(made, sizes, strict=True) if not size])
        if count > REMADE_AT * sum(each.cards for each in self.read(made)):
            await self.make()
            return count
        return await self._join(made)

    async def _join(self, made: Sequence[Version]) -> int:
        """Put cards that are in no cluster into the one whose medoid is nearest."""
        loose = await self.ledger.vectors(self._cards, "active", "")
        middles = await self.ledger.vectors(self.namespace, "")
        if not (loose and middles):
            return 0
        some = dict(list(loose.items())[:BATCH_SIZE])
        rows, centres = (np.array(list(each.values()), dtype=np.float32) for each in (some, middles))
        known = await self.ledger.by_ids([*middles])
        names = [known[point].key for point in middles]
        groups: dict[str, list[str]] = {}
        for point, nearest in zip(some, _nearest(rows, centres).tolist(), strict=True):
            groups.setdefault(names[nearest], []).append(point)
        await self.ledger.group(self._cards, "active", groups)
        return len(some)

    async def make(self) -> int:
        """Divide the cards in use into clusters, which retrieval looks at first; return how many."""
        vectors = await self.ledger.vectors(self._cards, "active")
        if not vectors:
            return 0
        points = list(vectors)
        found = await asyncio.to_thread(cluster, np.array(list(vectors.values()), dtype=np.float32))
        before, known = await self.heads(), await self.ledger.by_ids([points[medoid] for medoid, _ in found])
        made, change = uuid.uuid4().hex[:8], Change(reason="clustered", actor=ACTOR)
        groups = {
            f"{made}-{number}": (known[points[medoid]].text, [points[row] for row in rows])
            for number, (medoid, rows) in enumerate(found)
            if points[medoid] in known
        }
        await self.ledger.write(
            [
                self.write(name, Medoid(cards=len(ids), text=text), change)
                for name, (text, ids) in groups.items()
            ]
        )
        for name, (_, ids) in groups.items():  # one by one: in between it can be stopped
            await self.ledger.group(self._cards, "active", {name: ids})
        await self._retire(before)
        return len(groups)

    async def _retire(self, clusters: Sequence[Version]) -> None:
        change = Change(reason="clustered anew", actor=ACTOR)
        await self.ledger.write([self.retirement(each.key, change, each.version) for each in clusters])


def cluster(vectors: Floats, seed: int = 0) -> list[tuple[int, list[int]]]:
    """Return each cluster's medoid and its rows, by their numbers; rows are of length 1.

    k-means by cosine (Lloyd), on a sample where there are very many; empty clusters are left out.
    """
    count = max(1, round(math.sqrt(len(vectors))))
    chance = np.random.default_rng(seed)
    sample = vectors[chance.permutation(len(vectors))[: count * SAMPLES_PER_CLUSTER]]
    centres = sample[:count].copy()
    for _ in range(ROUNDS):
        labels = _nearest(sample, centres)
        for each in np.unique(labels):
            middle = sample[labels == each].sum(axis=0)
            centres[each] = middle / max(float(np.linalg.norm(middle)), 1e-9)
    labels = _nearest(vectors, centres)
    members = {each: np.flatnonzero(labels == each) for each in np.unique(labels).tolist()}
    return [
        (int(rows[np.argmax(vectors[rows] @ centres[each])]), rows.tolist()) for each, rows in members.items()
    ]


def _nearest(rows: Floats, centres: Floats) -> NDArray[np.int64]:
    parts = [np.argmax(rows[n : n + 4096] @ centres.T, axis=1) for n in range(0, len(rows), 4096)]
    return np.concatenate(parts)
