"""Homes that released versions wrote are opened by this one, and hold what they held.

`python -m tests.stores.test_released` writes the home of this version: do so at a release, and whenever the
format changes. What its ledger held is in `said/export.jsonl`, what was said in its threads in
`said/threads.json`; `killed/` is the ledger as a process left it that was killed. The home
`…_with_sums` has what the other one of 0.1.0 lacks: checksums of vectors, a column of them in the
checkpoints, and the note that there are checkpoints.
"""

import asyncio
import json
import subprocess
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from mneme.graphs.chatbot import builder
from mneme.nodes.chat.context import ChatContext
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.ledger.query import LEDGER_FORMAT
from mneme.stores.ledger.records import Change
from mneme.stores.ledger.verifying import verify
from tests.doubles.copying import copy_folder
from tests.doubles.embedding import WordEmbedder
from tests.doubles.ledgers import forget, restore, rollback

DATA = Path(__file__).parent / "data"
HOMES = sorted(path.name for path in DATA.glob("home_of_*.tar.xz"))
ANN = ("users", "ann", "memories")
SAID = Change(reason="said so", actor="agent")
RULES = ChatContext(user="ann", chatbot="rules", memory_agent="rules")


def embedder() -> WordEmbedder:
    return WordEmbedder("bundled:all-MiniLM-L6-v2", 384)


@pytest.fixture
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    with tarfile.open(DATA / request.param) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.2 has none
        archive.extractall(tmp_path)
    return tmp_path / "home"


@pytest.mark.parametrize("home", HOMES, indirect=True)
async def test_every_home_is_opened_and_whole_afterwards(home: Path) -> None:
    ledger = await open_ledger(str(home / "ledger"), embedder())
    assert await ledger.count() > 0
    await ledger.close()
    found = await verify(str(home / "ledger"))
    assert (found.problems, found.versions > 0) == ([], True)


@pytest.mark.parametrize("home", HOMES, indirect=True)
@pytest.mark.parametrize("folder", ["ledger", "killed"])
async def test_every_version_is_there_and_found(home: Path, folder: str) -> None:
    ledger = await open_ledger(str(home / folder), embedder())
    assert sorted([line async for line in ledger.export()]) == said(home, "export.jsonl").splitlines()
    for head in await ledger.records(ANN):
        [hit, *_] = await ledger.search(ANN, head.text, mode="dense", limit=1)
        assert hit.version == head
    [forgotten] = await ledger.forgotten(ANN)
    assert forgotten.reason == "asked"
    await ledger.close()


@pytest.mark.parametrize("home", HOMES, indirect=True)
async def test_threads_are_read_and_go_on(home: Path) -> None:
    ledger = await open_ledger(str(home / "ledger"), embedder())
    for thread, texts in json.loads(said(home, "threads.json")).items():
        assert await talked(home, ledger, thread) == texts
        assert (await talked(home, ledger, thread, "Where does my sister live?"))[: len(texts)] == texts
    await ledger.close()


def said(home: Path, name: str) -> str:
    return (home / "said" / name).read_text()


async def talked(home: Path, ledger: Ledger, thread: str, message: str = "") -> list[str]:
    """Say something in a thread, or nothing; return the texts of all its messages."""
    async with open_checkpointer(str(home / "checkpoints.sqlite")) as saver:
        graph = builder.compile(store=LedgerStore(ledger), checkpointer=saver)
        config: Any = {"configurable": {"thread_id": thread}}
        if message:
            given: Any = {"messages": [HumanMessage(message)]}
            await graph.ainvoke(given, config, context=RULES)
        return [each.text for each in (await graph.aget_state(config)).values["messages"]]


async def make(home: Path) -> None:
    """Write a small home with all that can happen to a record, and a thread."""
    (home / "said").mkdir(parents=True)
    ledger = await open_ledger(str(home / "ledger"), embedder())
    for number in range(6):
        text = f"Ann keeps {number} cups of tea, café and 茶."
        await ledger.insert(ANN, {"content": text}, text=text, change=SAID, key=f"k{number}")
    await ledger.update(ANN, "k0", {"content": "no tea"}, text="no tea", change=SAID, expected_version=1)
    await ledger.retire(ANN, "k1", change=SAID, expected_version=1)
    await restore(ledger, ANN, "k1", change=SAID, expected_version=2)
    await ledger.retire(ANN, "k2", change=SAID, expected_version=1)
    await rollback(ledger, ANN, "k0", 1)
    await forget(ledger, ANN, "k3", reason="asked", actor="ann")
    texts = await talked(home, ledger, "a-thread", "Hello, my sister Emily lives in Portland.")
    (home / "said" / "threads.json").write_text(json.dumps({"a-thread": texts}))
    (home / "said" / "export.jsonl").write_text("\n".join(sorted([each async for each in ledger.export()])))
    copy_folder(home / "ledger", home / "killed")
    await ledger.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as room:
        home = Path(room) / "home"
        asyncio.run(make(home))
        released = version("mneme-agents").replace(".", "_")
        archive = DATA / f"home_of_{released}_format_{LEDGER_FORMAT}.tar.xz"
        subprocess.run(["tar", "--sparse", "-C", room, "-cJf", archive, "home"], check=True)  # with its holes


if __name__ == "__main__":
    main()
