"""The index of teams: a collection on a Qdrant server or cluster that all processes share.

A writer brings the index to the end of the log before its write is acknowledged, and notes the last indexed
entry in the log. A search does the same if another writer has not done so yet. So a point can be written
twice, or late: each carries the last log entry that was read for it, and an older point never replaces a
newer one; a writer that brought back the point of a forgotten record removes it again.

On a cluster a write counts when every active replica has it, and a replica that missed one is no longer
active: so reading from one replica is enough. Writes to a shard go through a leader that can change
(`medium`); with `strong` the leader is fixed, and writes fail when its node is down.
"""

import logging
import threading
import time
from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, Literal
from uuid import uuid4

import httpx

from mneme.core.errors import LedgerMismatch, StorageFailure
from mneme.stores.database import Database
from mneme.stores.ledger.addresses import Address, address_of, without_users
from mneme.stores.ledger.index import (
    BATCH_SIZE,
    STAMP_ID,
    Engine,
    LogChanges,
    Point,
    Scores,
    agrees,
    build,
    changes,
    differences,
    point_in,
    stamp_in,
    stamp_of,
)
from mneme.stores.ledger.log import commit
from mneme.stores.ledger.query import DENSE, SPARSE, ClusterLayout
from mneme.stores.ledger.reading import State, check_embedder, check_format, heads_of, state_of
from mneme.stores.ledger.upgrading import FORMER_FORMAT, Manifest, bring_in

OLDEST = (1, 19)  # the first version with conditional upserts and IDF per scope
CREATE_ATTEMPTS = 5
ORDERED = {"wait": "true", "ordering": "medium"}
BY_PLACE = {"type": "keyword", "is_tenant": True, "prefix": True}
QDRANT_SECONDS = 30
RETRY_SECONDS = 0.3
"""Seconds before another node is asked: by then the cluster has noticed that one is down."""
READY_SECONDS = 3
"""Maximum seconds that a node may take to report that it is ready."""
ATTEMPTS_PER_NODE = 4
"""Number of attempts at each of several nodes."""

log = logging.getLogger(__name__)


class Nodes:
    """A client of a server's nodes; its methods block, and are safe from any thread.

    It asks one node, and the next if that one fails. A request of an index can safely be sent twice: an older
    point never replaces a newer one, and all other requests are idempotent.
    """

    def __init__(self, address: Address, api_key: str) -> None:
        self._urls = address.urls
        self._client = httpx.Client(
            headers={"api-key": api_key} if api_key else {},
            timeout=QDRANT_SECONDS,
            verify=any(url.startswith("https:") for url in address.urls),  # loading certificates takes 20 ms
        )
        self._current = 0

    def choose(self) -> None:
        """Choose the first node that is ready: one that has just restarted may lack recent writes."""
        if len(self._urls) > 1 and not self._is_ready(0):
            self._go_on(0)

    def call(self, method: str, path: str, body: Any = None, **params: str) -> Any:
        """Return the answer of the first node that gives one. Raises StorageFailure."""
        for left in reversed(range(ATTEMPTS_PER_NODE * len(self._urls) if len(self._urls) > 1 else 1)):
            asked = self._current
            try:
                answer = self._client.request(method, self._urls[asked] + path, json=body, params=params)
                if answer.is_success:
                    return answer.json()
                if not left or answer.status_code < 500:  # another node would refuse it as well
                    raise _refused(self._urls[asked], answer)
            except (httpx.HTTPError, OSError, ValueError) as failure:
                if not left:
                    nodes = without_users(", ".join(self._urls))
                    raise StorageFailure(
                        f"The Qdrant server at {nodes} does not answer: {failure}.",
                        "Start it, or check MNEME_INDEX.",
                    ) from failure
            time.sleep(RETRY_SECONDS)
            self._go_on(asked)
        raise AssertionError("the last attempt returns or raises")

    def close(self) -> None:
        self._client.close()

    def _go_on(self, asked: int) -> None:
        """Switch to the next node that is ready, unless another request has switched already."""
        count = len(self._urls)
        for number in [(asked + step) % count for step in range(1, count + 1)]:
            if self._current != asked:
                return
            if self._is_ready(number):
                self._current = number
                return

    def _is_ready(self, number: int) -> bool:
        """Return whether a node is up and has caught up with the writes that it missed; this needs no key."""
        try:
            return self._client.get(f"{self._urls[number]}/readyz", timeout=READY_SECONDS).is_success
        except httpx.HTTPError:
            return False


def _request(limit: int, query: Any, prefetches: Any = None, **more: Any) -> dict[str, Any]:
    asked = query if "using" in query else {"query": query, "prefetch": prefetches}
    return {"limit": limit} | asked | more


def _node(name: str, parts: Any = None, **named: Any) -> dict[str, Any]:
    """Return a part of a formula."""
    return {name: named if parts is None else parts}


REST = SimpleNamespace(
    **dict.fromkeys(("Filter", "FieldCondition", "MatchValue", "MatchPrefix", "MatchAny"), dict),
    **dict.fromkeys(("RangeFloat", "RangeDateTime", "SparseVector", "IdfParams", "Formula"), dict),
    **dict.fromkeys(("QueryRequest", "Prefetch"), _request),
    HasIdCondition=lambda records: {"has_id": [*records]},
    SearchParams=lambda idf=None, **_: {"idf": idf},  # a server searches its HNSW graph, never exactly
    Query=SimpleNamespace(Nearest=dict),
    Fusion=SimpleNamespace(Rrf=partial(_node, "rrf")),
    Expression=SimpleNamespace(
        Constant=float,
        Variable=str,
        Sum=partial(_node, "sum"),
        Mult=partial(_node, "mult"),
        Div=partial(_node, "div"),
        Decay=_node,
    ),
    DecayKind=SimpleNamespace(Exp="exp_decay"),
)
"""Builds requests of the REST interface under the names of the embedded engine's types."""


class ServerIndex(Engine):
    """The collection behind an alias; connected on first use. Its methods block."""

    types = REST

    def __init__(self, address: str, database: Database, api_key: str) -> None:
        self._address, self._database = address_of(address), database
        self._nodes = Nodes(self._address, api_key)
        self.name = f"{self._address.collection}-index"
        self._following, self._connecting = threading.Lock(), threading.Lock()
        self._is_connected = False
        self.state = database.read(state_of)

    def _call(self, method: str, path: str, body: Any = None, name: str = "", **params: str) -> Any:
        """Send a request about this collection, or about the one of the given name."""
        path = f"/collections/{name or self.name}{path}"
        return self._nodes.call(method, path, body, **params)["result"]

    def opened(self) -> Engine:
        """Return this index, connected and built if necessary. Raises LedgerMismatch, StorageFailure."""
        with self._connecting:
            if not self._is_connected:
                self._connect()
                self._take_over()
                if why := self._unusable():
                    if why != "it is not whole":  # nothing to warn of: a new ledger has no index yet
                        log.warning("The index %s is built anew from the log: %s.", self.name, why)
                    self._build(only_where_unusable=True)
                self._follow()
                self._is_connected = True
        return self

    def follow(self) -> None:
        """Bring the index to the end of the log."""
        self.opened()
        self._follow()

    def _follow(self) -> None:
        state = self._database.read(state_of)
        check_embedder(self.name, state, self.state.embedder, self.state.dimension)
        if state.indexed < state.seq:
            with self._following:
                after = self._database.read(state_of).indexed
                found = self._database.read(changes, after)
                self._apply(self.name, found)
                # Never backward: another process may have been faster.
                followed = "UPDATE ledger_state SET indexed = ? WHERE indexed >= ? AND indexed < ?"
                with self._database.writing() as cursor:
                    cursor.execute(followed, (found.state.seq, after, found.state.seq))
        self.state = state

    def written(self) -> None:
        """Follow the latest writes; if the server is away, the next search does so, and the write is safe."""
        try:
            self.follow()
        except StorageFailure as failure:
            log.warning("%s What was written is safe, and is found once the server is back.", failure)

    erased = written

    def _apply(self, name: str, found: LogChanges) -> None:
        """Apply changes of the log to a collection, without records forgotten or retired since the read."""
        self._upsert(name, found.points, found.state)
        ids = [point.id for point in found.points]
        heads = self._database.read(heads_of, ids, searched=True)
        gone = [*found.gone, *(each for each in ids if each not in heads)]
        for start in range(0, len(gone), BATCH_SIZE):
            self._call(
                "POST", "/points/delete", {"points": gone[start : start + BATCH_SIZE]}, name, **ORDERED
            )
        # Last: a collection with this stamp has all that comes before it.
        self._upsert(name, [stamp_of(found.state)], found.state)

    def _upsert(self, name: str, points: Sequence[Point], state: State) -> None:
        """Write points, each with the last log entry that was read for it."""
        older = {"must": [{"key": "seq", "range": {"lte": state.seq}}]}
        for start in range(0, len(points), BATCH_SIZE):
            some = [_point(each, state.seq) for each in points[start : start + BATCH_SIZE]]
            self._call("PUT", "/points", {"points": some, "update_filter": older}, name, **ORDERED)

    def ask(self, requests: Sequence[Any]) -> list[Scores]:
        answers = self._call("POST", "/points/query/batch", {"searches": requests}) if requests else []
        return [{str(each["id"]): each["score"] for each in answer["points"]} for answer in answers]

    def index_field(self, path: str, schema: Literal["keyword", "float"]) -> None:
        self._call("PUT", "/index", {"field_name": path, "field_schema": schema}, wait="true")

    def read_stamp(self) -> State | None:
        found = self._call("POST", "/points", {"ids": [STAMP_ID], "with_payload": True})
        return stamp_in(found[0]["payload"] if found else {})

    def page(self, after: Any, name: str = "") -> tuple[list[Point], Any]:
        asked = {"limit": BATCH_SIZE, "offset": after, "with_payload": True, "with_vector": True}
        found = self._call("POST", "/points/scroll", asked, name)
        points = [point_in(each["id"], each.get("payload"), each.get("vector")) for each in found["points"]]
        return points, found.get("next_page_offset")

    def verify(self) -> list[str]:
        """Compare the index with the log; return the differences in words."""
        self.opened()
        if why := self._unusable():
            return [f"the index {self.name} must be built anew: {why}"]
        wrong: list[str] = []
        for _ in range(CREATE_ATTEMPTS):  # others may be writing
            self.follow()
            if not (wrong := self._database.read(differences, self.points())):
                break
        return wrong

    def rebuild(self) -> None:
        """Build a new collection and point the alias to it; writers wait only for the last changes."""
        self._connect()
        self._build()

    def _build(self, *, only_where_unusable: bool = False) -> None:
        new = f"{self.name}-{uuid4().hex[:8]}"
        self._make(new, (before := self._database.read(state_of)).dimension)
        state = build(self._database, lambda points: self._upsert(new, points, before))
        found = self._database.read(changes, state.seq)  # unlocked: most of the writes since
        self._apply(new, found)
        with self._following, self._database.writing() as cursor:
            state_of(cursor, self._database.locked)
            found = changes(cursor, found.state.seq)
            if only_where_unusable and not self._unusable(found.state):  # another process was first
                self._call("DELETE", "", name=new)
                return
            check_embedder(self.name, found.state, state.embedder, state.dimension)
            self._apply(new, found)
            cursor.execute("UPDATE ledger_state SET indexed = ?", (found.state.seq,))
            self._switch(self._resolve(self.name), new)
        self.indexed = frozenset()  # the new collection has no indexes of fields yet

    def close(self) -> None:
        self._nodes.close()

    def _unusable(self, state: State | None = None) -> str:
        """Return the reason why the index is unusable; empty if it is usable."""
        stamp = self.read_stamp() if self._resolve(self.name) else None
        with self._database.reading() as cursor:
            state = state or state_of(cursor)
            why = agrees(cursor, stamp)
        if stamp is not None and not why and stamp.seq < state.indexed:
            return f"it ends at entry {stamp.seq}, and had followed the log to {state.indexed}"
        return why

    def _resolve(self, name: str) -> str | None:
        """Return the collection behind an alias; None if there is no such alias."""
        aliases = self._nodes.call("GET", "/aliases")["result"]["aliases"]
        return {each["alias_name"]: each["collection_name"] for each in aliases}.get(name)

    def _make(self, name: str, dimension: int) -> None:
        # With an alias of that name it is an index, which another process may just have made.
        if self._call("GET", "/exists")["exists"] and self._resolve(self.name) is None:
            raise LedgerMismatch(
                f"The server has a collection {self.name} that is not an index; nothing was touched.",
                "Name another one: add ?collection=NAME to the address.",
            )
        layout = {
            "vectors": {DENSE: {"size": dimension, "distance": "Cosine"}},
            "sparse_vectors": {SPARSE: {"modifier": "idf"}},
            "shard_number": self._address.shards,
            "replication_factor": self._address.replicas,
            "write_consistency_factor": self._address.majority,
            "hnsw_config": {"payload_m": 16},  # HNSW links within each namespace
        }
        self._call("PUT", "", layout, name)
        self._call("PUT", "/index", {"field_name": "scope", "field_schema": BY_PLACE}, name, wait="true")

    def _switch(self, old: str | None, new: str) -> None:
        remove = {"delete_alias": {"alias_name": self.name}}
        create = {"create_alias": {"collection_name": new, "alias_name": self.name}}
        actions = [*([remove] if old else []), create]  # one request: there is no moment without the alias
        self._nodes.call("POST", "/collections/aliases", {"actions": actions})
        if old:
            self._call("DELETE", "", name=old)

    def _connect(self) -> None:
        """Choose a node; refuse a server that would ignore the conditions of upserts."""
        self._nodes.choose()
        version = self._nodes.call("GET", "/")["version"]
        numbers = tuple(int(number) for number in version.split("-")[0].split(".")[:2])
        if numbers < OLDEST:
            raise StorageFailure(
                f"The Qdrant server has version {version}.",
                f"Mneme needs {'.'.join(map(str, OLDEST))} or newer: conditional writes.",
            )

    def layout(self) -> ClusterLayout:
        """Return how the collection is distributed over the nodes."""
        self.opened()
        params = self._call("GET", "")["config"]["params"]
        state = self._call("GET", "/cluster")
        here = [each | {"peer_id": state["peer_id"]} for each in state["local_shards"]]
        return ClusterLayout(
            shards=params.get("shard_number") or 1,
            replicas=params.get("replication_factor") or 1,
            writes=params.get("write_consistency_factor") or 1,
            not_in_use=[
                f"shard {each['shard_id']} on node {each['peer_id']}: {each['state']}"
                for each in (*here, *state["remote_shards"])
                if each["state"] != "Active"
            ],
        )

    def _take_over(self) -> None:
        """Import a ledger that an older version kept on this server into a log that is still empty."""
        state = self._database.read(state_of)
        older = self._resolve(self._address.collection)
        if state.seq or older is None:
            return
        points = [(point.id, point.payload) for point in self.points(older)]
        manifests = [payload["manifest"] for _, payload in points if "manifest" in payload]
        if manifests:
            check_format(older, Manifest.model_validate_json(manifests[0]).format, FORMER_FORMAT)
            commit(self._database, partial(bring_in, points=points))
            log.warning("The collection %s was taken over, and can be deleted now.", older)


def _point(point: Point, seq: int) -> dict[str, Any]:
    vectors: dict[str, Any] = {SPARSE: point.words._asdict()} if point.words else {}
    if point.dense is not None:
        vectors[DENSE] = point.dense
    return {"id": point.id, "vector": vectors, "payload": {**point.payload, "seq": seq}}


def _refused(url: str, answer: httpx.Response) -> StorageFailure:
    """Return the error for a refusal by the server, or by a proxy in front of it."""
    url = without_users(url)
    try:
        reason = str(answer.json()["status"]["error"])
    except (ValueError, LookupError, TypeError):
        reason = answer.reason_phrase
    if answer.status_code == httpx.codes.TOO_MANY_REQUESTS:
        wait = answer.headers.get("retry-after", "some")
        return StorageFailure(
            f"The Qdrant server at {url} takes no more requests now: {reason}.",
            f"Try again in {wait} s, or raise its limits.",
        )
    return StorageFailure(
        f"The Qdrant server at {url} refused: {answer.status_code} {reason}.",
        "Check MNEME_LEDGER_API_KEY." if answer.status_code in (401, 403) else "See its log.",
    )
