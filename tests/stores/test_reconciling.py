"""What a killed process leaves, and what the engine rounds, is no damage, and shows in no search."""

import random
import shutil
from pathlib import Path
from uuid import uuid4

import pytest

from mneme.stores.ledger.ledger import open_ledger
from mneme.stores.ledger.query import Ranking
from mneme.stores.ledger.records import Change
from mneme.stores.ledger.sealing import mark_open
from mneme.stores.ledger.sparse import copy_folder
from mneme.stores.ledger.verifying import verify
from tests.doubles.embedding import WordEmbedder

SAID = Change(reason="said so", actor="agent")
ALICE = ("users", "alice", "memories")
BY_WEIGHT = Ranking(fields={"weight": 1.0})


async def make(folder: Path, embedder: WordEmbedder, weights: list[float]) -> None:
    """Write a closed ledger in which the weight of each record is indexed."""
    ledger = await open_ledger(str(folder), embedder)
    await ledger.search(ALICE, "tea", mode="dense", ranking=BY_WEIGHT)
    for number, weight in enumerate(weights):
        text = f"tea {number}"
        await ledger.insert(ALICE, {"weight": weight}, text=text, change=SAID, key=f"k{number}")
    await ledger.close()


async def test_a_number_of_17_digits_is_no_damage(tmp_path: Path, embedder: WordEmbedder) -> None:
    source = random.Random(1)
    await make(tmp_path / "ledger", embedder, [100 * source.random() for _ in range(150)])
    assert (await verify(str(tmp_path / "ledger"))).problems == []
    mark_open(tmp_path / "ledger" / "generation-000001")
    ledger = await open_ledger(str(tmp_path / "ledger"), embedder)
    assert await ledger.count() == 150
    await ledger.close()


@pytest.mark.parametrize("first", ["0" * 8, "f" * 8], ids=["older first", "newer first"])
async def test_records_that_were_being_moved_are_in_one_place_again(
    tmp_path: Path, embedder: WordEmbedder, first: str
) -> None:
    """A second segment has records as they were before: with words, numbers and scopes of then."""
    folder, generation = tmp_path / "ledger", tmp_path / "ledger" / "generation-000001"
    await make(folder, embedder, [1.0, 2.0, 3.0, 4.0, 5.0])
    [before] = copied(generation, tmp_path / "before").glob("segments/*")
    ledger = await open_ledger(str(folder), embedder)
    await ledger.update(ALICE, "k0", {"weight": 0.5}, text="coffee", change=SAID, expected_version=1)
    await ledger.update(ALICE, "k1", {"weight": 9.0}, text="coffee", change=SAID, expected_version=1)
    await ledger.update(ALICE, "k2", {}, text="coffee", change=SAID, expected_version=1)
    await ledger.retire(ALICE, "k3", change=SAID, expected_version=1)
    lines = sorted([line async for line in ledger.export()])
    await ledger.close()
    copied(before, generation / "segments" / f"{first}{str(uuid4())[8:]}")
    mark_open(generation)
    assert (await verify(str(folder))).problems == []
    for _ in range(2):
        ledger = await open_ledger(str(folder), embedder)
        assert sorted([line async for line in ledger.export()]) == lines
        found = {
            text: {hit.version.key for hit in await ledger.search(ALICE, text, mode="bm25")}
            for text in ("tea", "coffee")
        }
        assert found == {"tea": {"k4"}, "coffee": {"k0", "k1", "k2"}}
        ranked = await ledger.search(ALICE, "coffee", mode="dense", ranking=BY_WEIGHT)
        assert [hit.version.key for hit in ranked] == ["k1", "k4", "k0", "k2"]
        await ledger.close()
    assert (await verify(str(folder))).problems == []
    assert not generation.exists(), "there is another generation in its place"


def copied(source: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    copy_folder(source, target)
    return target
