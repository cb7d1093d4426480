"""Who turns text into vectors: the bundled MiniLM, or a model that Ollama serves."""

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from mneme.errors import BadInput
from mneme.settings import read_settings, settings
from models.lazily import lazily

FORMS = "bundled, or ollama:<model>"


class Embedder(Protocol):
    """Texts in, vectors of one dimension and of length 1 out."""

    @property
    def name(self) -> str: ...
    @property
    def dimension(self) -> int: ...
    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]: ...
    async def embed_query(self, text: str) -> list[float]: ...


class Bundled:
    """MiniLM in this process, off the event loop: queries in one thread, documents in another.

    So a query waits for no document, and neither fills the threads that the rest of the process uses.
    """

    def __init__(self) -> None:
        from models import minilm  # noqa: PLC0415  (numpy is slow to import)

        self.name = f"bundled:{minilm.NAME}"
        self.dimension = minilm.DIMENSION
        self._model = minilm.MiniLM(settings().cache)
        self._queries = ThreadPoolExecutor(1, "embed-queries")
        self._documents = ThreadPoolExecutor(1, "embed-documents")

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector a text; texts over 256 tokens are embedded in windows and averaged."""
        return await self._embed(texts, self._documents) if texts else []

    async def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query, which MiniLM treats like any text."""
        return (await self._embed([text], self._queries))[0]

    async def _embed(self, texts: Sequence[str], thread: ThreadPoolExecutor) -> list[list[float]]:
        return await asyncio.get_running_loop().run_in_executor(thread, self._model.embed, texts)


_opened: dict[tuple[str, str], Embedder] = {}
_opening = threading.Lock()


async def open_embedder(spec: str) -> Embedder:
    """Return the process's one embedder of this name: `bundled`, or `ollama:<model>`."""
    await read_settings()
    kind, _, model = spec.strip().partition(":")
    if kind == "bundled" and not model:
        return await asyncio.to_thread(_bundled)
    if kind == "ollama" and model:
        return await _served(model)
    raise BadInput(f"No embedder is called {spec!r}.", f"Accepted: {FORMS}.")


def _bundled() -> Embedder:
    """Open MiniLM once, whoever asks at the same time."""
    key = ("bundled", str(settings().cache))
    with _opening:
        if key not in _opened:
            _opened[key] = Bundled()
        return _opened[key]


async def _served(model: str) -> Embedder:
    key = (model, settings().ollama_url)
    if key not in _opened:
        ollama = await lazily("models.ollama_embedder")  # httpx, ollama: 0.3 s
        _opened[key] = await ollama.open_ollama(model)
    return _opened[key]


def forget() -> None:
    """Let go of every opened embedder, so that the next is opened anew."""
    with _opening:
        _opened.clear()
