"""What keeps a base of cards in order (§5, §10), a little after each task and never in its way.

*Inactivity.* Cards that none of the last 100 tasks was shown are archived. Nothing but what has left the
window of these tasks since the last time is looked at: the cards that were last written before it began, and
those that were last shown in a task before it. How far that came is a record of ("teams", team, "upkeep").

*Expiry.* Cards whose time is over are archived.

*Clusters.* A large base has clusters; cards that were written since join the nearest one. Only where the base
has doubled are clusters made anew, which takes seconds for some ten thousand cards.

All of it may be stopped at any moment, and is finished by the next time.
"""

import asyncio
import math
import uuid
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mneme.core.errors import Conflict
from mneme.stores.cards.card import Card, CardSettings, Frozen
from mneme.stores.cards.card_records import SECONDS_A_DAY, CardRecords
from mneme.stores.cards.lifecycle import archived
from mneme.stores.cards.metrics import TaskLog
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
    """The clusters of one team's cards in use (§10, §12): retrieve clusters first, then the cards in them.

    Clustering is k-means on the cards' vectors, with as many clusters as the root of the number of cards. A
    cluster is known by its medoid, the card nearest to its centre: its text is the cluster's record, found by
    the engine like anything else. Which cluster a card is in is noted by the engine and is no version of the
    card. A card that was written to since is in no cluster, and is looked at in every retrieval.

    The k-means is ours, in fifteen lines of numpy: scipy's comes with an extra that retrieval must not need.
    """

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


MARK = "inactivity"


class Kept(Frozen):
    """What upkeep did: the ids of the cards that it archived, and how many cards joined a cluster."""

    archived: list[str] = Field([])
    expired: list[str] = Field([])
    clustered: int = 0


class Mark(Frozen):
    """How far the search for inactive cards came: when its window began, and the tasks before that."""

    began: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    passed: int


class Upkeep:
    """The upkeep of one team's cards."""

    def __init__(self, ledger: Ledger, records: CardRecords, tasks: TaskLog, clusters: Clusters) -> None:
        self._ledger, self._records, self._tasks, self._clusters = ledger, records, tasks, clusters
        namespace = team_namespace(records.team, "upkeep")
        self._marks = Shelf(ledger, namespace, kind_of(Mark))

    async def run(self) -> Kept:
        """Archive what is inactive or has expired, and bring the clusters up to date."""
        idle = await self.archive_inactive()
        expired = await self.archive_expired()
        clustered = await self._clusters.keep()
        return Kept(
            archived=[card.id for card in idle], expired=[card.id for card in expired], clustered=clustered
        )

    async def archive_inactive(self) -> Sequence[Card]:
        """Archive the cards that none of the last 100 tasks was shown (§5), and return them.

        A card that was written to during these tasks is not inactive.
        """
        count, needed = await self._tasks.count(), self._records.settings.inactive_tasks
        if count < needed:
            return []
        window = await self._tasks.latest(needed)
        began, passed = window[0].at, count - needed
        assert began is not None
        heads = await self._left_behind(began, passed)
        shown = {card for task in window for card in task.retrieved}
        idle = [head for head in heads if head.key not in shown and head.at < began]
        done = await self._archive(idle, f"not retrieved in {needed} tasks")
        with suppress(Conflict):  # another process noted something meanwhile
            change = Change(reason="looked through", actor=ACTOR)
            await self._marks.put(MARK, Mark(began=began, passed=passed), change=change)
        return done

    async def _left_behind(self, began: datetime, passed: int) -> list[Version]:
        """Return the cards that were last written or shown before the window, and not before the last one."""
        mark = await self._marks.find(MARK) or Mark(passed=passed)
        heads = await self._ledger.changed(self._records.namespace, mark.began, began)
        left = await self._tasks.latest(
            max(0, passed - mark.passed), offset=self._records.settings.inactive_tasks
        )
        known = {head.key for head in heads}
        shown = dict.fromkeys(card for task in left for card in task.retrieved if card not in known)
        return [*heads, *await self._records.by_keys([*shown])]

    async def archive_expired(self) -> Sequence[Card]:
        """Archive the cards in use whose time is over, and return them."""
        over = {"expires": {"$lte": datetime.now(UTC).timestamp() / SECONDS_A_DAY}}
        return await self._archive(await self._records.heads(filter=over, shelf="active"), "its time is over")

    async def _archive(self, heads: Sequence[Version], reason: str) -> list[Card]:
        """Archive those of the cards that are in use; return them."""
        change = Change(reason=reason, actor=ACTOR)
        idle = [head.key for head in heads if archived(Card.of(head), reason)]
        return [
            await self._records.change(card_id, lambda card: archived(card, reason), change)
            for card_id in idle
        ]
