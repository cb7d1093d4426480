"""Location of a ledger: a folder or a Postgres URL for its log; the folder or a Qdrant server for its index.

Both in one line: `postgresql://user@host/db|http://a:6333,http://b:6333?replicas=3`. Commas separate the
nodes of a Qdrant cluster; if one is down, the next is asked. The options are `collection`, and for a new
index `shards`, `replicas` and `writes`.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from pydantic import BaseModel, ConfigDict, PositiveInt, ValidationError

from mneme.core.errors import BadInput

POSTGRES_SCHEMES = ("postgresql://", "postgres://")
QDRANT = ("http://", "https://")


@dataclass(frozen=True)
class Place:
    """The log's place, and the address of an index on a server; empty for one in the folder."""

    log: str
    index: str

    @property
    def folder(self) -> Path | None:
        """The folder of the log; None where it is in Postgres."""
        return None if self.log.startswith(POSTGRES_SCHEMES) else Path(self.log)

    @property
    def shown(self) -> str:
        """The location for display, without user and password."""
        log = self.log if self.folder else f"postgresql://{urlsplit(self.log).netloc.rpartition('@')[2]}"
        return f"{log}, {without_users(self.index)}" if self.index else log


def without_users(urls: str) -> str:
    """Return URLs for display, without the user and the password that each may have."""
    return re.sub("//[^/@,]*@", "//", urls)


def place_of(location: str) -> Place:
    """Read a ledger's location. Raises BadInput."""
    log, _, index = location.partition("|")
    if log.startswith(QDRANT):
        raise BadInput(
            "A ledger is not kept on a Qdrant server alone any more: the server is its index.",
            "Set MNEME_INDEX to its URL, and MNEME_LEDGER to a folder or a Postgres URL. What the server "
            "holds is taken over when the new ledger is opened for the first time.",
        )
    if log.startswith(POSTGRES_SCHEMES) and not index:
        raise BadInput(
            "A ledger in Postgres needs an index that all processes share.",
            "Set MNEME_INDEX to the URL of a Qdrant server.",
        )
    return Place(log if log.startswith(POSTGRES_SCHEMES) else str(Path(log).expanduser().resolve()), index)


class Address(BaseModel):
    """The nodes of a server and the collection on it; None where the server or our default decides.

    `writes` is how many of a shard's `replicas` must have taken a write before it counts.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    collection: str = "mneme"
    shards: PositiveInt | None = None
    replicas: PositiveInt | None = None
    writes: PositiveInt | None = None
    urls: tuple[str, ...] = ()

    @property
    def majority(self) -> int | None:
        """Return the write consistency of a new collection: as given, else more than half of the replicas."""
        return self.writes or (self.replicas and self.replicas // 2 + 1)


def address_of(location: str) -> Address:
    """Read the address of an index on a server. Raises BadInput."""
    nodes, _, asked = location.partition("?")
    try:
        address = Address.model_validate(dict(parse_qsl(asked)))
    except ValidationError:
        raise BadInput(
            f"The index's address {location!r} has unknown or invalid options.",
            "There are collection=NAME, shards=N, replicas=N and writes=N.",
        ) from None  # Pydantic's words would show the whole address
    if address.writes and address.writes > (address.replicas or 1):
        raise BadInput(
            f"{address.writes} replicas cannot take a write where there are {address.replicas or 1}.",
            "Lower MNEME_QDRANT_WRITES (writes=N in the address), or raise MNEME_QDRANT_REPLICAS.",
        )
    parts = [urlsplit(each.strip()) for each in nodes.split(",")]
    paths = {each.path.strip("/") for each in parts}  # a path is a proxy's: the nodes of one cluster share it
    if len(paths) > 1 or not all(each.scheme in {"http", "https"} and each.hostname for each in parts):
        raise BadInput(
            f"The index's address {nodes!r} cannot be read.",
            "Give http(s)://host:6333, or several nodes of one cluster, divided by commas.",
        )
    urls = tuple(f"{each.scheme}://{each.netloc}{each.path.rstrip('/')}" for each in parts)
    return address.model_copy(update={"urls": urls})
