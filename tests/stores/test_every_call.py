"""Every call that changes a file: the power fails before it, it fails itself, or the process is killed.

Mapped memory fails by a signal, not by a call: that is not tried.
"""

import asyncio
import errno
import json
import os
import random
import shutil
import sys
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mneme.core.errors import MnemeError
from mneme.models.embedding.embedders import open_embedder
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from mneme.stores.ledger.ledger import open_ledger
from mneme.stores.ledger.verifying import repair, verify
from tests.doubles import ledger_writer
from tests.doubles.calls import GO_ON, KILLED, Call, Watched, compiled
from tests.doubles.command_line import run_mneme
from tests.doubles.copying import copy_folder
from tests.doubles.embedding import WordEmbedder
from tests.doubles.ledger_files import ROOT, check, files_with
from tests.doubles.power import Disk
from tests.doubles.quiet import quiet

CALLS, EVERY = 1500, 25
"""Calls of the writer that are watched, and one in how many is tried."""
COMMANDS = ("remember", "change", "forget", "list")
ATTEMPTS = 3
"""Calls of each command that fail."""
UNCLEAR = ("Traceback", "panicked", "Unexpected ")


@pytest.fixture(scope="module")
def calls_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("calls"))


def test_what_a_cut_leaves(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "disk")
    (disk.root / "below").mkdir(parents=True)
    numbers = count()

    def left(*synced: str, kept: bool = False) -> dict[str, str]:
        for name in synced:
            disk.note(Call("sync", disk.root / name))
        place = tmp_path / str(next(numbers))
        disk.cut(place, lambda: kept)
        return {path.name: path.read_text() for path in place.rglob("*") if path.is_file()}

    a, new = disk.root / "below" / "a", disk.root / "below" / "new"
    a.write_text("one")
    assert (left(), left(kept=True)) == ({}, {"a": "one"})
    assert (left("below/a"), left("below", "")) == ({}, {"a": "one"})
    new.write_text("two")
    assert (left("below/new"), left(kept=True)) == ({"a": "one"}, {"a": "one", "new": "two"})
    new.rename(a)
    assert (left(), left("below")) == ({"a": "one"}, {"a": "two"})
    a.unlink()
    assert (left(), left("below")) == ({"a": "two"}, {})


async def save_threads(file: Path) -> None:
    """Save one checkpoint after another, and print each thread that was saved."""
    async with open_checkpointer(str(file)) as saver:
        for number in count():
            saved: Any = {
                "v": 4,
                "id": f"1f0c0000-0000-6000-8000-{number:012d}",
                "ts": "2026-01-01T00:00:00+00:00",
                "channel_values": {"messages": [f"{number} says {word}" for word in range(100)]},
                "channel_versions": {"messages": "1"},
                "versions_seen": {},
            }
            config: Any = {"configurable": {"thread_id": str(number), "checkpoint_ns": ""}}
            await saver.aput(config, saved, {"source": "loop", "step": 1}, {"messages": "1"})
            print("saved", number, flush=True)
            await asyncio.sleep(0.1)


async def write(home: Path) -> None:
    await asyncio.gather(
        ledger_writer.main(str(home / "ledger"), 0, 0.05), save_threads(home / "checkpoints.sqlite")
    )


@pytest.mark.long
@pytest.mark.timeout(1800)
async def test_a_power_cut_loses_nothing_that_was_acknowledged(tmp_path: Path, calls_library: Path) -> None:
    home, chance = tmp_path / "home", random.Random(0)
    home.mkdir()
    disk = Disk(home)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with Watched(["-m", __name__, str(home)], home, calls_library, environment) as watched:
        for number, call in enumerate(watched.calls()):
            if number == CALLS:
                break
            for kept in (0, 0.5, 1) if chance.random() < 1 / EVERY else ():
                cut = tmp_path / "cut"
                disk.cut(cut, lambda kept=kept: chance.random() < kept)  # type: ignore[misc]
                await all_is_there(cut, watched.printed.read_text())
                shutil.rmtree(cut)
            disk.note(call)
            watched.answer()
        assert number == CALLS, watched.complaints()


async def all_is_there(home: Path, said: str) -> None:
    """Open everything as after a new start, and compare it with what was acknowledged."""
    lines = [line.split() for line in said.splitlines(keepends=True) if line.endswith("\n")]
    last = {key: version for key, *version in lines if key != "saved"}
    last.pop("open", None)
    forgotten = {key for key, version in last.items() if version == ["0"]}
    embedder, ledger_at = WordEmbedder(dimension=8), str(home / "ledger")
    try:
        ledger = await open_ledger(ledger_at, embedder)
    except MnemeError:
        await repair(ledger_at, embedder)
        ledger = await open_ledger(ledger_at, embedder)
    await check(ledger, {key: int(version) for key, [version] in last.items() if version not in "0?"})
    left = {json.loads(line)["key"] async for line in ledger.export()}
    await ledger.close()
    assert not forgotten & left
    assert not [key for key in forgotten if files_with(home / "ledger", f'"{key}"')]
    async with open_checkpointer(str(home / "checkpoints.sqlite")) as saver:
        threads = {each.config["configurable"]["thread_id"] async for each in saver.alist(None)}
    assert {
        number for word, number in (line for line in lines if len(line) > 1) if word == "saved"
    } <= threads


class Held(NamedTuple):
    """What a home holds: every version, and the live memories."""

    versions: set[str]
    contents: dict[str, str]


async def held(home: Path) -> Held:
    if not (home / "ledger").is_dir():
        return Held(set(), {})
    ledger = await open_ledger(str(home / "ledger"), await open_embedder("bundled"))
    versions = {line async for line in ledger.export()}
    live = await ledger.records(("users", "local", "memories"))
    await ledger.close()
    return Held(versions, {each.text: each.key for each in live})


def run_watched(words: list[str], home: Path, library: Path, at: int, fault: int) -> tuple[int, str]:
    """Run a command of which one call fails; return the number of its calls, and what it complained of."""
    number = 0
    with Watched(["-m", "mneme", *words], home, library, quiet(home)) as watched:
        for number, _ in enumerate(watched.calls(), 1):
            watched.answer(fault if number == at else GO_ON)
        watched.process.wait()
        return number, watched.complaints()


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("fault", [errno.ENOSPC, errno.EIO, KILLED], ids=["full", "broken", "killed"])
async def test_a_call_that_fails_loses_nothing_and_the_command_works_again(
    tmp_path: Path, calls_library: Path, fault: int
) -> None:
    told = tmp_path / "told.txt"
    changed = tmp_path / "changed.txt"
    told.write_text("I live in Oslo.\nMy sister Emily lives in Portland.\nI am allergic to peanuts.\n")
    changed.write_text("My sister Emily moved to Boston.\n")
    home = tmp_path / "home"
    home.mkdir()
    for name in COMMANDS:
        before = await held(home)
        words = {
            "remember": ["remember", str(told), "--agents", "rules"],
            "change": ["remember", str(changed), "--agents", "rules"],
            "forget": [
                "memories",
                "forget",
                *(before.contents[each] for each in before.contents if "Oslo" in each),
                "--yes",
            ],
            "list": ["memories", "list"],
        }[name]
        following = tmp_path / name
        copy_folder(home, following)
        calls, _ = run_watched(words, following, calls_library, 0, GO_ON)
        after = await held(following)
        for at in sorted({1 + n * calls // ATTEMPTS for n in range(ATTEMPTS)} if calls else ()):
            attempt = tmp_path / "attempt"
            copy_folder(home, attempt)
            _, said = run_watched(words, attempt, calls_library, at, fault)
            assert not [word for word in UNCLEAR if word in said], said
            if (attempt / "ledger" / "log.sqlite").exists() and (
                await verify(str(attempt / "ledger"))
            ).problems:
                run_mneme(["repair"], quiet(attempt))
            again = run_mneme(words, quiet(attempt))
            assert again.returncode == 0 or (name == "forget" and "has no memory" in again.stderr), (
                again.stderr
            )
            now = await held(attempt)
            assert sorted(now.contents) == sorted(after.contents), (name, at)
            assert before.versions & after.versions <= now.versions
            assert (await verify(str(attempt / "ledger"))).problems == []
            shutil.rmtree(attempt)
        home = following


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1])))
