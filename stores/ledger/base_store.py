"""The ledger as LangGraph's `BaseStore`: for `runtime.store`, the `/store` API and Studio.

A put adds a version and a delete retires the record, so the history stays; `Ledger.forget_records` erases.
Differences from LangGraph's in-memory store: a record has one text for search, made of the indexed fields;
items without text are not found by a query; namespaces without items are not listed; values are plain JSON.
"""

import asyncio
import threading
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from functools import lru_cache
from itertools import count
from typing import Any, cast

from langchain_core.runnables.config import ensure_config
from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    get_text_at_path,
    tokenize_path,
)

from mneme.core.errors import BadInput
from mneme.stores.ledger import query
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.log import retry_on_conflict
from mneme.stores.ledger.query import MAX_QUERY_CHARS, Mode, Test, tests_of
from mneme.stores.ledger.records import Change, Namespace, Source, Value, Version, Write, make_write, texts_in

STORE_RANGES = {f"${name}": query.COMPARISONS[name] for name in query.RANGES}
EXTRA_HITS = 100


class LedgerStore(BaseStore):
    """A ledger as a LangGraph store; several may share one ledger. Safe from any event loop and thread.

    `mode` says how a query ranks. The score of an item is its cosine in every mode; None if only words were
    compared.
    """

    supports_ttl = False

    def __init__(self, ledger: Ledger, *, actor: str = "store", mode: Mode = "hybrid") -> None:
        self.ledger, self._actor, self._mode = ledger, actor, mode

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run the operations from a thread without an event loop."""
        return asyncio.run_coroutine_threadsafe(self.abatch(ops), _background_loop()).result()

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run the operations: first all reads, concurrently, then all writes, as one batch."""
        listed = list(ops)
        puts = {(op.namespace, op.key): op for op in listed if isinstance(op, PutOp)}
        results = await asyncio.gather(*map(self._read, listed))
        if puts:
            await self._put(list(puts.values()))
        return list(results)

    async def _read(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            version = await self.ledger.get(op.namespace, op.key)
            return Item(**_fields(version)) if version and version.live else None
        if isinstance(op, SearchOp):
            return await self._search(op)
        if isinstance(op, ListNamespacesOp):
            conditions, namespaces = op.match_conditions or (), await self.ledger.namespaces()
            matching = [each for each in namespaces if all(_matches(each, match) for match in conditions)]
            cut = sorted({each[: op.max_depth] for each in matching})
            return cast(Result, cut[op.offset : op.offset + op.limit])
        if isinstance(op, PutOp):
            return None
        raise BadInput(f"The store has no operation {type(op).__name__}.")

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        """Read pages until enough items pass the whole filter, of which the engine can test only a part."""
        if len(op.query or "") > MAX_QUERY_CHARS:
            raise BadInput(
                f"A query may have {MAX_QUERY_CHARS} characters; this one has {len(op.query or '')}.",
                "Send a part of it.",
            )
        needed = op.offset + op.limit
        tests = [*tests_of(op.filter or {}, ("$eq", "$ne", *STORE_RANGES))]
        size = needed if not tests else needed + EXTRA_HITS
        found: list[SearchItem] = []
        for start in count(0, max(1, size)):
            page: dict[str, Any] = {"filter": _testable(tests), "limit": size, "offset": start}
            if op.query:
                hits = await self.ledger.search(op.namespace_prefix, op.query, mode=self._mode, **page)
                items = [SearchItem(**_fields(hit.version), score=hit.parts.get("dense")) for hit in hits]
            else:
                versions = await self.ledger.records(op.namespace_prefix, **page)
                items = [SearchItem(**_fields(version)) for version in versions]
            found += [item for item in items if all(_passes(item.value, test) for test in tests)]
            if len(items) < size or len(found) >= needed:
                break
        return found[op.offset : needed]

    @retry_on_conflict
    async def _put(self, ops: Sequence[PutOp]) -> None:
        """Write over the current version, whatever it is: a store's caller has no version to compare."""
        heads = await asyncio.gather(*(self.ledger.get(op.namespace, op.key) for op in ops))
        writes = [self._write(op, head) for op, head in zip(ops, heads, strict=True)]
        await self.ledger.write([write for write in writes if write is not None])

    def _write(self, op: PutOp, head: Version | None) -> Write | None:
        if op.ttl is not None:
            raise NotImplementedError("The ledger keeps every version: there is no TTL.")
        if op.value is None and (head is None or not head.live):
            return None
        gone = op.value is None
        thread = ensure_config().get("configurable", {}).get("thread_id", "")
        event = "retire" if gone else "insert" if head is None else "update" if head.live else "restore"
        value = None if gone else dict(op.value or {})
        return make_write(
            event=event,
            namespace=op.namespace,
            key=op.key,
            value=value,
            text=None if value is None else _text(value, op.index),
            change=Change(
                reason="put through LangGraph's store", actor=self._actor, source=Source(thread=str(thread))
            ),
            expected_version=head and head.version,
        )


@lru_cache(maxsize=1)
def _background_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="ledger-store", daemon=True).start()
    return loop


def _fields(version: Version) -> dict[str, Any]:
    return {
        "namespace": version.namespace,
        "key": version.key,
        "value": deepcopy(version.value),  # callers may change it, and read versions are shared
        "created_at": version.created,
        "updated_at": version.at,
    }


def _text(value: Value, index: object) -> str:
    """Return the text for search: of the given fields, or the content, or all texts in the value."""
    if index is False:
        return ""
    if isinstance(index, list):
        return "\n".join(text for path in index for text in get_text_at_path(value, tokenize_path(path)))
    content = value.get("content")
    return content if isinstance(content, str) else "\n".join(texts_in(value))


def _matches(namespace: Namespace, match: MatchCondition) -> bool:
    if len(namespace) < len(match.path):
        return False
    step = -1 if match.match_type == "suffix" else 1
    pairs = zip(namespace[::step], match.path[::step], strict=False)
    return all(wanted in ("*", part) for part, wanted in pairs)


def _testable(tests: Sequence[Test]) -> dict[str, dict[str, Any]]:
    """Return the part of a filter that the engine can test; the rest is tested here."""
    found: dict[str, dict[str, Any]] = {}
    for (name, *below), operator, bound in tests:
        kinds = (str, int, float) if operator == "$eq" else (int, float) if operator in STORE_RANGES else ()
        if isinstance(bound, kinds) and not below and (operator == "$eq" or not isinstance(bound, bool)):
            found.setdefault(name, {})[operator] = bound
    return found


def _passes(value: Any, test: Test) -> bool:
    """Compare like LangGraph's stores: exactly, or by operators, into nested objects."""
    path, operator, operand = test
    for name in path:
        if not isinstance(value, Mapping):
            return False
        value = value.get(name)
    if operator in STORE_RANGES:
        return isinstance(value, (int, float)) and STORE_RANGES[operator](value, float(operand))
    return bool(value == operand) is (operator == "$eq")
