"""What a memory costs, whoever answers: ours beside `mem0ai` and `langmem` on one scripted model server.

Each is filled by its own direct insert and then told the same new facts through its model, which takes 0.2 s
for a call and always answers with the fact, in the form that is asked for: so all keep the same, and calls,
tokens and seconds are those of the memory. Run with `-s`, it prints the table of `which-memory.md`.
"""

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from mneme.evals.compare.memories import MemoryAgent, RawEvents
from mneme.evals.compare.memory import Event, Memory, Place
from mneme.evals.compare.rivals import RIVAL_MEMORIES
from mneme.evals.packages import LangMem, Mem0
from mneme.models.asking.counting import tokens
from mneme.models.embedding.embedders import Embedder, open_embedder
from mneme.stores.ledger.ledger import open_ledger
from mneme.stores.ledger.records import Change
from mneme.stores.users.memories import UserMemories
from mneme.stores.users.memory import Memory as Fact
from tests.doubles.ollama import Model, OllamaDouble, Reply
from tests.doubles.served import served

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600), pytest.mark.filterwarnings("ignore")]

SIZES = [int(each) for each in os.environ.get("MNEME_TEST_COSTS", "1000 20000").split()]
TOLD, ASKED, SECONDS = 10, 30, 0.2
WHO = "ollama:llama3.1:8b"
THINGS = ("stamps", "clocks", "kites", "maps", "teapots", "shells", "keys", "bells", "globes", "masks")
NONE = {"relations": [], "since": "", "until": "", "unclear": ""}
PLACES = ("Oslo", "Leeds", "Porto", "Graz", "Ghent", "Turin", "Lyon", "Bergen", "Cork", "Bilbao")


def fact(number: int) -> str:
    thing, place = THINGS[number % 10], PLACES[number // 10 % 10]
    return f"Colleague {number} collects {thing} and lives in {place}."


@dataclass
class Cached:
    """An embedder that embeds what all memories are filled with once; questions it embeds each time."""

    embedder: Embedder
    known: dict[str, list[float]] = field(default_factory=dict)
    is_filling: bool = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.embedder, name)

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        if not self.is_filling:
            return await self.embedder.embed_documents(texts)
        if new := [each for each in texts if each not in self.known]:
            self.known |= zip(new, await self.embedder.embed_documents(new), strict=True)
        return [self.known[each] for each in texts]


class Scripted:
    """Answers every question with the fact that was told last, in the form that is asked for."""

    def __init__(self) -> None:
        self.fact = ""

    def __call__(self, body: dict[str, Any]) -> Reply:
        if tools := [each["function"]["name"] for each in body.get("tools") or []]:
            (name,) = [each for each in tools if each == "Memory"] or tools[:1]
            return Reply(tool_calls=({"name": name, "arguments": {"content": self.fact}},))
        form = body.get("format")
        asked = form.get("properties", {}) if isinstance(form, dict) else {}
        if "judgements" in asked:
            return Reply(json.dumps({"look": "", "judgements": []}))
        if "route" in asked:
            kept = {"quote": self.fact, "content": self.fact, "kind": "semantic", "entities": []} | NONE
            stored = {"rationale": "It states a fact.", "route": "store", "memories": [kept]}
            return Reply(json.dumps(stored))
        return Reply(json.dumps({"memory": [{"id": "0", "text": self.fact}]}))


def tokens_of(body: dict[str, Any]) -> int:
    """Estimate the tokens of a request: its messages, and the tools, which a model's template writes out."""
    words = [each.get("content") or "" for each in body["messages"]]
    return sum(map(tokens, [*words, json.dumps(body["tools"]) if body.get("tools") else ""]))


async def fill_ours(memory: Memory, texts: Sequence[str]) -> None:
    kept, change = (
        UserMemories(memory.place.ledger, memory.place.name),
        Change(reason="Filled.", actor="test"),
    )
    for start in range(0, len(texts), 500):
        some = [Fact(content=each, time=datetime.now(UTC).isoformat()) for each in texts[start : start + 500]]
        await memory.place.ledger.write([kept.write(None, each, change) for each in some])


async def fill_raw(memory: Memory, texts: Sequence[str]) -> None:
    for each in texts:
        await memory.observe(Event("", "user", each))


async def fill_langmem(memory: Any, texts: Sequence[str]) -> None:
    for number, each in enumerate(texts):
        value = {"kind": "Memory", "content": {"content": each}}
        await memory.package.store.aput(memory.scope, str(number), value)


async def fill_mem0(memory: Any, texts: Sequence[str]) -> None:
    def add() -> None:
        for each in texts:
            said = [{"role": "user", "content": each}]
            memory.package.memory.add(said, user_id=memory.place.name, infer=False)

    await asyncio.to_thread(add)


Fill = Callable[[Any, Sequence[str]], Awaitable[None]]
MEMORIES: dict[str, tuple[Callable[[Place], Memory], Fill]] = {
    "memory agent": (MemoryAgent, fill_ours),
    "raw events": (RawEvents, fill_raw),
}
for name, filling in ((LangMem.NAME, fill_langmem), (Mem0.NAME, fill_mem0)):
    if find_spec(name):
        MEMORIES[name] = (RIVAL_MEMORIES[name], filling)


@dataclass
class Costs:
    """What remembering a message and recalling took: calls, tokens, seconds; and the facts kept of TOLD."""

    calls: float
    tokens: float
    remembering: float
    recalling: float
    kept: int

    def __str__(self) -> str:
        spent = f"{self.calls:.1f} | {self.tokens:,.0f} | {self.remembering:.2f}"
        return f"{spent} | {1000 * self.recalling:.1f} | {self.kept} of {TOLD}"


async def costs_of(memory: Memory, fill: Fill, size: int, server: OllamaDouble, cached: Cached) -> Costs:
    cached.is_filling = True
    await fill(memory, [fact(number) for number in range(size)])
    cached.is_filling = False
    script, seconds = server.brain, list[float]()
    before = len(server.chats)
    told = [fact(10**6 + number) for number in range(TOLD)]
    for each in told:
        script.fact = each  # type: ignore[attr-defined]
        began = time.perf_counter()
        await memory.observe(Event("", "user", each))
        seconds.append(time.perf_counter() - began)
    chats = [each.body for each in server.chats[before:]]
    kept = sum([any(each in line for line in await memory.recall(each, 2000)) for each in told])
    recalling = list[float]()
    for number in range(ASKED):
        question = f"What does colleague {number * 31 % size} collect, and in which town?"
        began = time.perf_counter()
        await memory.recall(question, 500)
        recalling.append(time.perf_counter() - began)
    asked = sum(map(tokens_of, chats)) / TOLD
    return Costs(len(chats) / TOLD, asked, median(seconds), median(recalling), kept)


@pytest.mark.parametrize("size", SIZES)
async def test_a_message_costs_fewer_tokens_than_with_others(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached = Cached(await open_embedder("bundled"))
    monkeypatch.setenv("MNEME_HOME", str(tmp_path / "home"))
    table = dict[str, Costs]()
    model = Model(WHO.partition(":")[2])
    with served(monkeypatch, model, seconds=SECONDS, parallel=8, brain=Scripted()) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        for name, (made, fill) in MEMORIES.items():
            folder = tmp_path / name.replace(" ", "_")
            folder.mkdir()
            ledger = await open_ledger(str(folder / "ledger"), cached)
            memory = made(Place("ann", folder, ledger, cached, WHO, ["user"]))
            table[name] = await costs_of(memory, fill, size, server, cached)
            await ledger.close()
            print(f"| {size:,} | {name} | {table[name]} |", flush=True)
    ours = table["memory agent"]
    assert ours.kept == TOLD
    rivals = [table[each] for each in (LangMem.NAME, Mem0.NAME) if each in table]
    if not rivals:
        pytest.skip("neither langmem nor mem0ai is installed")
    assert all(ours.tokens < each.tokens for each in rivals)
    assert size < 20_000 or all(ours.recalling < each.recalling / 2 for each in rivals)
