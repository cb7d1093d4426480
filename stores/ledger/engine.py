"""What the ledger needs of a vector engine, in terms that Qdrant Edge and a Qdrant server share.

A record is a *head* point (its current view: vectors, value, scopes) and one point per version (the
event in full, without vectors, never overwritten). A write with an idempotency key leaves a *receipt*
point, a forgotten record a *tombstone* point.

A scope is a namespace written as one word, which is indexed by its prefixes. So a namespace and all those
below it are one condition on one index, and a search reads only the points below its own prefix. The
scope of a live head starts with the mark `+`, of a retired one with `-`, of a tombstone with `x`.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field

from mneme.stores.ledger.records import SEPARATOR, Namespace, Version, microseconds
from mneme.stores.ledger.words import Words

Payload = dict[str, Any]
Mark = Literal["+", "-", "x"]
Operator = Literal["eq", "ne", "gt", "gte", "lt", "lte", "in"]
Mode = Literal["dense", "bm25", "hybrid", "blend"]

DENSE, SPARSE = "dense", "bm25"
RRF_K = 60  # Cormack, Clarke, Büttcher 2009
HALF_ALIKE = 8.0
"""The BM25 score that counts as a similarity of one half where there are no vectors."""
FACETS = ["event", "scope", "created", "value.entities", "value.time", "value.kind", "value.thread"]
"""What the mode `blend` reads of a record beside its scores."""
CHANGED = "updated"
"""The field that says when a record was last changed, in days; indexed when it is first asked for."""
NUMBERS, TEXTS = (CHANGED, 'value."expires"'), ('value."may_contradict"',)
"""Fields that conditions find few records of many by; indexed when they are first asked for."""
FORMAT = 2  # of ledgers; `upgrade` brings the older ones to it
REEMBED = "Run `mneme memories reembed` to rebuild it, or choose the embedder it was made with."


class Point(NamedTuple):
    """One point; without vectors search never finds it, with `words` alone it finds it by them."""

    id: str
    payload: Payload
    dense: Sequence[float] | None = None
    words: Words | None = None


class Entry(NamedTuple):
    """A decided write: the new version points (claims), then the points that follow from them.

    `fresh` says whether the record had no head when this was decided.
    """

    version: Version
    claims: tuple[Point, ...]
    head: Point
    receipts: tuple[Point, ...] = ()
    fresh: bool = True

    @property
    def points(self) -> tuple[Point, ...]:
        return (*self.claims, self.head, *self.receipts)


@dataclass(frozen=True)
class Step:
    """A write that is decided once the points that it asks for have been read.

    `decide` is pure: it may be called again with newer points when another writer was first. It
    returns what to store, or the id of the version point that this write made before.
    """

    record: str
    reads: tuple[str, ...]
    decide: Callable[[Mapping[str, Payload]], Entry | str]


class Embedded(NamedTuple):
    """The dense vector of a head, for the version that it was made from."""

    id: str
    n: int
    dense: Sequence[float]


class Erasure(NamedTuple):
    """What to erase, and what to leave in its place."""

    erased: tuple[str, ...]
    left: tuple[Point, ...]
    created: Mapping[str, int] = {}
    """When the records of the heads among them were created: a head of another record stays."""


Erasing = Generator[list[str], dict[str, Payload], Erasure]
"""An erasure that asks for points by their ids, is sent their payloads, and returns what to erase."""


class Condition(NamedTuple):
    """A test of one payload field; `path` is a JSON path."""

    path: str
    operator: Operator
    value: Any


class Where(NamedTuple):
    """Selects points: those below one of the scopes, or in one of the whole ones, that pass every condition.

    Without scopes all points are selected. A search of everything needs none, since only live heads have
    vectors. The conditions select the records of these `sections`, where any are named: an engine may look
    in their scopes alone, without testing conditions, where it knows that all records have a section.
    """

    scopes: tuple[str, ...]
    conditions: tuple[Condition, ...] = ()
    whole: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()


class Ranking(BaseModel):
    """A scoring formula, computed in the engine over the records most similar to the query.

    score = similarity · cosine + Σ fields[f] · value.f + recency · 2^(−age / half_life_days)

    In the mode `bm25` the words' likeness stands for the cosine (see `likeness`).
    The age runs from the record's last version, or from the day (since 1970) in value.`aged_from`.
    Where value.`ageless` is 1, and not 0, the age counts as none. The engine ranks the `candidates`
    records that are most similar; None proposes a number that suits the limit.
    """

    model_config = ConfigDict(frozen=True)

    similarity: float = 1.0
    fields: dict[str, float] = {}
    default: float = 0.0
    recency: float = 0.0
    half_life_days: float = Field(30.0, gt=0)
    aged_from: str = ""
    ageless: str = ""
    candidates: int | None = Field(None, ge=1)

    @property
    def paths(self) -> dict[str, str]:
        """Return the payload path of each field of the value that the formula reads."""
        names = [*self.fields, *filter(None, (self.aged_from, self.ageless))]
        return {name: f'value."{name}"' for name in names}

    def parts(self, cosine: float, value: Mapping[str, Any], updated: float, now: float) -> dict[str, float]:
        """Return what each term adds to the score of a record; times in days since 1970."""
        age = abs(now - (_number(value, self.aged_from, now) if self.aged_from else updated))
        fresh = (
            1.0 if self.ageless and _number(value, self.ageless, 0) else 0.5 ** (age / self.half_life_days)
        )
        counted = {name: weight * _number(value, name, self.default) for name, weight in self.fields.items()}
        return {"similarity": self.similarity * cosine, **counted, "recency": self.recency * fresh}


class Query(NamedTuple):
    """A search; `candidates` is how many records each part of a fused or ranked one proposes."""

    where: Where
    mode: Mode
    dense: Sequence[float] | None
    words: Words | None
    limit: int
    offset: int = 0
    min_score: float | None = None
    ranking: Ranking | None = None
    now: float = 0.0

    @property
    def candidates(self) -> int:
        """Propose the same number for neighbouring pages, so that their order agrees."""
        if self.ranking is not None and self.ranking.candidates is not None:
            return max(self.ranking.candidates, self.limit + self.offset)
        least = 64 if self.mode == "blend" else 128
        return max(least, 1 << (4 * (self.limit + self.offset)).bit_length())

    @property
    def weighed(self) -> int:
        """Return how many records the mode `blend` weighs in full, the same for neighbouring pages."""
        return max(32, 1 << (2 * (self.limit + self.offset) - 1).bit_length())


class Scored(NamedTuple):
    """A found head: its event, its score, and the parts of the score where known."""

    event: str
    score: float
    parts: dict[str, float]


class Weighed(NamedTuple):
    """A head with its cosine, where there is a query's vector, and its `FACETS`."""

    cosine: float | None
    payload: Payload


Sides = tuple[Sequence[str], Sequence[str]]
"""The ids of the heads before and after a head, the nearest first."""


class Layout(BaseModel):
    """How a ledger lies on a Qdrant server; `writes` replicas must take a write before it counts."""

    model_config = ConfigDict(frozen=True)

    shards: int
    replicas: int
    writes: int
    not_in_use: list[str] = []


class EngineInfo(BaseModel):
    """What an engine says of itself."""

    model_config = ConfigDict(frozen=True)

    kind: Literal["edge", "server"]
    location: str
    points: int
    embedder: str
    dimension: int
    format: int
    layout: Layout | None = None


class Engine(Protocol):
    """Store points and find them again; every method is safe from any event loop and thread."""

    async def append(self, steps: Sequence[Step]) -> list[Version]:
        """Decide and store each step; return each one's version. See the engine on atomicity."""
        ...

    async def read(self, ids: Sequence[str]) -> dict[str, Payload]:
        """Return the payloads of those of the points that exist."""
        ...

    async def search(self, query: Query) -> list[Scored]:
        """Return heads, best first."""
        ...

    async def pool(self, query: Query) -> dict[str, dict[str, float]]:
        """Return the heads that each part of a query proposes, by their ids, with those parts' scores."""
        ...

    async def weigh(self, query: Query, ids: Sequence[str]) -> dict[str, Weighed]:
        """Return those of these heads that the query's scopes and conditions let through."""
        ...

    async def around(
        self, query: Query, heads: Sequence[Payload], reach: int
    ) -> tuple[list[Sides], dict[str, Weighed]]:
        """Return each head's neighbours in its scope, in the order of creation, and weigh them as well."""
        ...

    async def scan(
        self, where: Where, limit: int, offset: int = 0, *, newest_first: bool = False
    ) -> list[Payload]:
        """Return payloads in the order of their records' creation, or in the opposite one."""
        ...

    async def latest(self, where: Where, limit: int) -> list[Payload]:
        """Return payloads in the order of their records' last change, the latest first."""
        ...

    async def count(self, where: Where) -> int: ...

    async def scopes(self, where: Where) -> list[str]:
        """Return the scopes of the points that are meant."""
        ...

    async def erase(self, plan: Callable[[], "Erasing"]) -> "Erasure":
        """Carry out an erasure: remove points from the disk as far as the engine can."""
        ...

    async def compact(self) -> bool:
        """Put what is searched side by side in the files where it is scattered; say whether it was."""
        ...

    async def vectors(self, where: Where) -> dict[str, Sequence[float]]:
        """Return the dense vectors of points by their ids."""
        ...

    async def vectors_by_ids(self, ids: Sequence[str]) -> dict[str, Sequence[float]]:
        """Return the dense vectors of these points, of those that are there and have one."""
        ...

    async def unembedded(self, limit: int) -> dict[str, Payload]:
        """Return heads that have words and no dense vector, by their ids."""
        ...

    async def embed(self, heads: Sequence[Embedded]) -> None:
        """Give heads their dense vectors, but those that have been written to since."""
        ...

    async def place(self, shelf: str, groups: Mapping[str, Sequence[str]]) -> None:
        """Move points (by their ids) to another scope each; only those that stand on the shelf still."""
        ...

    async def info(self) -> EngineInfo: ...

    async def mark_current(self) -> None:
        """Note that the ledger has the current format."""
        ...

    async def close(self) -> None: ...


def likeness(score: float) -> float:
    """Return what a BM25 score counts as where a similarity between 0 and 1 is wanted."""
    return score / (score + HALF_ALIKE)


def scope(mark: Mark, namespace: Namespace, shelf: str = "", group: str | None = None) -> str:
    """Return a namespace as one word, which is a prefix of those below it and of no others.

    The shelf follows the namespace, so that the prefix of the whole namespace stays the same, and the group
    follows the shelf. The group is noted here alone; no version holds it. A record that was written to is
    in the group "" until it is placed again. A section of the shelf comes last, so that the prefix of a group
    is the same for all of them.
    """
    name, has_section, section = shelf.partition("/")
    place = "".join(f"{part}{SEPARATOR}" for part in namespace) + (f"{name}." if name else "")
    if group is None:
        return mark + place
    return mark + place + f"{group}." + (f"={section}." if has_section else "")


def section_name(name: str) -> str:
    """Return a name as a section of a shelf."""
    return quote(name, safe="")


def section_of(word: str) -> str | None:
    """Return the section in a scope; None where it has none, as of records of an older version."""
    _, _, section = word.rpartition(SEPARATOR)[2].partition(".=")
    return section[:-1] if section else None


def namespace_of(word: str) -> Namespace:
    """Return the namespace of a scope."""
    return tuple(word[1:].split(SEPARATOR)[:-1])


def version_point(point_id: str, version: Version) -> Point:
    """Return the point that holds one version in full."""
    return Point(point_id, {"event": version.model_dump_json()})


def head_point(
    record: str, version: Version, event: str, dense: Sequence[float] | None, words: Words | None
) -> Point:
    """Return the point of a record as it is now; without vectors when retired: search never finds it."""
    payload = {
        "scope": scope(
            "+" if version.live else "-", version.namespace, version.shelf, "" if version.shelf else None
        ),
        "created": microseconds(version.created),
        CHANGED: version.at.timestamp() / 86_400,
        "n": version.version,
        "value": filterable(version.value),
        "event": event,
    }
    return Point(record, payload, dense, words) if version.live else Point(record, payload)


def filterable(value: Any) -> Any:
    """Return a copy of a value for filters, with special words for true and false.

    Qdrant Edge 0.9 takes a boolean in a filter for the number 1 or 0 and then finds nothing.
    """
    if isinstance(value, bool):
        return f"{SEPARATOR}{value}"
    if isinstance(value, dict):
        return {name: filterable(item) for name, item in value.items()}
    return [filterable(item) for item in value] if isinstance(value, list) else value


def defaults(query: Query) -> dict[str, Any]:
    """Return what counts where a record lacks a field of the ranking: no age, and its default."""
    ranking = query.ranking
    assert ranking is not None
    paths = ranking.paths
    missing = {paths[name]: ranking.default for name in ranking.fields}
    dated = {paths[ranking.aged_from]: query.now} if ranking.aged_from else {}
    marked = {paths[ranking.ageless]: 0.0} if ranking.ageless else {}
    return missing | dated | marked


def found_by(where: Where) -> tuple[list[str], list[str]]:
    """Return the fields of NUMBERS, and those of TEXTS, that conditions read."""
    paths = [path for path, _, _ in where.conditions]
    return [each for each in paths if each in NUMBERS], [each for each in paths if each in TEXTS]


def compared_texts(where: Where) -> list[str]:
    """Return the paths of the fields that conditions compare with texts."""
    return [path for path, _, value in where.conditions if isinstance(value, str) or _are_texts(value)]


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _number(value: Mapping[str, Any], name: str, default: float) -> float:
    number = value.get(name)
    return float(number) if isinstance(number, (int, float)) else default
