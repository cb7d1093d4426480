"""The checker of histories accepts what can have happened, and catches ledgers broken on purpose."""

import asyncio
import json
import os
import random
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from mneme.core.errors import NotFound
from mneme.evals.reliability.damage import Scattered
from mneme.evals.reliability.history import read
from mneme.evals.reliability.history_client import act
from mneme.evals.reliability.linear import NEVER, Operation, Record, impossible, is_linearisable
from mneme.stores.ledger.forgetting import Forgotten
from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.ledger.records import Namespace, Version
from tests.doubles.qdrant_double import QdrantDouble

ENOUGH = 120
"""Operations of a history."""


def op(kind: Any, begun: int, ended: int, result: Any = "done", **more: Any) -> Operation:
    return Operation("k", kind, begun, ended, result, **more)


ONE, TWO = Record(1, "a", True), Record(2, "b", True)
INSERTED = op("insert", 0, 1, text="a")


class TestTheChecker:
    def test_one_after_another(self) -> None:
        updated = op("update", 2, 3, text="b", version=1)
        assert is_linearisable([INSERTED, updated, op("read", 4, 5, seen=TWO)])
        assert not is_linearisable([INSERTED, updated, op("read", 4, 5, seen=ONE)]), "a stale read"
        assert not is_linearisable([INSERTED, updated, op("update", 4, 5, text="c", version=1)]), "lost"
        assert is_linearisable([INSERTED, updated, op("update", 4, 5, "conflict", text="c", version=1)])
        assert not is_linearisable([INSERTED, op("update", 2, 3, "conflict", text="c", version=1)])

    def test_at_the_same_time_either_may_be_first(self) -> None:
        updated = op("update", 2, 9, text="b", version=1)
        for seen in (ONE, TWO):
            assert is_linearisable([INSERTED, updated, op("read", 4, 5, seen=seen)])
        newer_first = [op("read", 3, 4, seen=TWO), op("read", 5, 6, seen=ONE)]
        assert not is_linearisable([INSERTED, updated, *newer_first])

    def test_what_was_killed_may_have_happened_or_not(self) -> None:
        killed = op("update", 2, NEVER, "unknown", text="b", version=1)
        for seen in (ONE, TWO):
            assert is_linearisable([INSERTED, killed, op("read", 90, 91, seen=seen)])
        assert not is_linearisable([INSERTED, op("read", 0, 1, seen=TWO), killed]), "before it began"

    def test_what_is_retired_or_forgotten(self) -> None:
        retired = op("retire", 2, 3, version=1)
        assert is_linearisable([INSERTED, retired, op("read", 4, 5, seen=Record(2, "a", False))])
        assert is_linearisable([INSERTED, retired, op("insert", 4, 5, "conflict", text="c")])
        forgotten = op("forget", 2, 3)
        assert is_linearisable([INSERTED, forgotten, op("update", 4, 5, "missing", version=1)])
        assert is_linearisable([INSERTED, forgotten, op("insert", 4, 5, text="c")])
        assert not is_linearisable([INSERTED, forgotten, op("read", 4, 5, seen=ONE)])
        assert is_linearisable([INSERTED, forgotten, op("forget", 2, 4, "missing")])
        assert not is_linearisable([INSERTED, forgotten, op("forget", 2, 4)]), "it happens once"

    def test_a_number_is_not_used_twice(self) -> None:
        begun = [INSERTED, op("forget", 2, 3)]
        assert is_linearisable([*begun, op("insert", 4, 5, text="c", seen=Record(2, "c", True))])
        assert is_linearisable([*begun, op("insert", 4, 5, text="c", seen=Record(7, "c", True))])
        again = op("insert", 4, 5, text="c", seen=Record(1, "c", True))
        assert not is_linearisable([*begun, again])
        late = op("update", 6, 7, "conflict", text="b", version=1)
        assert is_linearisable([*begun, again._replace(seen=Record(2, "c", True)), late])
        assert not is_linearisable([*begun, again._replace(seen=None), late._replace(result="done")])

    def test_records_are_judged_by_themselves(self) -> None:
        stale = op("read", 4, 5, seen=TWO)._replace(key="other")
        assert impossible([INSERTED, op("read", 2, 3, seen=ONE), stale]) == ["other"]


async def history(ledgers: list[Ledger]) -> list[Operation]:
    """Let several tasks work on the ledgers until there is enough of a history."""
    lines: list[bytes] = []
    enough, numbers = asyncio.Event(), count()

    def tell(line: dict[str, Any]) -> None:
        lines.append(json.dumps(line).encode())
        if len(lines) > 2 * ENOUGH:
            enough.set()

    tasks = [
        asyncio.create_task(act(ledger, random.Random(task), 2, lambda: str(next(numbers)), tell))
        for task, ledger in enumerate(ledgers)
    ]
    await enough.wait()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return read(lines)


class NotComparing(Ledger):
    async def update(self, namespace: Namespace, key: str, *given: Any, **named: Any) -> Version:
        head = await self.get(namespace, key)
        expected = head.version if head is not None else named["expected_version"]
        return await super().update(namespace, key, *given, **named | {"expected_version": expected})


class LosingUpdates(Ledger):
    async def update(self, namespace: Namespace, key: str, *given: Any, **named: Any) -> Version:
        head = await self.get(namespace, key)
        if head is not None and head.live and head.version == named["expected_version"]:
            return head.model_copy(update={"version": head.version + 1, "text": named["text"]})
        return await super().update(namespace, key, *given, **named)


class CountingAnew(Ledger):
    async def forget(self, namespace: Namespace, key: str, **named: Any) -> Forgotten:
        head = await self.get(namespace, key)
        if head is None:
            raise NotFound(key)
        await self.drop([head])
        return Forgotten(at=head.at, reason="", actor="")


class ReadingLate(Ledger):
    async def get(self, namespace: Namespace, key: str) -> Version | None:
        known: dict[str, Version | None] = self.__dict__.setdefault("known", {})
        before, known[key] = known.get(key), await super().get(namespace, key)
        return before


Broken = Callable[[Any, Any], Ledger]


class TestAFolder:
    @pytest.fixture
    def location(self, tmp_path: Path) -> str:
        return str(tmp_path / "ledger")

    async def test_a_ledger_is_linearisable(self, location: str) -> None:
        ledger = await open_ledger(location, Scattered())
        found = await history([ledger] * 6)
        await ledger.close()
        assert impossible(found) == []
        assert {each.kind for each in found if each.result == "done"} >= {"read", "insert", "update"}

    @pytest.mark.parametrize("broken", [NotComparing, LosingUpdates, ReadingLate, CountingAnew])
    async def test_a_broken_ledger_is_caught(self, location: str, broken: Broken) -> None:
        ledger = await open_ledger(location, Scattered())
        found = await history([broken(ledger._engine, ledger._embedder)] * 6)
        await ledger.close()
        assert impossible(found)


class TestAServer:
    @pytest.fixture
    def location(self) -> Iterator[str]:
        if "MNEME_TEST_QDRANT" in os.environ:
            yield os.environ["MNEME_TEST_QDRANT"]
        else:
            with QdrantDouble() as double:
                yield double.url

    async def test_several_clients_are_linearisable(self, location: str) -> None:
        ledgers = [await open_ledger(location, Scattered()) for _ in range(4)]
        found = await history(ledgers)
        for ledger in ledgers:
            await ledger.close()
        assert impossible(found) == []
