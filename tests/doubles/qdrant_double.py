"""A Qdrant server's REST interface over the client's in-memory engine, so that the real client talks HTTP."""

import asyncio
import json
import re
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, TypeAdapter
from qdrant_client import models
from qdrant_client.http.models import PointsSelector
from qdrant_client.local.async_qdrant_local import AsyncQdrantLocal

Reply = Any


class QdrantDouble(AbstractContextManager["QdrantDouble"]):
    """A server on loopback; `version` and `api_key` are what it says and wants."""

    def __init__(self, version: str = "1.20.0", api_key: str = "") -> None:
        self.version, self.api_key = version, api_key
        self.requests: list[str] = []
        self._engine = AsyncQdrantLocal(":memory:")
        self._guard = threading.Lock()
        double = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = (
                -1
            )  # an answer in one piece: of two, the second waits 40 ms until the first is confirmed

            def handle_any(self) -> None:
                double.serve(self)

            do_GET = do_PUT = do_POST = do_DELETE = handle_any  # noqa: N815

            def log_message(self, format: str, *args: Any) -> None:
                """Keep quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "QdrantDouble":
        # `shutdown` waits for the end of an interval
        threading.Thread(target=self._server.serve_forever, args=[0.02], daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one request, in Qdrant's envelope."""
        body = handler.rfile.read(int(handler.headers.get("content-length") or 0))
        what = f"{handler.command} {urlsplit(handler.path).path}"
        if self.api_key and handler.headers.get("api-key") != self.api_key and what != "GET /":
            return _send(handler, 401, "Invalid API key or JWT")
        self.requests.append(what)
        try:
            with self._guard:
                found = asyncio.run(self._answer(what, json.loads(body) if body else None))
        except KeyError as missing:
            error = f"Not found: No point with id {missing.args[0]} found"
            return _send(handler, 404, {"status": {"error": error}})
        except ValueError as refusal:
            return _send(handler, 409, {"status": {"error": str(refusal)}})
        if what == "GET /":
            return _send(handler, 200, found)
        return _send(handler, 200, {"result": found, "status": "ok", "time": 0.0})

    async def _answer(self, what: str, body: Any) -> Reply:
        for pattern, route in ROUTES.items():
            if match := re.fullmatch(pattern, what):
                return await route(self, body, *match.groups())
        raise AssertionError(f"the double has no {what}")

    async def root(self, body: Any) -> Reply:
        return {"title": "qdrant - vector search engine", "version": self.version}

    async def listed(self, body: Any) -> Reply:
        return _plain(await self._engine.get_collections())

    async def aliases(self, body: Any) -> Reply:
        return _plain(await self._engine.get_aliases())

    async def change_aliases(self, body: Any) -> Reply:
        wanted = models.ChangeAliasesOperation.model_validate(body)
        return await self._engine.update_collection_aliases(wanted.actions)

    async def exists(self, body: Any, name: str) -> Reply:
        return {"exists": await self._engine.collection_exists(name)}

    async def create(self, body: Any, name: str) -> Reply:
        wanted = models.CreateCollection.model_validate(body)
        return await self._engine.create_collection(
            name, vectors_config=wanted.vectors, sparse_vectors_config=wanted.sparse_vectors
        )

    async def described(self, body: Any, name: str) -> Reply:
        return _plain(await self._engine.get_collection(name))

    async def cluster(self, body: Any, name: str) -> Reply:
        shard = {"shard_id": 0, "points_count": 0, "state": "Active"}
        return {
            "peer_id": 1,
            "shard_count": 1,
            "local_shards": [shard],
            "remote_shards": [],
            "shard_transfers": [],
        }

    async def drop(self, body: Any, name: str) -> Reply:
        return await self._engine.delete_collection(name)

    async def index(self, body: Any, name: str) -> Reply:
        models.CreateFieldIndex.model_validate(body)
        return _DONE

    async def upsert(self, body: Any, name: str) -> Reply:
        wanted = models.PointsList.model_validate(body)
        await self._engine.upsert(
            name, wanted.points, update_filter=wanted.update_filter, update_mode=wanted.update_mode
        )
        return _DONE

    async def retrieve(self, body: Any, name: str) -> Reply:
        wanted = models.PointRequest.model_validate(body)
        return _plain(await self._engine.retrieve(name, wanted.ids, with_vectors=wanted.with_vector or False))

    async def delete(self, body: Any, name: str) -> Reply:
        await self._engine.delete(name, TypeAdapter(PointsSelector).validate_python(body))
        return _DONE

    async def set_payload(self, body: Any, name: str) -> Reply:
        wanted = models.SetPayload.model_validate(body)
        chosen: Any = wanted.points or wanted.filter
        await self._engine.set_payload(name, wanted.payload, chosen)
        return _DONE

    async def batch(self, body: Any, name: str) -> Reply:
        operations = models.UpdateOperations.model_validate(body).operations
        await self._engine.batch_update_points(name, operations)
        return [_DONE for _ in operations]

    async def scroll(self, body: Any, name: str) -> Reply:
        wanted = models.ScrollRequest.model_validate(body)
        records, following = await self._engine.scroll(
            name,
            wanted.filter,
            limit=wanted.limit or 10,
            offset=wanted.offset,
            with_payload=True,
            with_vectors=wanted.with_vector or False,
        )
        return {"points": _plain(records), "next_page_offset": following}

    async def count(self, body: Any, name: str) -> Reply:
        wanted = models.CountRequest.model_validate(body)
        return _plain(await self._engine.count(name, wanted.filter))

    async def facet(self, body: Any, name: str) -> Reply:
        wanted = models.FacetRequest.model_validate(body)
        return _plain(
            await self._engine.facet(name, wanted.key, facet_filter=wanted.filter, limit=wanted.limit or 10)
        )

    async def query(self, body: Any, name: str) -> Reply:
        wanted = models.QueryRequestBatch.model_validate(body)
        return _plain(await self._engine.query_batch_points(name, wanted.searches))


_DONE = {"operation_id": 0, "status": "completed"}
ROUTES: dict[str, Callable[..., Any]] = {
    "GET /": QdrantDouble.root,
    "GET /aliases": QdrantDouble.aliases,
    "GET /collections": QdrantDouble.listed,
    "POST /collections/aliases": QdrantDouble.change_aliases,
    "GET /collections/([^/]+)/exists": QdrantDouble.exists,
    "PUT /collections/([^/]+)": QdrantDouble.create,
    "GET /collections/([^/]+)": QdrantDouble.described,
    "GET /collections/([^/]+)/cluster": QdrantDouble.cluster,
    "DELETE /collections/([^/]+)": QdrantDouble.drop,
    "PUT /collections/([^/]+)/index": QdrantDouble.index,
    "PUT /collections/([^/]+)/points": QdrantDouble.upsert,
    "POST /collections/([^/]+)/points": QdrantDouble.retrieve,
    "POST /collections/([^/]+)/points/delete": QdrantDouble.delete,
    "POST /collections/([^/]+)/points/payload": QdrantDouble.set_payload,
    "POST /collections/([^/]+)/points/batch": QdrantDouble.batch,
    "POST /collections/([^/]+)/points/scroll": QdrantDouble.scroll,
    "POST /collections/([^/]+)/points/count": QdrantDouble.count,
    "POST /collections/([^/]+)/facet": QdrantDouble.facet,
    "POST /collections/([^/]+)/points/query/batch": QdrantDouble.query,
}


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_none=True)
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _send(handler: BaseHTTPRequestHandler, status: int, answer: Any) -> None:
    content = json.dumps(answer).encode()
    handler.send_response(status)
    handler.send_header("content-type", "application/json")
    handler.send_header("content-length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)
