"""Reading a ledger that another process has open."""

from pathlib import Path

import pytest
from mneme.stores.ledger.beside import open_beside

from mneme.core.errors import LedgerInUse, NotWritable, StorageFailure
from mneme.stores.ledger.ledger import open_ledger
from mneme.stores.ledger.records import Change
from tests.doubles.embedding import WordEmbedder

ALICE = ("users", "alice")
CHANGE = Change(reason="told", actor="test")
WHY = LedgerInUse("It is in use.", "Wait.")


async def test_everything_written_so_far_is_read_and_nothing_is_written(tmp_path: Path) -> None:
    place = tmp_path / "ledger"
    ledger = await open_ledger(str(place), WordEmbedder())
    tea = await ledger.insert(ALICE, {"drink": "tea"}, text="tea", change=CHANGE)
    gone = await ledger.insert(ALICE, {"drink": "rum"}, text="rum", change=CHANGE)
    await ledger.update(ALICE, tea.key, {"drink": "coffee"}, text="coffee", change=CHANGE, expected_version=1)
    await ledger.forget(ALICE, gone.key, reason="asked", actor="test")
    files = sorted(place.rglob("*"))

    beside = await open_beside(place, WHY)
    assert await beside.records(ALICE) == await ledger.records(ALICE)
    assert await beside.history(ALICE, tea.key) == await ledger.history(ALICE, tea.key)
    assert [line async for line in beside.export()] == [line async for line in ledger.export()]
    (hit,) = await beside.search(ALICE, "coffee")
    assert (hit.version.key, (await beside.info()).location) == (tea.key, str(place))
    with pytest.raises(NotWritable, match="in use"):
        await beside.insert(ALICE, {"drink": "milk"}, text="milk", change=CHANGE)

    await ledger.insert(ALICE, {"drink": "milk"}, text="milk", change=CHANGE)
    assert (await beside.count(), await ledger.count()) == (1, 2), "it is a copy"
    await beside.close()
    assert sorted(place.rglob("*")) == files
    await ledger.close()


async def test_there_is_nothing_to_read_before_the_first_record(tmp_path: Path) -> None:
    with pytest.raises(StorageFailure):
        await open_beside(tmp_path / "ledger", WHY)
