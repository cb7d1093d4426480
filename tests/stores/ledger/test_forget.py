"""Erasure: nothing is left, and nothing brings it back."""

import asyncio
import itertools
from functools import partial
from pathlib import Path

import pytest

from mneme.core.errors import BadInput, Conflict, NotFound
from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.ledger.records import Forgotten
from tests.doubles.embedding import WordEmbedder
from tests.doubles.ledgers import ALICE, BOB, SAID, forget, put, rollback, texts


class TestForget:
    async def test_nothing_is_left_but_that_it_was_forgotten(self, ledger: Ledger) -> None:
        made = await put(ledger, "a secret")
        await ledger.update(ALICE, made.key, {}, text="another secret", change=SAID, expected_version=1)
        await put(ledger, "no secret")
        await forget(ledger, ALICE, made.key, reason="asked to", actor="alice")
        assert await ledger.get(ALICE, made.key) is None
        assert await texts(ledger, "secret") == ["no secret"]
        assert [version.text for version in await ledger.records((), include_retired=True)] == ["no secret"]
        assert "secret" not in "".join([line async for line in ledger.export()]).replace("no secret", "")
        [mark] = await ledger.forgotten(ALICE)
        assert (mark.namespace, mark.versions, mark.reason, mark.actor) == (ALICE, 2, "asked to", "alice")
        assert await ledger.forgotten(BOB) == []

    async def test_a_whole_prefix_is_forgotten_and_no_more(self, ledger: Ledger) -> None:
        for n in range(5):
            made = await put(ledger, f"tea {n}")
        await ledger.retire(ALICE, made.key, change=SAID, expected_version=1)
        await put(ledger, "tea", BOB)
        assert await ledger.forget_all(("users", "alice"), reason="", actor="") == 5
        assert await ledger.forget_all(("users", "alice"), reason="", actor="") == 0
        assert [version.namespace for version in await ledger.records((), include_retired=True)] == [BOB]
        with pytest.raises(BadInput):
            await ledger.forget_all((), reason="", actor="")

    async def test_what_is_forgotten_already_is_not_there(self, ledger: Ledger) -> None:
        made = await put(ledger, "a secret")
        both = [forget(ledger, ALICE, made.key, reason=reason, actor="") for reason in ("first", "second")]
        told = [type(each) for each in await asyncio.gather(*both, return_exceptions=True)]
        assert Forgotten in told and {*told} <= {Forgotten, NotFound}
        assert (await ledger.info()).kind != "edge" or NotFound in told, "one after another in a process"
        assert await ledger.forget_records([made], reason="third", actor="") == [None]
        assert len(await ledger.forgotten(ALICE)) == 1

    async def test_a_key_can_be_used_again(self, ledger: Ledger) -> None:
        await put(ledger, "old", key="k")
        await forget(ledger, ALICE, "k", reason="", actor="")
        again = await put(ledger, "new", key="k")
        assert (again.version, again.first) == (2, 2)
        assert await ledger.history(ALICE, "k") == [again]
        changed = await ledger.update(ALICE, "k", {}, text="newer", change=SAID, expected_version=2)
        assert await ledger.history(ALICE, "k") == [again, changed]
        with pytest.raises(NotFound, match="it has 2 to 3"):
            await rollback(ledger, ALICE, "k", 1)
        await forget(ledger, ALICE, "k", reason="", actor="")
        assert sorted(mark.versions for mark in await ledger.forgotten(ALICE)) == [2]
        assert (await put(ledger, "newest", key="k")).version == 4

    async def test_who_read_a_forgotten_record_cannot_change_its_successor(
        self, ledger: Ledger, embedder: WordEmbedder, tmp_path: Path
    ) -> None:
        await put(ledger, "old", key="k")
        exported = [line async for line in ledger.export()]
        await forget(ledger, ALICE, "k", reason="", actor="")
        again = await put(ledger, "new", key="k")
        for change in (ledger.retire, partial(ledger.update, value={}, text="mine")):
            with pytest.raises(Conflict, match="at version 2, not 1"):
                await change(ALICE, "k", change=SAID, expected_version=1)
        lines = [line async for line in ledger.export()]
        other = await open_ledger(str(tmp_path / "other"), embedder)
        assert (await other.import_(lines)).imported == 1
        assert [line async for line in other.export()] == lines
        assert await other.history(ALICE, "k") == [again]
        assert [each.line for each in (await other.import_(exported)).refused] == [1]
        await other.close()

    async def test_a_number_that_was_forgotten_is_not_imported_again(
        self, ledger: Ledger, embedder: WordEmbedder, tmp_path: Path
    ) -> None:
        await put(ledger, "old", key="k")
        await forget(ledger, ALICE, "k", reason="", actor="")
        other = await open_ledger(str(tmp_path / "other"), embedder)
        await put(other, "another", key="k")
        report = await ledger.import_([line async for line in other.export()])
        assert "was forgotten here, up to version 1" in report.refused[0].reason
        assert await ledger.get(ALICE, "k") is None
        await other.close()

    async def test_what_begins_anew_goes_on_counting(self, ledger: Ledger) -> None:
        made = await put(ledger, "", key="k")
        await ledger.forget_records([], reason="", actor="", rewritten=[(made, {"left": 1})])
        head = await ledger.get(ALICE, "k")
        assert head is not None
        assert (head.value, head.version > 1) == ({"left": 1}, True)
        assert await ledger.history(ALICE, "k") == [head]
        for stale in (1, 2):
            with pytest.raises(Conflict):
                await ledger.update(ALICE, "k", {}, text="", change=SAID, expected_version=stale)

    async def test_a_write_of_before_that_comes_again_gives_what_has_begun_anew(self, ledger: Ledger) -> None:
        await put(ledger, "", key="k", idempotency_key="one")
        made = await ledger.update(ALICE, "k", {"said": 1}, text="", change=SAID, expected_version=1)
        await ledger.forget_records([], reason="", actor="", rewritten=[(made, {"left": 1})])
        again = await put(ledger, "", key="k", idempotency_key="one")
        assert (again, again.value) == (await ledger.get(ALICE, "k"), {"left": 1})

    async def test_it_happens_once(self, ledger: Ledger) -> None:
        made, other = await put(ledger, "tea"), await put(ledger, "coffee")
        await forget(ledger, ALICE, made.key, reason="asked to", actor="alice")
        marks = await ledger.forget_records([made, other], reason="late", actor="bob")
        assert [mark and mark.actor for mark in marks] == [None, "bob"]
        assert {mark.actor for mark in await ledger.forgotten(ALICE)} == {"alice", "bob"}
        assert await ledger.forget_records([made], reason="late", actor="bob") == [None]

    async def test_what_is_written_meanwhile_is_forgotten_too(self, ledger: Ledger) -> None:
        made = await put(ledger, "v1")

        written = asyncio.Event()

        async def keep_writing() -> None:
            for version in itertools.count(1):
                await ledger.update(
                    ALICE, made.key, {}, text=f"v{version + 1}", change=SAID, expected_version=version
                )
                written.set()
                await asyncio.sleep(0)

        writer = asyncio.create_task(keep_writing())
        await written.wait()
        await forget(ledger, ALICE, made.key, reason="", actor="")
        with pytest.raises(NotFound):
            await writer
        assert await ledger.get(ALICE, made.key) is None
        assert await ledger.count(include_retired=True) == 0
