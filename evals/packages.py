"""Memory packages in use, `langmem` and `mem0ai`, with one interface: texts in scopes.

With a model they extract memories from what is said, as they do by default; with rules they store the text.
"""

import asyncio
import os
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import FakeListChatModel

from mneme.evals.measuring import searched_store
from mneme.models.embedding.embedders import Embedder
from mneme.stores.users.memory import RULES

Scope = tuple[str, ...]


class Hit(NamedTuple):
    """A text that was found: its similarity, the text, and its owner."""

    similarity: float
    text: str
    owner: str


class LangMem:
    """The package `langmem` on LangGraph's store: its memory manager, or its tool if rules answer."""

    NAME, UPDATES = "langmem", True

    def __init__(self, embedder: Embedder, folder: Path, who: str = RULES) -> None:
        self.store, self._chat = searched_store(embedder), None if who == RULES else _chat_model(who)
        self._managers = dict[Scope, Any]()

    async def _manage(self, scope: Scope, **said: str) -> str:
        make: Any = import_module(self.NAME).create_manage_memory_tool
        return str(await make(namespace=scope, store=self.store).ainvoke(said))

    async def add(self, scope: Scope, text: str, who: str = "") -> list[str]:
        """Store a text; return the ids of the stored memories, if the package reports them."""
        if self._chat is None:
            # The tool answers "created memory <id>".
            return [(await self._manage(scope, content=text, action="create")).rsplit(" ", 1)[-1]]
        if scope not in self._managers:
            make: Any = import_module(self.NAME).create_memory_store_manager  # by name: optional, not typed
            self._managers[scope] = make(self._chat, namespace=scope, store=self.store, enable_deletes=True)
        await self._managers[scope].ainvoke({"messages": [{"role": "user", "content": text}]})
        return []

    async def update(self, scope: Scope, key: str, text: str) -> None:
        await self._manage(scope, content=text, action="update", id=key)

    async def delete(self, scope: Scope, key: str) -> None:
        await self._manage(scope, action="delete", id=key)

    async def found(self, scope: Scope, query: str, limit: int) -> list[Hit]:
        hits = await self.store.asearch(scope, query=query, limit=limit)
        return [Hit(each.score or 0.0, _text(each.value["content"]), scope[-1]) for each in hits]


def _text(content: Any) -> str:
    return str(content.get("content", content)) if isinstance(content, dict) else str(content)


def _chat_model(who: str) -> Any:
    """Return the responder as a chat model for LangChain's packages."""
    return import_module("langchain.chat_models").init_chat_model(who, temperature=0)


class Mem0:
    """The package `mem0ai` on a local Qdrant, with our embedder; a message names its speaker, if known."""

    NAME, UPDATES, infers = "mem0", True, False

    def __init__(self, embedder: Embedder, folder: Path, who: str = RULES) -> None:
        # `from_config` wants one even if nothing is inferred.
        self.chat = FakeListChatModel(responses=["{}"]) if who == RULES else _chat_model(who)
        self.infers |= who != RULES
        # Read when the package is imported.
        os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder / "mem0")}
        embed = _Embeddings(embedder, asyncio.get_running_loop())  # the embedder belongs to this loop
        qdrant = {"path": str(folder / "qdrant"), "embedding_model_dims": embedder.dimension, "on_disk": True}
        self.memory = import_module(self.NAME).Memory.from_config({
            "embedder": {"provider": "langchain", "config": {"model": embed}},
            "llm": {"provider": "langchain", "config": {"model": self.chat}},
            "vector_store": {"provider": "qdrant", "config": qdrant},
            "history_db_path": str(folder / "mem0.sqlite"),
        })  # fmt: skip

    async def add(self, scope: Scope, text: str, who: str = "") -> list[str]:
        message = [{"role": "user", "content": text} | ({"name": who} if who else {})]
        made = await asyncio.to_thread(self.memory.add, message, user_id=scope[-1], infer=self.infers)
        return [each["id"] for each in made["results"]]

    async def update(self, scope: Scope, key: str, text: str) -> None:
        # It embeds through our loop, which has to be free meanwhile.
        await asyncio.to_thread(self.memory.update, key, text)

    async def delete(self, scope: Scope, key: str) -> None:
        await asyncio.to_thread(self.memory.delete, key)

    async def found(self, scope: Scope, query: str, limit: int) -> list[Hit]:
        search, filters = self.memory.search, {"user_id": scope[-1]}
        hits = (await asyncio.to_thread(search, query, top_k=limit, filters=filters))["results"]
        return [Hit(each["score"], str(each["memory"]), each.get("actor_id") or scope[-1]) for each in hits]


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


Package = LangMem | Mem0
