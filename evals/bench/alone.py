"""Qdrant without the ledger: the same vectors, words and fields, one point a text, and no history."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID, uuid4

import httpx
import qdrant_edge as edge

from mneme.evals.bench.corpus import Corpus
from mneme.stores.ledger.records import Change, Source
from mneme.stores.ledger.words import Words, words_asked, words_of

CHANGE = Change(reason="the user said so", actor="memory agent", source=Source(thread="t1", messages=["m1"]))
FIELDS = CHANGE.model_dump() | {"kind": "semantic", "at": "2026-01-01T00:00:00.000000Z"}
WORDS, USER = "bm25", "user"
CANDIDATES = 64
"""What vectors and words propose each where ten records are wanted (`Query.candidates`)."""


class EdgeAlone:
    """Qdrant Edge in a folder, with an index on the user; a user of nothing means all."""

    def __init__(self, corpus: Corpus, folder: Path) -> None:
        folder.mkdir()
        self._corpus = corpus
        dense = {"dense": edge.EdgeVectorParams(size=corpus.dimension, distance=edge.Distance.Cosine)}
        words = {WORDS: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)}
        self.shard = edge.EdgeShard.create(str(folder), edge.EdgeConfig(vectors=dense, sparse_vectors=words))
        index = edge.UpdateOperation.create_field_index(USER, edge.KeywordIndexParams(is_tenant=True))
        self.shard.update(index)

    async def write(self, rows: Sequence[int], users: Sequence[str]) -> None:
        points = [self._point(row, user) for row, user in zip(rows, users, strict=True)]
        self.shard.update(edge.UpdateOperation.upsert_points(points))

    async def search(self, question: int, user: str, limit: int, words: bool = False) -> None:
        """Search by the vector; with `words`, by these too, for as many candidates as a blended search."""
        match = [edge.FieldCondition(USER, match=edge.MatchValue(user))] if user else []
        within, text = edge.Filter(must=[*match]) if match else None, self._corpus.asked[question]
        parts: dict[str, Any] = {"dense": await self._corpus.embed_query(text)}
        parts |= {WORDS: edge.SparseVector(*words_asked(text))} if words else {}
        for name, vector in parts.items():
            nearest, count = edge.Query.Nearest(vector, name), CANDIDATES if words else limit
            self.shard.query(edge.QueryRequest(count, query=nearest, filter=within, with_payload=True))

    def _point(self, row: int, user: str) -> edge.Point:
        dense, words, fields = stored(self._corpus, row, user)
        vectors: Any = {"dense": dense, WORDS: edge.SparseVector(*words)}
        return edge.Point(str(UUID(int=row)), vectors, fields)


class ServerAlone:
    """A collection on a Qdrant server, with an index on the user, spoken to without a library."""

    def __init__(self, corpus: Corpus, client: httpx.AsyncClient, path: str) -> None:
        self._corpus, self._client, self._path = corpus, client, path

    async def write(self, rows: Sequence[int], users: Sequence[str]) -> None:
        points = [self._point(row, user) for row, user in zip(rows, users, strict=True)]
        done = await self._client.put(f"{self._path}/points?wait=true", json={"points": points})
        done.raise_for_status()

    async def search(self, question: int, user: str, limit: int, words: bool = False) -> None:
        """Search by the vector; with `words`, by these too, for as many candidates as a blended search."""
        text, within = self._corpus.asked[question], {"must": [{"key": USER, "match": {"value": user}}]}
        parts: dict[str, Any] = {"dense": await self._corpus.embed_query(text)}
        parts |= {WORDS: words_asked(text)._asdict()} if words else {}
        common = {"filter": within, "limit": CANDIDATES if words else limit, "with_payload": True}
        asked = {"searches": [{"query": each, "using": name} | common for name, each in parts.items()]}
        (await self._client.post(f"{self._path}/points/query/batch", json=asked)).raise_for_status()

    def _point(self, row: int, user: str) -> dict[str, Any]:
        dense, words, fields = stored(self._corpus, row, user)
        return {
            "id": str(UUID(int=row)),
            "vector": {"dense": dense, WORDS: words._asdict()},
            "payload": fields,
        }


def stored(corpus: Corpus, row: int, user: str) -> tuple[list[float], Words, dict[str, Any]]:
    """Return what stands for a text: its vector, its words, its fields."""
    text = corpus.texts[row]
    place = {"namespace": ["users", user, "memories"], "key": str(row)}
    return corpus.vectors[row].tolist(), words_of(text), {USER: user, "text": text, **place, **FIELDS}


@asynccontextmanager
async def on_server(corpus: Corpus, url: str) -> AsyncIterator[tuple[ServerAlone, str]]:
    """Make a collection, and name a ledger beside it; both are deleted afterwards."""
    name = f"mneme-bench-{uuid4().hex}"
    path = f"/collections/{name}"
    dense = {"dense": {"size": corpus.dimension, "distance": "Cosine"}}
    layout = {"vectors": dense, "sparse_vectors": {WORDS: {"modifier": "idf"}}}
    index = {"field_name": USER, "field_schema": {"type": "keyword", "is_tenant": True}}
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        (await client.put(path, json=layout)).raise_for_status()
        try:
            (await client.put(f"{path}/index?wait=true", json=index)).raise_for_status()
            with TemporaryDirectory() as log:
                yield ServerAlone(corpus, client, path), f"{log}|{url}?collection={name}-ledger"
        finally:
            for each in (await client.get("/collections")).json()["result"]["collections"]:
                if each["name"].startswith(name):
                    await client.delete(f"/collections/{each['name']}")
