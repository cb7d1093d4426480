"""Who turns text into vectors: the bundled MiniLM, or a model that Ollama serves."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Protocol

from mneme.errors import BadInput
from mneme.settings import settings

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
    """MiniLM in this process, off the event loop."""

    def __init__(self) -> None:
        from models import minilm  # noqa: PLC0415  (numpy is slow to import)

        self.name = f"bundled:{minilm.NAME}"
        self.dimension = minilm.DIMENSION
        self._model = minilm.MiniLM(settings().home / "cache")

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector a text; texts over 256 tokens are embedded in windows and averaged."""
        return await asyncio.to_thread(self._model.embed, texts) if texts else []

    async def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query, which MiniLM treats like any text."""
        return (await self.embed_documents([text]))[0]


_opened: dict[str, Embedder] = {}
_opening = threading.Lock()


async def open_embedder(spec: str) -> Embedder:
    """Return the process's one embedder of this name: `bundled`, or `ollama:<model>`."""
    if spec == "bundled":
        return await asyncio.to_thread(_open_bundled)
    raise BadInput(f"No embedder is called {spec!r}.", f"Accepted: {FORMS}.")


def _open_bundled() -> Embedder:
    with _opening:
        if "bundled" not in _opened:
            _opened["bundled"] = Bundled()
        return _opened["bundled"]
