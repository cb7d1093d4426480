"""Records of the ledger: their versions, the reason for each, and how their ids are made."""

import json
import re
import threading
import uuid
from collections.abc import Container, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple, cast

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from mneme.core.errors import BadInput, NotFound, first_fault

Namespace = tuple[str, ...]
Event = Literal["insert", "update", "retire", "restore"]
Value = dict[str, JsonValue]

LEDGER = uuid.UUID("6d6e656d-652d-5c6c-a564-6765722d7631")  # root of every id; never change it
LOCAL = "local"
"""The one person on a server without keys, and whoever uses the command line without a server."""
MAX_INT = 2**53 - 1
"""The largest number that every JSON reader takes exactly."""
MAX_NAME_CHARS = 256
MAX_NAMESPACE_DEPTH = 16
MAX_VALUE_DEPTH = 64
MAX_VALUE_BYTES = 8 * 1024 * 1024  # bytes; a record is something remembered, not a file
# With lone surrogates, which UTF-8 cannot encode, and the separators that end a line for some readers.
UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]")
SHELF_PATTERN = r"^[a-z]*(/[\w.~%-]*)?$"
REFERENCE = r"[\w-]+@[0-9]{1,9}"  # a number that Postgres takes, too
SEPARATOR = "\x1f"  # cannot occur inside a part: control characters are refused


def texts_in(value: Any) -> Iterator[str]:
    """Yield all texts in a value, in their order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from texts_in(each)


class Source(BaseModel):
    """The origin of a change: ids, never text."""

    model_config = ConfigDict(frozen=True)

    thread: str = ""
    checkpoint: str = ""
    messages: list[str] = []
    tasks: list[str] = []
    records: list[str] = Field(
        default_factory=list,  # a default would be copied deeply for each version that is read
        exclude_if=lambda records: not records,
        description="What it was made from, as `Version.reference` names it.",
    )


class Change(BaseModel):
    """The reason for a version, who decided it, and its sources."""

    model_config = ConfigDict(frozen=True)

    reason: str
    actor: str
    source: Source = Source()
    model: str = ""
    undoes: int | None = Field(None, description="The version that this change takes back.")


class NamedRecord(BaseModel):
    """A model that names its record by namespace and key."""

    model_config = ConfigDict(frozen=True)

    namespace: Namespace
    key: str

    @property
    def record(self) -> str:
        """Return the record's id."""
        return record_id(self.namespace, self.key)


class Version(NamedRecord):
    """One state of a record; versions are only ever added."""

    version: int = Field(ge=1)
    first: int = Field(
        1,
        ge=1,
        exclude_if=lambda first: first == 1,
        description="The number of the record's first version: above 1 where a record of the same name was "
        "forgotten before, whose numbers are not used again.",
    )
    event: Event
    value: Value
    text: str = Field(description="What search looks at; empty for records that are not searched.")
    at: datetime
    created: datetime = Field(description="When the record's first version was written.")
    change: Change
    live: bool
    shelf: str = Field(
        "",
        pattern=SHELF_PATTERN,
        description="A part of the namespace that can be searched by itself; after a stroke, its section.",
    )
    idempotency_key: str | None = None

    @property
    def reference(self) -> str:
        """Return the reference to this version, for records that are made from it."""
        return f"{self.record}@{self.version}"


class Forgotten(BaseModel):
    """The tombstone of a forgotten record: who erased it and why; no content, no key."""

    model_config = ConfigDict(frozen=True)

    namespace: Namespace = ()
    versions: int = 0
    at: datetime
    reason: str
    actor: str


class Hit(NamedTuple):
    """A found record with its score; `parts` holds the cosine and the BM25 score where known."""

    version: Version
    score: float
    parts: dict[str, float]


class Write(NamedRecord):
    """A requested change of one record: see `make_write`.

    `expected_version` is the version the writer has seen; an insert expects none. `text` of None
    keeps the record's text (a retirement, a restoration of what was there), `shelf` of None its shelf.
    """

    event: Event
    value: Value | None = None
    text: str | None = None
    change: Change
    expected_version: int | None = None
    idempotency_key: str | None = None
    shelf: str | None = Field(None, pattern=SHELF_PATTERN)


class Clock:
    """Give strictly rising UTC times, so that versions written by one process have one order."""

    def __init__(self) -> None:
        self._last = datetime.min.replace(tzinfo=UTC)
        self._guard = threading.Lock()

    def now(self) -> datetime:
        with self._guard:
            self._last = max(datetime.now(UTC), self._last + timedelta(microseconds=1))
            return self._last


def microseconds(moment: datetime) -> int:
    """Return a time as whole microseconds since 1970."""
    # `timestamp() * 1_000_000` would be off by one for some times: a float has 53 bits.
    return int(moment.timestamp()) * 1_000_000 + moment.microsecond


def record_id(namespace: Namespace, key: str) -> str:
    """Return the id of a record's head: the same everywhere for the same namespace and key."""
    return str(uuid.uuid5(LEDGER, SEPARATOR.join((*namespace, key))))


def missing(namespace: Namespace, key: str) -> NotFound:
    """Return the error for a record that is not there."""
    return NotFound(f"There is no record {key} in {'/'.join(namespace)}.")


def gaps(heads: Mapping[str, Version], known: Container[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    """Yield the record and the number of each version, up to those given, that is not known."""
    for record, head in heads.items():
        for number in range(head.first, head.version + 1):
            if (record, number) not in known:
                yield record, number


def receipt_id(record: str, idempotency_key: str) -> str:
    """Return the id of the receipt: the proof that the write with this key was done."""
    return str(uuid.uuid5(uuid.UUID(record), f"receipt{SEPARATOR}{idempotency_key}"))


def tombstone_id(record: str) -> str:
    """Return the id of a forgotten record's tombstone."""
    return str(uuid.uuid5(uuid.UUID(record), "tombstone"))


def check_namespace(namespace: Iterable[str], *, prefix: bool = False) -> Namespace:
    """Return the namespace, or refuse one that could be mistaken for another."""
    parts = tuple(namespace)
    if not parts and not prefix:
        raise BadInput("A namespace needs at least one part.")
    if len(parts) > MAX_NAMESPACE_DEPTH:
        raise BadInput(f"A namespace has at most {MAX_NAMESPACE_DEPTH} parts, not {len(parts)}.")
    for part in parts:
        check_name(part, "part of a namespace")
    return parts


def check_name(name: object, what: str) -> str:
    """Return a key or a namespace part, or say what is wrong with it."""
    if not isinstance(name, str) or not name.strip():
        raise BadInput(f"A {what} must be text that is not empty, not {name!r}.", "Give a name.")
    if len(name) > MAX_NAME_CHARS:
        raise BadInput(f"A {what} has at most {MAX_NAME_CHARS} characters, not {len(name)}.")
    if name == "*":
        raise BadInput(f"'*' cannot be a {what}: it means any part in a search.")
    if UNPRINTABLE.search(name):
        raise BadInput(f"A {what} must not hold control characters: {name!r}.")
    return name


def user_namespace(user: str, *below: str) -> Namespace:
    """Return the namespace ("users", user, …). Raises BadInput."""
    return check_namespace(("users", escaped(check_name(user, "user id")), *below))


def team_namespace(team: str, *below: str) -> Namespace:
    """Return the namespace ("teams", team, …). Raises BadInput."""
    return check_namespace(("teams", escaped(check_name(team, "team")), *below))


def thread_root(user: str) -> Namespace:
    """Return the namespace of the root of a user's thread ids; once it is forgotten, all ids change."""
    return check_namespace(("threads", escaped(check_name(user, "user id"))))


def escaped(name: str) -> str:
    """Return a name as a part of a namespace.

    LangGraph's store API separates the parts by full stops, so a full stop becomes %2E, and a per cent sign
    %25: no two names share a namespace.
    """
    return name.replace("%", "%25").replace(".", "%2E")  # the other order would escape its own signs


def unescaped(part: str) -> str:
    """Return the name that a part of a namespace stands for."""
    return part.replace("%2E", ".").replace("%25", "%")


def check(record: Write | Version) -> None:
    """Refuse what cannot be kept without loss: unclear names, non-finite or huge numbers, huge values.

    Raises BadInput.
    """
    check_namespace(record.namespace)
    check_name(record.key, "key")
    if record.idempotency_key is not None:
        check_name(record.idempotency_key, "idempotency key")
    if unnamed := [each for each in record.change.source.records if not re.fullmatch(REFERENCE, each)]:
        raise BadInput(f"A source is named by its record and version, not {unnamed[0]!r}.")
    nested = [(cast(Any, record.value), 0)]
    while nested:
        each, depth = nested.pop()
        if isinstance(each, dict | list):
            nested += ((item, depth + 1) for item in (each.values() if isinstance(each, dict) else each))
        if depth > MAX_VALUE_DEPTH:
            raise BadInput(f"A value may be nested {MAX_VALUE_DEPTH} levels deep.")
        if isinstance(each, int) and not -(2**63) <= each < 2**63:  # a reader may round it
            raise BadInput(f"A value cannot hold an integer beyond 64 bits: {each}.")
    try:
        size = len(json.dumps([record.value, record.text], ensure_ascii=False, allow_nan=False).encode())
    except (TypeError, ValueError) as fault:
        raise BadInput(f"A value must be plain JSON: {fault}.") from fault
    if size > MAX_VALUE_BYTES:
        raise BadInput(f"A record's value may have {MAX_VALUE_BYTES} bytes; this one has {size}.")


def make_write(*, key: str | None = None, **fields: Any) -> Write:
    """Build a write. A new record's key is given, or decided by the idempotency key, or by chance.

    Raises BadInput, in one line for the user, where a field is not valid.
    """
    try:
        write = Write(key=key or "", **fields)
    except ValidationError as invalid:
        raise BadInput(f"This cannot be stored: {first_fault(invalid)}") from invalid
    if key is not None:
        return write
    if write.event != "insert":
        raise BadInput(f"A key is needed to {write.event} a record.")
    once = write.idempotency_key  # a replayed write must name the same record to find its receipt
    key = uuid.uuid4().hex if once is None else record_id(write.namespace, once).replace("-", "")
    return write.model_copy(update={"key": key})
