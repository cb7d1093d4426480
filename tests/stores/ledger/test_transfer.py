"""Export and import."""

from pathlib import Path

import pytest

from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.ledger.verifying import repair, verify
from tests.doubles.embedding import WordEmbedder
from tests.doubles.ledgers import ALICE, BOB, SAID, forget, put, texts


class TestTransfer:
    async def filled(self, ledger: Ledger) -> list[str]:
        for n in range(30):
            made = await put(ledger, f"tea {n}", idempotency_key=f"k{n}")
            if n % 2:
                await ledger.update(
                    ALICE, made.key, {"n": n}, text=f"tea {n}!", change=SAID, expected_version=1
                )
            if n % 3 == 0:
                head = await ledger.get(ALICE, made.key)
                assert head is not None
                await ledger.retire(ALICE, made.key, change=SAID, expected_version=head.version)
        return [line async for line in ledger.export()]

    async def test_the_round_trip_is_lossless_and_a_second_one_changes_nothing(
        self, ledger: Ledger, tmp_path: Path, embedder: WordEmbedder
    ) -> None:
        lines = await self.filled(ledger)
        other = await open_ledger(str(tmp_path / "other"), embedder)
        report = await other.import_(lines)
        assert (report.imported, report.unchanged, report.refused) == (len(lines), 0, [])
        assert [line async for line in other.export()] == lines
        assert (await other.import_(lines)).unchanged == len(lines)
        assert [line async for line in other.export()] == lines
        assert set(await texts(other, "tea 7", limit=30)) == set(await texts(ledger, "tea 7", limit=30))
        replay = await put(other, "tea", idempotency_key="k1")
        assert replay.text == "tea 1"
        await other.close()

    async def test_an_older_export_changes_nothing_and_a_newer_one_adds_what_is_new(
        self, ledger: Ledger, tmp_path: Path, embedder: WordEmbedder
    ) -> None:
        made = await put(ledger, "tea")
        older = [line async for line in ledger.export()]
        await ledger.update(ALICE, made.key, {}, text="green tea", change=SAID, expected_version=1)
        newer = [line async for line in ledger.export()]
        assert (await ledger.import_(older)).unchanged == 1
        other = await open_ledger(str(tmp_path / "other"), embedder)
        await other.import_(older)
        report = await other.import_(newer)
        assert (report.imported, report.unchanged) == (1, 1)
        assert await texts(other, "green", mode="bm25") == ["green tea"]
        await other.close()

    async def test_broken_lines_are_named_and_nothing_of_their_record_is_stored(
        self, ledger: Ledger, tmp_path: Path, embedder: WordEmbedder
    ) -> None:
        for text in ("one", "two", "three"):
            made = await put(ledger, text)
            await ledger.update(ALICE, made.key, {}, text=f"{text}!", change=SAID, expected_version=1)
        lines = [line async for line in ledger.export()]
        lines[1] = lines[1][:-10]  # the second version of the first record
        lines[3] = lines[3].replace('"version":2', '"version":3')
        lines += ["", "not JSON", '{"of": 1}', "\x00\x01"]
        other = await open_ledger(str(tmp_path / "other"), embedder)
        report = await other.import_(lines)
        assert [refused.line for refused in report.refused] == [1, 2, 3, 4, 8, 9, 10]
        assert all(refused.reason for refused in report.refused)
        assert [version.text for version in await other.records(ALICE)] == ["three!"]
        assert len([line async for line in other.export()]) == 2
        await other.close()

    async def test_another_history_of_the_same_record_is_refused(self, ledger: Ledger) -> None:
        await put(ledger, "tea", key="k")
        [line] = [line async for line in ledger.export()]
        report = await ledger.import_([line.replace("tea", "coffee")])
        assert [refused.line for refused in report.refused] == [1]
        assert await texts(ledger, "tea", mode="bm25") == ["tea"]

    async def test_what_was_forgotten_stays_forgotten(self, ledger: Ledger) -> None:
        made = await put(ledger, "a secret")
        lines = [line async for line in ledger.export()]
        await forget(ledger, ALICE, made.key, reason="", actor="")
        report = await ledger.import_(lines)
        assert (report.imported, report.forgotten) == (0, 1)
        assert await ledger.count(include_retired=True) == 0

    async def test_lines_outside_the_prefix_are_refused(self, ledger: Ledger) -> None:
        await put(ledger, "tea", BOB)
        lines = [line async for line in ledger.export()]
        report = await ledger.import_(lines, within=ALICE)
        assert "users/bob" in report.refused[0].reason

    @pytest.mark.long
    async def test_many_records_of_one_moment_are_all_exported(self, ledger: Ledger) -> None:
        made = await put(ledger, "tea")
        [line] = [line async for line in ledger.export()]
        lines = [line.replace(made.key, f"key{n}") for n in range(1200)]
        assert (await ledger.import_(lines)).imported == 1200
        exported = [line async for line in ledger.export()]
        assert sorted(exported) == sorted([*lines, line])

    async def test_a_column_of_an_earlier_version_stays_and_is_not_read(
        self, location: str, embedder: WordEmbedder
    ) -> None:
        ledger = await open_ledger(location, embedder)
        made = await put(ledger, "tea", key="k")
        with ledger._log.database.writing() as cursor:
            cursor.execute("ALTER TABLE ledger_heads ADD COLUMN contradicts TEXT")
            cursor.execute("CREATE INDEX ledger_heads_contradicts ON ledger_heads (contradicts)")
            cursor.execute("UPDATE ledger_heads SET contradicts = 'another'")
        await ledger.close()
        ledger = await open_ledger(location, embedder)
        await ledger.update(ALICE, made.key, {}, text="coffee", change=SAID, expected_version=1)
        await forget(ledger, ALICE, (await put(ledger, "milk")).key)
        await ledger.close()
        assert (await verify(location)).problems == []
        assert (await repair(location, embedder)).lost == []
        assert ((found := await verify(location)).records, found.problems) == (1, [])
