"""The ledger as LangGraph's store: the same operations on LangGraph's own store give the same."""

import asyncio
from collections.abc import Sequence
from typing import Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchItem,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from mneme.core.errors import BadInput
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from tests.doubles.embedding import WordEmbedder

NOTES = ("notes", "alice")


def in_memory(embedder: WordEmbedder) -> InMemoryStore:
    async def embed(texts: Sequence[str]) -> list[list[float]]:
        return await embedder.embed_documents(texts)

    return InMemoryStore(index={"dims": embedder.dimension, "embed": embed, "fields": ["content"]})


@pytest.fixture
def store(ledger: Ledger) -> LedgerStore:
    return LedgerStore(ledger, mode="dense")


def plain(result: Any) -> Any:
    """Reduce a result to what must agree: not the times, and scores to four digits."""
    if isinstance(result, list):
        return [plain(each) for each in result]
    if isinstance(result, SearchItem) and result.score is not None:
        return (result.namespace, result.key, result.value, round(result.score, 4))
    return (result.namespace, result.key, result.value) if isinstance(result, Item) else result


SENTENCES = (
    "Max is a Labrador mix who loves fetch",
    "The user drinks green tea in the morning",
    "Anna plays the violin on Sundays",
    "The user moved to Oslo in March",
)
FILLED = [
    PutOp(
        (*NOTES, f"n{n // 2}"),  # the in-memory store lists namespace by namespace
        f"k{n}",
        {
            "content": text,
            "score": n * 1.5,
            "kind": ("a", "b")[n % 2],
            "ok": n > 1,
            "tags": ["a", f"t{n}"],
            "place": {"city": "Oslo" if n == 3 else "Bergen", "zip": n},
            "none": None,
        },
    )
    for n, text in enumerate(SENTENCES)
]
SAME: list[Any] = [
    GetOp((*NOTES, "n0"), "k0"),
    GetOp((*NOTES, "n0"), "k1"),
    GetOp(("nowhere",), "k0"),
    SearchOp(NOTES),
    SearchOp(()),
    SearchOp((*NOTES, "n1")),
    SearchOp(("notes", "ali")),
    SearchOp(NOTES, query="green tea", limit=4),
    SearchOp(NOTES, query="green tea", limit=2, offset=1),
    SearchOp(NOTES, query="Labrador", filter={"kind": "a"}),
    SearchOp(NOTES, limit=2),
    SearchOp(NOTES, offset=3),
    SearchOp(NOTES, filter={"kind": "b"}),
    SearchOp(NOTES, filter={"kind": "b", "ok": True}),
    SearchOp(NOTES, filter={"score": {"$gt": 1.5}}),
    SearchOp(NOTES, filter={"score": {"$gte": 1.5, "$lt": 4}}),
    SearchOp(NOTES, filter={"score": {"$lte": 1}}),
    SearchOp(NOTES, filter={"score": 3}),
    SearchOp(NOTES, filter={"kind": {"$ne": "a"}}),
    SearchOp(NOTES, filter={"kind": {"$eq": "a"}}),
    SearchOp(NOTES, filter={"missing": {"$ne": "a"}}),
    SearchOp(NOTES, filter={"tags": "a"}),
    SearchOp(NOTES, filter={"tags": {"$ne": "a"}}),
    SearchOp(NOTES, filter={"tags": ["a", "t2"]}),
    SearchOp(NOTES, filter={"place": {"city": "Oslo"}}),
    SearchOp(NOTES, filter={"place": {"zip": {"$lt": 2}}}),
    SearchOp(NOTES, filter={"ok": False}),
    SearchOp(NOTES, filter={"none": None}),
    SearchOp(NOTES, filter={"missing": None}),
    ListNamespacesOp(),
    ListNamespacesOp(max_depth=2),
    ListNamespacesOp(limit=1, offset=1),
    ListNamespacesOp((MatchCondition("prefix", NOTES),)),
    ListNamespacesOp((MatchCondition("prefix", ("*", "alice")),)),
    ListNamespacesOp((MatchCondition("prefix", ("other",)),)),
    ListNamespacesOp((MatchCondition("suffix", ("n1",)),)),
    ListNamespacesOp((MatchCondition("suffix", ("alice", "*")), MatchCondition("prefix", ("notes",)))),
]


async def test_reading_agrees_with_langgraphs_own_store(store: LedgerStore, embedder: WordEmbedder) -> None:
    await store.abatch(FILLED)
    for op in SAME:
        other = in_memory(embedder)  # a new one: reading from a namespace makes it there
        await other.abatch(FILLED)
        assert plain(await store.abatch([op])) == plain(await other.abatch([op])), op


async def test_a_query_that_is_a_document_is_refused(store: LedgerStore) -> None:
    with pytest.raises(BadInput, match="8000 characters; this one has 8001"):
        await store.asearch(("a",), query="x" * 8001)


async def test_writing_agrees_with_langgraphs_own_store(store: LedgerStore, embedder: WordEmbedder) -> None:
    other = in_memory(embedder)
    rounds: list[list[Any]] = [
        [PutOp(NOTES, "k", {"content": "one"}), GetOp(NOTES, "k")],  # reads see what was before
        [GetOp(NOTES, "k"), PutOp(NOTES, "k", {"content": "two"}), PutOp(NOTES, "k", {"content": "three"})],
        [GetOp(NOTES, "k"), PutOp(NOTES, "k", None)],
        [GetOp(NOTES, "k"), SearchOp(NOTES), PutOp(NOTES, "k", None), PutOp(NOTES, "never there", None)],
        [PutOp(NOTES, "k", {"content": "back"})],
        [GetOp(NOTES, "k"), SearchOp(NOTES, query="back")],
    ]
    for ops in rounds:
        assert plain(await store.abatch(ops)) == plain(await other.abatch(ops))


async def test_times_are_those_of_the_first_and_the_latest_version(store: LedgerStore) -> None:
    await store.aput(NOTES, "k", {"content": "one"})
    first = await store.aget(NOTES, "k")
    await store.aput(NOTES, "k", {"content": "two"})
    second = await store.aget(NOTES, "k")
    assert first is not None
    assert second is not None
    assert first.created_at == first.updated_at == second.created_at < second.updated_at


async def test_a_put_adds_a_version_and_a_delete_retires(store: LedgerStore, ledger: Ledger) -> None:
    await store.aput(NOTES, "k", {"content": "one"})
    await store.aput(NOTES, "k", {"content": "two"})
    await store.adelete(NOTES, "k")
    await store.aput(NOTES, "k", {"content": "three"})
    history = await ledger.history(NOTES, "k")
    assert [(version.event, version.text) for version in history] == [
        ("insert", "one"),
        ("update", "two"),
        ("retire", "two"),
        ("restore", "three"),
    ]
    assert history[0].change.actor == "store"


async def test_what_is_indexed_is_what_is_found(store: LedgerStore, ledger: Ledger) -> None:
    value = {"content": "about tea", "title": "coffee", "deep": [{"note": "cocoa"}]}
    await store.aput(NOTES, "default", value)
    await store.aput(NOTES, "none", value, index=False)
    await store.aput(NOTES, "fields", value, index=["title", "deep[*].note"])
    await store.aput(NOTES, "no content", {"a": "matcha", "n": 1, "b": ["oolong"]})
    texts = {version.key: version.text for version in await ledger.records(NOTES)}
    assert texts == {
        "default": "about tea",
        "none": "",
        "fields": "coffee\ncocoa",
        "no content": "matcha\noolong",
    }


async def test_racing_puts_all_succeed_and_the_last_stands(store: LedgerStore, ledger: Ledger) -> None:
    await asyncio.gather(*(store.aput(NOTES, "k", {"content": f"by {n}"}) for n in range(8)))
    assert [version.version for version in await ledger.history(NOTES, "k")] == [*range(1, 9)]


async def test_a_filter_passes_over_many_items_to_find_a_few(store: LedgerStore) -> None:
    await store.abatch(
        [PutOp(NOTES, f"k{n}", {"content": "tea", "tags": ["a"] if n < 300 else "a"}) for n in range(303)]
    )
    found = await store.asearch(NOTES, filter={"tags": "a"}, limit=2, offset=1)
    assert [item.key for item in found] == ["k301", "k302"]


async def test_what_the_store_cannot_do_is_said(store: LedgerStore) -> None:
    with pytest.raises(NotImplementedError):
        await store.aput(NOTES, "k", {"content": "tea"}, ttl=5)
    with pytest.raises(NotImplementedError):
        await store.abatch([PutOp(NOTES, "k", {"content": "tea"}, ttl=5)])
    with pytest.raises(InvalidNamespaceError):
        await store.aput((), "k", {})
    with pytest.raises(BadInput):
        await store.aput(NOTES, "k", {"x": object()})
    with pytest.raises(BadInput):
        await store.asearch(NOTES, filter={"x": {"$like": 1}})


async def test_it_can_be_used_without_an_event_loop(store: LedgerStore) -> None:
    def work() -> Item | None:
        store.put(NOTES, "k", {"content": "from a thread"})
        return store.get(NOTES, "k")

    found = await asyncio.to_thread(work)
    assert found is not None
    assert found.value == {"content": "from a thread"}


class State(TypedDict):
    said: str


async def test_a_graph_reads_and_writes_through_its_runtime(store: LedgerStore, ledger: Ledger) -> None:
    async def remember(state: State, runtime: Runtime[None]) -> State:
        assert isinstance(runtime.store, BaseStore)
        await runtime.store.aput(NOTES, "k", {"content": state["said"]})
        [found] = await runtime.store.asearch(NOTES, query=state["said"])
        return {"said": found.value["content"] + "!"}

    graph = StateGraph(State).add_node(remember).add_edge(START, "remember").compile(store=store)
    answer = await graph.ainvoke({"said": "tea"}, {"configurable": {"thread_id": "t9"}})
    assert answer == {"said": "tea!"}
    [version] = await ledger.history(NOTES, "k")
    assert version.change.source.thread == "t9"
