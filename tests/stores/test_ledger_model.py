"""The ledger against a plain dictionary: whatever is done in whatever order, both say the same."""

import asyncio
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from mneme.core.errors import Conflict, NotFound
from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.ledger.records import Change
from tests.doubles.embedding import WordEmbedder
from tests.doubles.ledgers import forget, restore, rollback
from tests.doubles.qdrant_double import QdrantDouble
from tests.doubles.qdrant_server import NO_SERVER, URL, drop, new_location

SAID = Change(reason="said so", actor="agent")
NAMESPACES = [("users", "a"), ("users", "a", "x"), ("users", "ab")]
names, keys = st.sampled_from(NAMESPACES), st.sampled_from(["k1", "k2"])
texts = st.sampled_from(["tea", "green tea", "coffee", ""])
Known = tuple[str, bool]  # text, live


class AgainstADictionary(RuleBasedStateMachine):
    """Keep the histories in a dictionary beside the ledger."""

    index: str = ""
    """The address of the index; empty for one in the folder."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp(prefix="mneme-model-"))
        self.known: dict[tuple[tuple[str, ...], str], list[Known]] = {}
        self.before: Counter[tuple[tuple[str, ...], str]] = Counter()  # versions that were forgotten
        self.lines: list[str] = []
        self.ledger = self.opened()

    def opened(self) -> Ledger:
        ledger: Ledger = self.run(open_ledger(self.location, WordEmbedder(dimension=8)))
        return ledger

    @property
    def location(self) -> str:
        return f"{self.folder / 'ledger'}|{self.index}"

    def run(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    def teardown(self) -> None:
        self.run(self.ledger.close())
        self.loop.close()
        shutil.rmtree(self.folder)

    def attempt(self, work: Any, record: tuple[tuple[str, ...], str], allowed: bool, new: Known) -> None:
        """Do it, and expect a refusal where the dictionary says so."""
        try:
            self.run(work)
        except (Conflict, NotFound):
            assert not allowed
        else:
            assert allowed
            self.known.setdefault(record, []).append(new)

    @rule(namespace=names, key=keys, text=texts)
    def insert(self, namespace: tuple[str, ...], key: str, text: str) -> None:
        work = self.ledger.insert(namespace, {"t": text}, text=text, change=SAID, key=key)
        self.attempt(work, (namespace, key), (namespace, key) not in self.known, (text, True))

    def numbered(self, record: tuple[tuple[str, ...], str]) -> dict[int, Known]:
        return dict(enumerate(self.known.get(record, []), self.before[record] + 1))

    @rule(namespace=names, key=keys, text=texts, seen=st.integers(1, 6))
    def update(self, namespace: tuple[str, ...], key: str, text: str, seen: int) -> None:
        history = self.numbered((namespace, key))
        work = self.ledger.update(namespace, key, {"t": text}, text=text, change=SAID, expected_version=seen)
        allowed = bool(history) and max(history) == seen and history[seen][1]
        self.attempt(work, (namespace, key), allowed, (text, True))

    @rule(namespace=names, key=keys, seen=st.integers(1, 6))
    def retire(self, namespace: tuple[str, ...], key: str, seen: int) -> None:
        history = self.numbered((namespace, key))
        allowed = bool(history) and max(history) == seen and history[seen][1]
        work = self.ledger.retire(namespace, key, change=SAID, expected_version=seen)
        self.attempt(work, (namespace, key), allowed, (history[seen][0] if allowed else "", False))

    @rule(namespace=names, key=keys, seen=st.integers(1, 6))
    def restore(self, namespace: tuple[str, ...], key: str, seen: int) -> None:
        history = self.numbered((namespace, key))
        allowed = bool(history) and max(history) == seen and not history[seen][1]
        work = restore(self.ledger, namespace, key, change=SAID, expected_version=seen)
        self.attempt(work, (namespace, key), allowed, (history[seen][0] if allowed else "", True))

    @rule(namespace=names, key=keys, to=st.integers(1, 4))
    def rollback(self, namespace: tuple[str, ...], key: str, to: int) -> None:
        history = self.numbered((namespace, key))
        allowed = to in history and (history[to][1] or history[max(history)][1])
        text, live = history[to] if allowed else ("", True)
        work = rollback(self.ledger, namespace, key, to)
        self.attempt(work, (namespace, key), allowed, (text, live))

    @rule(namespace=names, key=keys)
    def forget(self, namespace: tuple[str, ...], key: str) -> None:
        try:
            self.run(forget(self.ledger, namespace, key, reason="", actor=""))
        except NotFound:
            assert (namespace, key) not in self.known
        else:
            self.before[namespace, key] += len(self.known.pop((namespace, key)))

    @rule()
    def close_and_open(self) -> None:
        self.run(self.ledger.close())
        self.ledger = self.opened()

    @rule()
    def export_and_import(self) -> None:
        async def work() -> None:
            lines = [line async for line in self.ledger.export()]
            report = await self.ledger.import_(lines)
            assert (report.imported, report.refused) == (0, [])

        self.run(work())

    @invariant()
    def histories_agree(self) -> None:
        for namespace in NAMESPACES:
            for key in ("k1", "k2"):
                head = self.run(self.ledger.get(namespace, key))
                history = self.known.get((namespace, key))
                assert (head is None) == (history is None)
                if history:
                    versions = self.run(self.ledger.history(namespace, key))
                    assert [(version.text, version.live) for version in versions] == history
                    assert [version.version for version in versions] == [*self.numbered((namespace, key))]
                    assert versions[-1] == head

    @invariant()
    def views_agree(self) -> None:
        live = {record: history[-1][0] for record, history in self.known.items() if history[-1][1]}
        for prefix in ((), ("users", "a"), ("users", "ab")):
            wanted = {record for record in live if record[0][: len(prefix)] == prefix}
            listed = self.run(self.ledger.records(prefix))
            assert {(version.namespace, version.key) for version in listed} == wanted
            assert self.run(self.ledger.count(prefix)) == len(wanted)
            found = self.run(self.ledger.search(prefix, "tea", mode="dense"))
            searched = {(hit.version.namespace, hit.version.key) for hit in found}
            assert searched == {record for record in wanted if live[record]}
        assert self.run(self.ledger.namespaces()) == sorted({namespace for namespace, _ in live})


class OnADouble(AgainstADictionary):
    """The same, with the index on a server."""

    def __init__(self) -> None:
        self.double = QdrantDouble().__enter__()
        self.index = self.double.url
        super().__init__()

    def teardown(self) -> None:
        super().teardown()
        self.double.__exit__(None, None, None)


class OnQdrant(AgainstADictionary):
    """The same, on a real server."""

    def __init__(self) -> None:
        self.index = new_location()
        super().__init__()

    def teardown(self) -> None:
        super().teardown()
        drop(self.index)


QUICK = settings(
    max_examples=8, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck)
)
TestEdge = AgainstADictionary.TestCase
TestEdge.settings = QUICK
TestServer = OnADouble.TestCase
TestServer.settings = QUICK
TestQdrant = pytest.mark.skipif(not URL, reason=NO_SERVER)(OnQdrant.TestCase)
TestQdrant.settings = QUICK
