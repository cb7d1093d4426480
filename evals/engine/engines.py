"""The engines that are compared, each with the same four methods."""

import uuid
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import qdrant_edge as edge
from langgraph.store.base import PutOp, SearchOp
from langgraph.store.memory import InMemoryStore
from qdrant_client import AsyncQdrantClient, models

from mneme.evals.engine.corpus import Corpus
from mneme.stores.ledger.engine import Mode
from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.ledger.records import Change, Source, Write
from mneme.stores.ledger.words import words_of

BATCH = 500
CHANGE = Change(reason="the user said so", actor="memory agent", source=Source(thread="t1", messages=["m1"]))
IDS = uuid.UUID("00000000-0000-0000-0000-00000000beef")


EngineName = Literal[
    "ledger",
    "ledger, hybrid",
    "ledger, blend",
    "Qdrant Edge",
    "Qdrant Edge, same content",
    "Qdrant Edge, HNSW",
    "qdrant-client local",
    "LangGraph InMemoryStore",
    "numpy",
]


class Engine(Protocol):
    """One engine with a corpus; `search` returns row numbers, best first; a user of None means all."""

    persistent: bool
    by_cosine: bool

    async def open(self) -> None: ...
    async def insert(self) -> None: ...
    async def search(self, query: int, user: str | None, limit: int) -> list[int]: ...
    async def close(self) -> None: ...


class LookUpEmbedder:
    """Return the vectors of a corpus, so that engines are measured without the embedding."""

    def __init__(self, corpus: Corpus) -> None:
        self.name, self.dimension = corpus.embedder, corpus.vectors.shape[1]
        self._rows = {text: row for row, text in enumerate(corpus.texts)}
        self._asked = {text: row for row, text in enumerate(corpus.asked)}
        self._corpus = corpus

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vectors of texts of the corpus."""
        rows = [self._rows[text] for text in texts]
        vectors: list[list[float]] = self._corpus.vectors[rows].tolist()
        return vectors

    async def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query of the corpus."""
        vector: list[float] = self._corpus.queries[self._asked[text]].tolist()
        return vector


class OurLedger:
    """The ledger on Qdrant Edge, through its public methods."""

    persistent, by_cosine = True, True

    def __init__(self, corpus: Corpus, folder: Path | str, mode: Mode = "dense") -> None:
        self._corpus, self._location, self._mode = corpus, str(folder), mode
        self._ledger: Ledger

    async def open(self) -> None:
        self._ledger = await open_ledger(self._location, LookUpEmbedder(self._corpus))

    async def insert(self) -> None:
        for start in range(0, len(self._corpus.texts), BATCH):
            rows = range(start, min(start + BATCH, len(self._corpus.texts)))
            await self._ledger.write([self._write(row) for row in rows])

    async def search(self, query: int, user: str | None, limit: int) -> list[int]:
        prefix = ("users", user, "memories") if user else ()
        hits = await self._ledger.search(prefix, self._corpus.asked[query], limit=limit, mode=self._mode)
        return [int(hit.version.key) for hit in hits]

    async def close(self) -> None:
        await self._ledger.close()

    def _write(self, row: int) -> Write:
        text, user = self._corpus.texts[row], self._corpus.users[row]
        return Write(
            event="insert",
            namespace=("users", user, "memories"),
            key=str(row),
            value={"content": text, "kind": "semantic", "thread": CHANGE.source.thread},
            text=text,
            change=CHANGE,
        )


class HybridLedger(OurLedger):
    """The ledger, searched by meaning and by words together."""

    by_cosine = False

    def __init__(self, corpus: Corpus, folder: Path) -> None:
        super().__init__(corpus, folder, "hybrid")


class BlendLedger(OurLedger):
    """The ledger, searched as the chatbot recalls."""

    by_cosine = False

    def __init__(self, corpus: Corpus, folder: Path) -> None:
        super().__init__(corpus, folder, "blend")


class RawEdge:
    """Qdrant Edge used directly: one point a record, no history, vectors and an index on the user."""

    persistent, by_cosine = True, True

    def __init__(self, corpus: Corpus, folder: Path) -> None:
        self._corpus, self._folder = corpus, folder
        self._shard: edge.EdgeShard

    async def open(self) -> None:
        if self._folder.exists():
            self._shard = edge.EdgeShard.load(str(self._folder))
            return
        self._folder.mkdir()
        dense = edge.EdgeVectorParams(size=self._corpus.vectors.shape[1], distance=edge.Distance.Cosine)
        sparse = edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)
        config = edge.EdgeConfig(vectors={"dense": dense}, sparse_vectors={"bm25": sparse})
        self._shard = edge.EdgeShard.create(str(self._folder), config)
        index = edge.UpdateOperation.create_field_index("user", edge.KeywordIndexParams(is_tenant=True))
        self._shard.update(index)

    async def insert(self) -> None:
        for start in range(0, len(self._corpus.texts), BATCH):
            stop = min(start + BATCH, len(self._corpus.texts))
            vectors = self._corpus.vectors[start:stop].tolist()
            points = [self._point(start + n, vector) for n, vector in enumerate(vectors)]
            self._shard.update(edge.UpdateOperation.upsert_points(points))

    async def search(self, query: int, user: str | None, limit: int) -> list[int]:
        condition = edge.FieldCondition("user", match=edge.MatchValue(user)) if user else None
        request = edge.QueryRequest(
            limit,
            query=edge.Query.Nearest(self._corpus.queries[query].tolist(), "dense"),
            filter=edge.Filter(must=[condition]) if condition else None,
            with_payload=True,
        )
        return [_row(point.payload) for point in self._shard.query(request)]

    async def close(self) -> None:
        self._shard.close()

    def _point(self, row: int, vector: list[float]) -> edge.Point:
        return edge.Point(_id(row), {"dense": vector}, _payload(self._corpus, row))


class RawEdgeSameContent(RawEdge):
    """Qdrant Edge used directly with what the ledger keeps of a record, except its history.

    The same vectors, BM25 too, and the same provenance as fields of the payload.
    """

    def _point(self, row: int, vector: list[float]) -> edge.Point:
        words = words_of(self._corpus.texts[row])
        sparse = edge.SparseVector(words.indices, words.values)
        provenance: dict[str, Any] = CHANGE.model_dump() | {"namespace": ["users", self._corpus.users[row]]}
        times = {"at": "2026-01-01T00:00:00.000000Z", "key": str(row), "kind": "semantic"}
        payload = _payload(self._corpus, row) | provenance | times
        return edge.Point(_id(row), {"dense": vector, "bm25": sparse}, payload)


class RawEdgeHnsw(RawEdge):
    """Qdrant Edge used directly, with its HNSW graph built, which counts as insertion."""

    async def insert(self) -> None:
        await super().insert()
        self._shard.optimize()


class ClientLocal:
    """qdrant-client's local mode, in memory."""

    persistent, by_cosine = False, True

    def __init__(self, corpus: Corpus, folder: Path) -> None:
        self._corpus = corpus
        self._client: AsyncQdrantClient

    async def open(self) -> None:
        warnings.filterwarnings("ignore", "Local mode is not recommended", UserWarning)  # it is measured
        self._client = AsyncQdrantClient(":memory:")
        size = self._corpus.vectors.shape[1]
        config = models.VectorParams(size=size, distance=models.Distance.COSINE)
        await self._client.create_collection("records", vectors_config=config)

    async def insert(self) -> None:
        for start in range(0, len(self._corpus.texts), BATCH):
            stop = min(start + BATCH, len(self._corpus.texts))
            vectors = self._corpus.vectors[start:stop].tolist()
            points = [
                models.PointStruct(id=start + n, vector=vector, payload=_payload(self._corpus, start + n))
                for n, vector in enumerate(vectors)
            ]
            await self._client.upsert("records", points)

    async def search(self, query: int, user: str | None, limit: int) -> list[int]:
        match = models.FieldCondition(key="user", match=models.MatchValue(value=user)) if user else None
        found = await self._client.query_points(
            "records",
            query=self._corpus.queries[query].tolist(),
            query_filter=models.Filter(must=[match]) if match else None,
            limit=limit,
        )
        return [int(point.id) for point in found.points]

    async def close(self) -> None:
        await self._client.close()


class LangGraphMemory:
    """LangGraph's InMemoryStore, with vectors."""

    persistent, by_cosine = False, True

    def __init__(self, corpus: Corpus, folder: Path) -> None:
        self._corpus, self._embedder = corpus, LookUpEmbedder(corpus)
        self._store: InMemoryStore

    async def open(self) -> None:
        async def embed(texts: Sequence[str]) -> list[list[float]]:
            asked = set(self._corpus.asked)
            if all(text in asked for text in texts):
                return [await self._embedder.embed_query(text) for text in texts]
            return await self._embedder.embed_documents(texts)

        size = self._corpus.vectors.shape[1]
        self._store = InMemoryStore(index={"dims": size, "embed": embed, "fields": ["text"]})

    async def insert(self) -> None:
        for start in range(0, len(self._corpus.texts), BATCH):
            rows = range(start, min(start + BATCH, len(self._corpus.texts)))
            await self._store.abatch(
                [
                    PutOp(("users", self._corpus.users[row]), str(row), _payload(self._corpus, row))
                    for row in rows
                ]
            )

    async def search(self, query: int, user: str | None, limit: int) -> list[int]:
        prefix = ("users", user) if user else ("users",)
        [found] = await self._store.abatch([SearchOp(prefix, query=self._corpus.asked[query], limit=limit)])
        assert isinstance(found, list)
        return [_row(getattr(item, "value", None)) for item in found]

    async def close(self) -> None:
        """Have nothing to close."""


class Numpy:
    """The least that a search can take: one matrix product, over rows collected for each user beforehand."""

    persistent, by_cosine = False, True

    def __init__(self, corpus: Corpus, folder: Path) -> None:
        self._corpus = corpus
        self._matrix = np.empty((0, 0), dtype=np.float32)
        self._own: dict[str, np.ndarray[Any, Any]] = {}

    async def open(self) -> None:
        """Start with nothing."""

    async def insert(self) -> None:
        self._matrix = self._corpus.vectors.copy()
        owners = np.array(self._corpus.users)
        self._own = {user: np.flatnonzero(owners == user) for user in set(self._corpus.users)}

    async def search(self, query: int, user: str | None, limit: int) -> list[int]:
        rows = self._own[user] if user else None
        scores = (self._matrix if rows is None else self._matrix[rows]) @ self._corpus.queries[query]
        best = np.argsort(-scores)[:limit]
        found: list[int] = (best if rows is None else rows[best]).tolist()
        return found

    async def close(self) -> None:
        """Have nothing to close."""


ENGINES: dict[EngineName, Callable[[Corpus, Path], Engine]] = {
    "ledger": OurLedger,
    "ledger, hybrid": HybridLedger,
    "ledger, blend": BlendLedger,
    "Qdrant Edge": RawEdge,
    "Qdrant Edge, same content": RawEdgeSameContent,
    "Qdrant Edge, HNSW": RawEdgeHnsw,
    "qdrant-client local": ClientLocal,
    "LangGraph InMemoryStore": LangGraphMemory,
    "numpy": Numpy,
}


def _payload(corpus: Corpus, row: int) -> dict[str, Any]:
    return {"row": row, "user": corpus.users[row], "text": corpus.texts[row]}


def _row(payload: Any) -> int:
    return int(payload["row"])


def _id(row: int) -> str:
    return str(uuid.uuid5(IDS, str(row)))
