"""A memory agent that answers by a script, and what it is told, for tests of the chat."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from mneme.graphs.memory_agent import builder as memory_agent
from mneme.nodes.chat.context import MemoryContext
from mneme.prompts.every import questions
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change
from mneme.stores.users.memories import UserMemories
from mneme.stores.users.memory import Memory
from tests.doubles.ollama import Model
from tests.doubles.served import served

SMALL = MemoryContext(memory_agent="ollama:small", min_similarity=-1)
RULES = MemoryContext(memory_agent="rules")
MESSAGE = "Actually, Max is a Labrador mix; he’s 5."
MEMORY = "Max, a golden retriever, loves fetch."
UNDATED = {"since": "", "until": "", "unclear": ""}
FACT = {
    "content": "The user's dog Max is a Labrador mix and is 5 years old.",
    "quote": "max is a labrador mix; he's 5",
    "kind": "semantic",
    "entities": ["Max"],
    "relations": [],
    **UNDATED,
}
JUDGED = {
    "fact": 0,
    "memory": 0,
    "reason": "Another breed.",
    "relation": "correction",
    "outdated": "a Golden Retriever",
    "updated": "",
}
RENEWED = {"content": "Max, a Labrador mix, is 5 years old and loves fetch.", "entities": [], "relations": []}
NOTHING: dict[str, Any] = {"look": "", "judgements": []}


async def known(ledger: Ledger, memory: Memory) -> str:
    """Insert a memory, and return its key."""
    made = await UserMemories(ledger, "local").insert(memory, change=Change(reason="said so", actor="user"))
    return made.key


class Script:
    """Answer each question by its script, the last line for ever; remember what was asked, and how."""

    def __init__(self, **lines: Any) -> None:
        self.lines = {name: list(said) if isinstance(said, list) else [said] for name, said in lines.items()}
        self.asked: list[str] = []
        self.told: list[str] = []

    def __call__(self, body: dict[str, Any]) -> str:
        system = body["messages"][0]["content"]
        (name,) = [name for name in self.lines if system.startswith(questions()["chat", name].system)]
        self.asked.append(name)
        self.told.append(body["messages"][-1]["content"])
        lines = self.lines[name]
        said = lines.pop(0) if len(lines) > 1 else lines[0]
        return said if isinstance(said, str) else json.dumps(said)

    def told_to(self, name: str) -> list[str]:
        """Return the last message of each question of a name."""
        return [told for asked, told in zip(self.asked, self.told, strict=True) if asked == name]


async def tell(ledger: Ledger, script: Script, message: str = MESSAGE, **given: str) -> dict[str, Any]:
    graph: Any = memory_agent.compile(store=LedgerStore(ledger))
    with pytest.MonkeyPatch.context() as patched, served(patched, Model("small"), brain=script):
        result: dict[str, Any] = await graph.ainvoke({"message": message, **given}, context=SMALL)
    return result


def script(**lines: Any) -> Script:
    usual = {
        "read_message": reading(FACT),
        "compare_memories": judged({}),
        "rewrite_memory": RENEWED,
    }
    return Script(**usual | lines)


def reading(*memories: dict[str, Any], route: str = "store") -> dict[str, Any]:
    return {"rationale": "New facts.", "route": route, "memories": list(memories)}


def judged(*changes: dict[str, Any]) -> dict[str, Any]:
    return {"look": "", "judgements": [JUDGED | each for each in changes]}


async def contents(ledger: Ledger) -> Sequence[str]:
    return [each.memory.content for each in await UserMemories(ledger, "local").all()]


def done(result: dict[str, Any]) -> list[str]:
    return [each["event"] for each in result["operations"]]


HOME = "The user lives in Porto."
