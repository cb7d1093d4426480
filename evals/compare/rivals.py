"""Rivals in the comparison: memories of other papers, and packages in use.

`langmem` and `mem0ai` are played where they are installed. With a model they extract memories, as they do by
default; with rules they store the given text, and only their search is compared.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel, FakeListChatModel

from mneme.environments.turns import Turn
from mneme.evals.compare.memory import Event, Memory, Outcome, Place
from mneme.evals.measuring import searched_store
from mneme.models.embedding.embedders import Embedder
from mneme.nodes.task_memories.interface import FinishedTask, Held, MemoryServices, Task
from mneme.nodes.task_memories.kinds import open_memory
from mneme.stores.task_memories.trials import Trials
from mneme.stores.users.memory import RULES

MAX_TEXTS = 20
"""Texts that a package is asked for."""
RIVAL_WINDOW_TOKENS = 4096
"""Tokens of a task memory's own questions."""
LANGMEM, MEM0 = "langmem", "mem0"


class TaskMemoryRival(Memory):
    """A memory of whole tasks (`nodes/task_memories`): G-Memory, Voyager, and others."""

    def __init__(self, place: Place, kind: str) -> None:
        super().__init__(place)
        self._kind, self._turns, self._count = kind, list[Turn](), 0
        self._trials = Trials(place.ledger, place.name, kind)
        self._held: Held = {}

    def _opened(self, window: int) -> Any:
        trial = f"{self.place.name}-{self._count}"
        services = MemoryServices(
            self.place.ledger, self._trials, self.place.who, trial, window, team=self.place.name
        )
        return open_memory(self._kind, services)

    async def observe(self, event: Event) -> None:
        """Add the event as the next turn of the task."""
        self._turns.append(Turn(number=len(self._turns) + 1, agent=event.who, output=event.line))

    async def recall(self, situation: str, budget: int) -> Sequence[str]:
        """Return the context of a turn: other tasks, then this one's newest turns first."""
        memory, task = self._opened(budget), Task(id=self.place.name, goal=situation)
        self._held = await memory.prepare(task, await memory.recall(task), self._turns)
        shown = memory.context(task, self._held, self._turns, self.place.roles[0])
        return [*shown.memory.splitlines(), *(str(each) for each in reversed(shown.turns))]

    async def end_of_task(self, outcome: Outcome) -> None:
        """Store the task and its turns."""
        turns = [
            *self._turns,
            Turn(number=len(self._turns) + 1, agent=self.place.roles[0], output=outcome.lesson),
        ]
        self._count += 1
        task = Task(id=f"{self.place.name}-{self._count}", goal=outcome.task)
        reward = float(outcome.success)
        trial = FinishedTask(id=task.id, task=task, turns=turns, reward=reward, success=outcome.success)
        await self._opened(RIVAL_WINDOW_TOKENS).remember(trial, self._held)
        self._turns.clear()


def _chat_model(who: str) -> Any:
    """Return the responder as a chat model for LangChain's packages."""
    return import_module("langchain.chat_models").init_chat_model(who, temperature=0)


class LangMem(Memory):
    """The package `langmem` on LangGraph's store: its memory manager, or its tool where rules answer."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._store = searched_store(place.embedder)
        self._namespace, package = (place.name,), import_module(LANGMEM)
        if place.who == RULES:
            self._tool = package.create_manage_memory_tool(namespace=self._namespace, store=self._store)
        else:
            made = {"namespace": self._namespace, "store": self._store, "enable_deletes": True}
            self._manager = package.create_memory_store_manager(_chat_model(place.who), **made)

    async def observe(self, event: Event) -> None:
        """Pass the event to the memory manager as a message."""
        if self.place.who == RULES:
            await self._tool.ainvoke({"content": event.line, "action": "create"})
        else:
            await self._manager.ainvoke({"messages": [{"role": "user", "content": event.line}]})

    async def recall(self, situation: str, budget: int) -> Sequence[str]:
        """Return the results of its store."""
        found = await self._store.asearch(self._namespace, query=situation, limit=MAX_TEXTS)
        return [_text(each.value["content"]) for each in found]


def _text(content: Any) -> str:
    return str(content.get("content", content)) if isinstance(content, dict) else str(content)


def open_mem0(folder: Path, embedder: Embedder, chat: BaseChatModel) -> Any:
    """Open the memory of the package `mem0ai` in a folder, with our embedder and who extracts for it."""
    os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder / "mem0")}
    embed = _Embeddings(embedder, asyncio.get_running_loop())
    qdrant = {"path": str(folder / "qdrant"), "embedding_model_dims": embedder.dimension, "on_disk": True}
    return import_module(MEM0).Memory.from_config({
        "embedder": {"provider": "langchain", "config": {"model": embed}},
        "llm": {"provider": "langchain", "config": {"model": chat}},
        "vector_store": {"provider": "qdrant", "config": qdrant},
        "history_db_path": str(folder / "mem0.sqlite"),
    })  # fmt: skip


class Mem0(Memory):
    """The package `mem0ai` on a local Qdrant, with our embedder."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        chat = FakeListChatModel(responses=["{}"]) if place.who == RULES else _chat_model(place.who)
        self._memory = open_mem0(place.folder, place.embedder, chat)

    async def observe(self, event: Event) -> None:
        """Add it as a message; what is inferred from it is the package's matter."""
        infer = self.place.who != RULES
        message = [{"role": "user", "content": event.line}]
        await asyncio.to_thread(self._memory.add, message, user_id=self.place.name, infer=infer)

    async def recall(self, situation: str, budget: int) -> Sequence[str]:
        """Return the results of its search."""
        filters = {"user_id": self.place.name}
        found = await asyncio.to_thread(self._memory.search, situation, top_k=MAX_TEXTS, filters=filters)
        return [str(each["memory"]) for each in found["results"]]


class _Embeddings(Embeddings):
    """Our embedder for a package that embeds in a thread of its own."""

    def __init__(self, embedder: Embedder, loop: asyncio.AbstractEventLoop) -> None:
        self._embedder, self._loop = embedder, loop

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts on the loop, from another thread than its own."""
        vectors = asyncio.run_coroutine_threadsafe(self._embedder.embed_documents(texts), self._loop).result()
        return [[*map(float, each)] for each in vectors]

    def embed_query(self, text: str) -> list[float]:
        """Embed a question likewise."""
        return self.embed_documents([text])[0]


OF_PAPERS = ("meta_gpt", "voyager", "generative", "memory_bank", "chat_dev", "g_memory")
RIVAL_MEMORIES: Mapping[str, Callable[[Place], Memory]] = {
    **{kind: partial(TaskMemoryRival, kind=kind) for kind in OF_PAPERS},
    **{name: made for name, made in ((LANGMEM, LangMem), (MEM0, Mem0)) if find_spec(name)},
}
"""By the name that `--memory` takes; packages where they are installed."""
