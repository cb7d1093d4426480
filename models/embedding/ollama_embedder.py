"""Embed with a model that Ollama serves: the prefixes its card asks for, and only sound vectors.

A long text is embedded in pieces; its vector is the mean of theirs, weighted by length, and normalised again.
Queries go before documents.
"""

import math
from collections.abc import Sequence
from typing import Self

import httpx
from ollama import AsyncClient, ResponseError

from mneme.core.errors import ModelUnavailable
from mneme.core.settings import settings
from mneme.models.asking.counting import CHARS_PER_TOKEN
from mneme.models.asking.gate import Lane, gate
from mneme.models.embedding.windows import means, pieces
from mneme.models.ollama.catalogue import bearer, facts, tls
from mneme.models.ollama.transport import BadVectorsError, persist

RETRIEVE = "Represent this sentence for searching relevant passages: "
QWEN = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
# The first entry whose name occurs in the model's name is used: a name stands before those it contains.
PREFIXES: tuple[tuple[str, str, str], ...] = (  # (name, before a query, before a document); see their cards
    ("nomic-embed-text", "search_query: ", "search_document: "),
    ("mxbai-embed-large", RETRIEVE, ""),
    ("snowflake-arctic-embed2", "query: ", ""),
    ("snowflake-arctic-embed", RETRIEVE, ""),
    ("embeddinggemma", "task: search result | query: ", "title: none | text: "),
    ("qwen3-embedding", QWEN, ""),
    ("bge-m3", "", ""),
    ("bge-", RETRIEVE, ""),
    ("e5-", "query: ", "passage: "),
)
TEXTS_PER_REQUEST = 32
DEFAULT_CONTEXT_TOKENS = 512
EMBED_CONNECT_SECONDS = 5.0


class OllamaEmbedder:
    """One embedding model of one Ollama server; made by `open`."""

    def __init__(self, url: str, model: str, context: int) -> None:
        self.name = f"ollama:{model.removesuffix(':latest')}"
        self.dimension = 0
        self._url, self._model = url, model
        name = model.lower().rsplit("/", 1)[-1]
        card = next((each for each in PREFIXES if each[0] in name), ("", "", ""))
        _, self._before_query, self._before_document = card
        self._chars = max(int(context * CHARS_PER_TOKEN), 64)

    @classmethod
    async def open(cls, model: str) -> Self:
        """Return an embedder of known dimension, or say what is missing."""
        url = settings().ollama_url
        known = await facts(url, model)
        if known.lacks("embedding"):
            raise ModelUnavailable(f"{model} cannot embed.", "Get one that can: ollama pull nomic-embed-text")
        made = cls(url, model, known.context_length or DEFAULT_CONTEXT_TOKENS)
        made.dimension = len((await made._ask(["dimension"], "user"))[0])  # `/api/show` may not say it
        return made

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector a text, in the order of the texts."""
        prefixed = [self._before_document + text for text in texts]
        return await self._embed(prefixed, "background") if prefixed else []

    async def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query."""
        return (await self._embed([self._before_query + text], "user"))[0]

    async def _embed(self, texts: list[str], lane: Lane) -> list[list[float]]:
        """Embed texts of which some may be too long; halve the pieces while the server finds them so."""
        chars = self._chars
        while True:
            parts = pieces(texts, chars)
            batches = [
                [part for _, part in parts[at : at + TEXTS_PER_REQUEST]]
                for at in range(0, len(parts), TEXTS_PER_REQUEST)
            ]
            try:
                vectors = [vector for batch in batches for vector in await self._ask(batch, lane)]
            except _TooLong:  # a text of more tokens than the estimate
                chars //= 2
                continue
            self._chars = chars  # kept, so that later texts of this kind fit at once
            return means(len(texts), parts, vectors)

    async def _ask(self, texts: list[str], lane: Lane) -> list[list[float]]:
        # A gate of its own: Ollama runs an embedder beside the chat model.
        async def ask() -> list[list[float]]:
            return await gate(f"{self._url}/api/embed").run(lane, lambda: self._request(texts))

        return await persist(self._url, self._model, ask)

    async def _request(self, texts: list[str]) -> list[list[float]]:
        now = settings()
        patience = httpx.Timeout(now.first_token_seconds, connect=EMBED_CONNECT_SECONDS)
        client = AsyncClient(self._url, timeout=patience, verify=tls(self._url), headers=bearer())
        async with client:
            try:
                # By default Ollama cuts an input at the model's context without a word.
                answer = await client.embed(self._model, texts, truncate=False, keep_alive=now.keep_alive)
            except ResponseError as error:
                # A single letter cannot be halved: then the error is raised.
                if "exceeds" in error.error and "context" in error.error and max(map(len, texts)) > 1:
                    raise _TooLong from error
                raise
        vectors = [list(vector) for vector in answer.embeddings]
        if len(vectors) != len(texts):
            raise BadVectorsError(f"{len(vectors)} vectors for {len(texts)} texts")
        size = self.dimension or len(vectors[0])
        if any(len(vector) != size for vector in vectors):
            raise BadVectorsError(f"a vector that has not {size} numbers")
        if not all(math.isfinite(x) for vector in vectors for x in vector) or not all(map(any, vectors)):
            raise BadVectorsError("a vector of zeros or of no numbers")
        return vectors


class _TooLong(Exception):  # noqa: N818  (a step on the way)
    """A piece does not fit the embedder's context."""
