"""Terms of a search that Qdrant Edge and a Qdrant server share: scopes, conditions, rankings.

A scope is a namespace written as one word and indexed by its prefixes. So a namespace with all those below it
is one condition on one index, and a search reads only the records below its own prefix. The scope of a live
record starts with the mark `+`, of a retired one with `-`, of a forgotten one with `x`.

A filter on a record's value has the operators that LangGraph's stores use: `{"kind": "episodic",
"score": {"$gte": 3}, "entities": {"$in": ["Max"]}}`. Every field must pass. A list-valued field passes `$eq`
and `$in` when one of its items does; text in a range is a time.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import blake2b
from operator import eq, ge, gt, le, lt
from typing import Any, Literal, NamedTuple, cast, get_args
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field

from mneme.core.errors import BadInput
from mneme.stores.ledger.records import SEPARATOR, Hit, Namespace, Version, check_namespace
from mneme.stores.ledger.words import Words

Payload = dict[str, Any]
Mark = Literal["+", "-", "x"]
Operator = Literal["eq", "ne", "gt", "gte", "lt", "lte", "in"]
Mode = Literal["dense", "bm25", "hybrid", "blend"]
FILTER_OPERATORS = tuple(f"${name}" for name in get_args(Operator))
Path = tuple[str, ...]
Test = tuple[Path, str, Any]
RANGES = ("gt", "gte", "lt", "lte")
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {"eq": eq, "gt": gt, "gte": ge, "lt": lt, "lte": le}

DENSE, SPARSE = "dense", "bm25"
RRF_K = 60  # Cormack, Clarke, Büttcher 2009
HALF_ALIKE = 8.0
"""BM25 score that counts as a similarity of one half, where there are no vectors."""
LAST_CHAR = "\U0010ffff"
"""The character that sorts after all others."""
UPDATED_FIELD = "updated"
"""The field with the time of a record's last change, in days since 1970."""
MAX_QUERY_CHARS = 8000
"""Maximum characters of a query that are compared; a longer text is a document and would slow down others."""
ISO_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ][\d:.,]+)?(Z|[+-][\d:]+)?")
"""Pattern of texts that are compared as times, and therefore not hashed."""
LEDGER_FORMAT = 3  # `upgrading` converts older ledgers to it


class Condition(NamedTuple):
    """A test of one field of the value; `path` has the names that lead to the field."""

    path: tuple[str, ...]
    operator: Operator
    value: Any


def json_path(path: Path, key: str = "") -> str:
    """Return the payload path of a field of the value; with a key, nested names are hashed as texts are."""
    return ".".join(["value", *(f'"{name}"' for name in (path[0], *filterable([*path[1:]], key)))])


class Where(NamedTuple):
    """Selects points: those below one of the scopes, or in one of the whole ones, that pass every condition.

    Without scopes all points are selected. A search of everything needs none, since only live heads have
    vectors. `sections`, if given, hold the records that pass the conditions: an engine may search only their
    scopes, without testing conditions, if it knows that all records have a section.
    """

    scopes: tuple[str, ...]
    conditions: tuple[Condition, ...] = ()
    whole: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()


class Ranking(BaseModel):
    """A scoring formula, computed in the engine over the records most similar to the query.

    score = similarity · cosine + Σ fields[f] · value.f + recency · 2^(−age / half_life_days)

    In the mode `bm25`, `likeness` of the BM25 sum replaces the cosine. The age counts from the record's last
    version, or from the day (since 1970) in value.`aged_from`. If value.`ageless` is 1, not 0, the age is 0.
    The engine ranks the `candidates` most similar records; with None the number follows from the limit.
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
        """Return the payload path of each value field that the formula reads."""
        names = [*self.fields, *filter(None, (self.aged_from, self.ageless))]
        return {name: json_path((name,)) for name in names}

    def parts(self, hit: Hit, now: float) -> dict[str, float]:
        """Return what each term adds to a record's score; `now` in days since 1970."""
        value, updated = hit.version.value, hit.version.at.timestamp() / 86_400
        age = abs(now - (number_in(value, self.aged_from, now) if self.aged_from else updated))
        fresh = (
            1.0 if self.ageless and number_in(value, self.ageless, 0) else 0.5 ** (age / self.half_life_days)
        )
        terms = {name: weight * number_in(value, name, self.default) for name, weight in self.fields.items()}
        terms["recency"] = self.recency * fresh
        return {"similarity": hit.score - sum(terms.values()), **terms}


class Query(NamedTuple):
    """A search; each part of a fused or ranked search proposes `candidates` records."""

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
        """The number of proposed records; the same for neighbouring pages, so that their order agrees."""
        if self.ranking is not None and self.ranking.candidates is not None:
            return max(self.ranking.candidates, self.limit + self.offset)
        least = 64 if self.mode == "blend" else 128
        return max(least, 1 << (4 * (self.limit + self.offset)).bit_length())


class ClusterLayout(BaseModel):
    """Placement of a ledger on a Qdrant server; `writes` replicas must take a write before it counts."""

    model_config = ConfigDict(frozen=True)

    shards: int
    replicas: int
    writes: int
    not_in_use: list[str] = []


class LedgerInfo(BaseModel):
    """Information about a ledger: where its log and its index are, and how many entries the log has."""

    model_config = ConfigDict(frozen=True)

    kind: Literal["edge", "server"]
    location: str
    entries: int
    embedder: str
    dimension: int
    format: int
    layout: ClusterLayout | None = None


def likeness(score: float) -> float:
    """Return a BM25 score as a similarity between 0 and 1."""
    return score / (score + HALF_ALIKE)


def scope(mark: Mark, namespace: Namespace, shelf: str = "") -> str:
    """Return a namespace as one word, which is a prefix only of the namespaces below it.

    The shelf follows the namespace, so that the prefix of the whole namespace stays the same.
    """
    name, *_ = shelf.split("/")
    return mark + "".join(f"{part}{SEPARATOR}" for part in namespace) + (f"{name}." if name else "")


def scope_of(version: Version) -> str:
    """Return a record's own scope: its section comes last, and it ends where others on its shelf go on."""
    name, has_section, section = version.shelf.partition("/")
    place = scope("+" if version.live else "-", version.namespace, name)
    return place + (f".={section}." if has_section else "." if name else "")


def where_below(
    prefix: Namespace, filter: Mapping[str, Any] | None = None, *, retired: bool = False, shelf: str = ""
) -> Where:
    """Return the selection of records below a prefix, or on a shelf: the live ones, or all."""
    check_namespace(prefix, prefix=True)
    marks: tuple[Mark, ...] = ("+", "-") if retired and not shelf else ("+",)
    return Where(tuple(scope(mark, prefix, shelf) for mark in marks), conditions(filter))


def section_name(name: str) -> str:
    """Return a name as a section of a shelf."""
    return quote(name, safe="")


def section_of(word: str) -> str | None:
    """Return the section in a scope; None if it has none, as for records of an older version."""
    _, _, section = word.rpartition(SEPARATOR)[2].partition(".=")
    return section[:-1] if section else None


def namespace_of(word: str) -> Namespace:
    """Return the namespace of a scope."""
    return tuple(word[1:].split(SEPARATOR)[:-1])


def filterable(value: Any, key: str = "") -> Any:
    """Return a copy of a value for filters, with special texts for true and false.

    With a key, keyed hashes replace the texts and the names of nested fields.
    """
    if isinstance(value, bool):
        # Qdrant Edge 0.9 takes a boolean in a filter for the number 1 or 0, and then finds nothing.
        value = f"{SEPARATOR}{value}"
    if key and isinstance(value, str) and not ISO_TIME.fullmatch(value):
        return blake2b(value.encode(), key=key.encode(), digest_size=9).hexdigest()
    if isinstance(value, dict):
        return {filterable(name, key): filterable(item, key) for name, item in value.items()}
    return [filterable(item, key) for item in value] if isinstance(value, list) else value


def number_in(value: Mapping[str, Any], name: str, default: float) -> float:
    """Return a number in a record's value, or the default."""
    number = value.get(name)
    return float(number) if isinstance(number, (int, float)) else default


def conditions(filter: Mapping[str, Any] | None) -> tuple[Condition, ...]:
    """Translate a filter into conditions. Raises BadInput for what the engine cannot test."""
    tests = tests_of(filter or {}, FILTER_OPERATORS)
    return tuple(
        Condition(path, cast(Operator, name[1:]), _operand(name, given)) for path, name, given in tests
    )


def tests_of(filter: Mapping[str, Any], operators: Sequence[str], path: Path = ()) -> Iterator[Test]:
    """Yield the path, the operator and the operand of each test in a filter. Raises BadInput."""
    for name, wanted in filter.items():
        if not isinstance(name, str) or '"' in name or not name or name.startswith("$"):
            raise BadInput(f"A filter cannot name the field {name!r}.")
        if not isinstance(wanted, Mapping):
            yield (*path, name), "$eq", wanted
        elif not any(str(each).startswith("$") for each in wanted):
            yield from tests_of(wanted, operators, (*path, name))
        else:
            for operator, operand in wanted.items():
                if operator not in operators:
                    raise BadInput(f"Unknown operator {operator!r}; there are {', '.join(operators)}.")
                yield (*path, name), operator, operand


def _operand(operator: str, given: Any) -> Any:
    """Return an operand in the form that the engines take. Raises BadInput."""
    if operator == "$in":
        expected = "$in takes a list of texts, or of whole numbers"
        if isinstance(given, list | tuple) and {*map(type, given)} in ({str}, {int}):
            return [*given]
    elif operator[1:] in RANGES:
        expected = "A range compares with a number or an ISO 8601 time"
        if isinstance(given, int | float) and not isinstance(given, bool):
            return given
        with suppress(TypeError, ValueError):
            return datetime.fromisoformat(given)
    else:
        expected = "A filter compares with text, a number, true, false or null"
        if given is None or isinstance(given, str | int | float):
            return filterable(given)
    raise BadInput(f"{expected}, not {given!r}.")


def passes(value: Any, condition: Condition) -> bool:
    """Return whether a value passes a condition, as the engines test it."""
    path, operator, wanted = condition
    if operator == "ne":
        return not passes(value, condition._replace(operator="eq"))
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    found = filterable(value)
    if wanted is None:
        return found is None or found == []  # as Qdrant's `is_empty`
    return any(_holds(item, operator, wanted) for item in (found if isinstance(found, list) else [found]))


def _holds(item: Any, operator: Operator, wanted: Any) -> bool:
    if operator == "in":
        return any(_holds(item, "eq", each) for each in wanted)
    if isinstance(wanted, datetime):
        try:
            times = [datetime.fromisoformat(item), wanted]
        except (TypeError, ValueError):
            return False
        # Qdrant, too, reads a time without a zone as UTC.
        return COMPARISONS[operator](*(each if each.tzinfo else each.replace(tzinfo=UTC) for each in times))
    if isinstance(wanted, str) or isinstance(item, str):
        return bool(operator == "eq" and item == wanted)
    return isinstance(item, int | float) and COMPARISONS[operator](item, wanted)
