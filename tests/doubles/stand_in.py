"""A stand-in for an Ollama server: its protocol on a loopback socket, with answers that a function gives.

So what is around a model runs over real sockets with the real client. What the stand-in does not do is
think: a token is a word, and prompts are counted at four characters a token. Requests queue for `parallel`
places in order of arrival, as in Ollama; a client that goes away frees its place at once.
"""

import asyncio
import contextlib
import hashlib
import json
import math
import re
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import uvicorn
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

Json = dict[str, Any]
VERSION = "0.33.0"
STREAM = "application/x-ndjson"
BLOBS = "/api/blobs/"
"""Below this path files are uploaded as they are."""


@dataclass
class Model:
    """One model that the server has: what `/api/show` tells and how it behaves at its limits."""

    name: str = "llama3.1:8b"
    capabilities: tuple[str, ...] = ("completion", "tools")
    context_length: int = 131072
    dimension: int = 8
    template: str = "{{ .Prompt }}"
    quantization: str = "Q4_K_M"
    size: int = 4_900_000_000
    size_vram: int = 4_900_000_000
    overflow: Literal["cut", "error"] = "cut"
    vocabulary: Json = field(default_factory=dict)


@dataclass
class Reply:
    """One answer of `/api/chat`."""

    content: str | Iterable[str] = ""
    tool_calls: tuple[Json, ...] = ()
    seconds: float | None = None
    """Until its first token; None: as long as the server's answers take."""


Answer = str | Json | Reply
Brain = Callable[[Json], Any]
"""Gives the answer to a request's JSON."""


@dataclass
class Request:
    """What a client sent, and when what happened to it (seconds of `time.monotonic`)."""

    method: str
    path: str
    headers: Mapping[str, str]
    raw: bytes
    arrived: float = field(default_factory=time.monotonic)
    first_token: float | None = None
    ended: float | None = None
    aborted: bool = False

    def __post_init__(self) -> None:
        self.body: Json = json.loads(self.raw) if self.raw and not self.path.startswith(BLOBS) else {}


class Refused(Exception):  # noqa: N818  (an answer, not an error)
    """A request that is answered by a status and a message."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class StandIn:
    """A server on a free port of the loopback, run by a thread of its own while its `with` lasts."""

    def __init__(
        self, *models: Model, parallel: int = 1, seconds: float = 0.0, brain: Brain = lambda body: ""
    ) -> None:
        self.models = {model.name: model for model in models or (Model(),)}
        self.parallel, self.seconds, self.brain = parallel, seconds, brain
        self.blobs: dict[str, bytes] = {}
        self.requests: list[Request] = []
        self.url = ""
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._ready = threading.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Go away, as a server that is shut down: the port closes, and so does every connection."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()

    @property
    def chats(self) -> list[Request]:
        """The chat requests, in order of arrival."""
        return [request for request in self.requests if request.path == "/api/chat"]

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        self.places = asyncio.Semaphore(self.parallel)
        config = uvicorn.Config(self, http="h11", log_config=None, log_level=60)
        config.load()
        state = ServerState()
        state.default_headers = [(b"connection", b"close")]  # no client keeps one beyond its event loop
        server = await self._loop.create_server(
            lambda: H11Protocol(config=config, server_state=state, app_state={}),
            "127.0.0.1",
            0,
        )
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._ready.set()
        await self._stopping.wait()
        server.close()
        for connection in state.connections.copy():
            connection.transport.close()
        await asyncio.sleep(0)  # now each request knows that its client is gone
        await asyncio.gather(*state.tasks, return_exceptions=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, and stop when the client goes away; this is the ASGI application."""
        asked = HttpRequest(scope, receive)
        request = Request(asked.method, asked.url.path, asked.headers, await asked.body())
        self.requests.append(request)
        response = asyncio.ensure_future(self._respond(request, scope, send))
        gone = asyncio.ensure_future(receive())
        try:
            await asyncio.wait({response, gone}, return_when=asyncio.FIRST_COMPLETED)
            request.aborted = not response.done()
        finally:
            response.cancel()
            gone.cancel()
            request.ended = time.monotonic()
            with contextlib.suppress(asyncio.CancelledError):
                await response

    async def _respond(self, request: Request, scope: Scope, send: Send) -> None:
        try:
            response = await self.answer(request)
        except Refused as refused:
            response = JSONResponse({"error": str(refused)}, refused.status)
        await response(scope, _never, send)

    async def answer(self, request: Request) -> Response:
        """Answer by the request's path. Raises Refused."""
        response: Response
        match request.path:
            case "/api/version":
                response = JSONResponse({"version": VERSION})
            case "/api/tags":
                response = JSONResponse({"models": [tag_of(model) for model in self.models.values()]})
            case "/api/show":
                response = JSONResponse(shown_of(self.model(request), bool(request.body.get("verbose"))))
            case "/api/chat":
                response = await _begun(self.lines(request, self.model(request)))
            case "/api/create":
                response = self._create(request.body)
            case path if path.startswith(BLOBS):
                response = self._blob(request)
            case "/":
                response = PlainTextResponse("Ollama is running")
            case _:
                response = PlainTextResponse("404 page not found", 404)
        return response

    def model(self, request: Request) -> Model:
        """Return the model that is asked for. Raises Refused."""
        name = str(request.body.get("model", ""))
        model = self.models.get(name) or self.models.get(f"{name}:latest")
        if model is None:
            raise Refused(f"model '{name}' not found", 404)
        return model

    async def lines(self, request: Request, model: Model) -> AsyncIterator[bytes]:
        """Yield the lines of a reply, when a place is free. Raises Refused before the first."""
        async with self.places:
            answer = self.brain(request.body)
            reply = answer if isinstance(answer, Reply) else Reply(text_of(answer))
            await asyncio.sleep(self.seconds if reply.seconds is None else reply.seconds)
            request.first_token = time.monotonic()
            words = [*words_of(reply.content)]
            for word in words:
                yield line(part(request.body, content=word))
            calls: Json = {"tool_calls": [{"function": call} for call in reply.tool_calls]}
            ending = metrics("stop", prompt_tokens(request.body), len(words))
            yield line(part(request.body, **(calls if reply.tool_calls else {})) | ending)

    def _blob(self, request: Request) -> Response:
        """Say whether a file is here (HEAD), or take it in, if its digest is right."""
        digest = request.path.removeprefix(BLOBS)
        if request.method == "HEAD":
            return PlainTextResponse("", 200 if digest in self.blobs else 404)
        if digest != f"sha256:{hashlib.sha256(request.raw).hexdigest()}":
            raise Refused(f'digest mismatch, expected "{digest}"', 400)
        self.blobs[digest] = request.raw
        return PlainTextResponse("", 201)

    def _create(self, wanted: Json) -> Response:
        """Make a model of another and an adapter whose files were uploaded."""
        base = self.models.get(wanted["from"]) or self.models.get(f"{wanted['from']}:latest")
        if base is None:
            raise Refused("pull model manifest: file does not exist", 500)  # it asks its registry first
        if missing := {*wanted.get("adapters", {}).values()} - {*self.blobs}:
            raise Refused(f"blob {min(missing)} not found", 400)
        self.models[wanted["model"]] = replace(base, name=wanted["model"])
        return JSONResponse({"status": "success"})


async def _begun(lines: AsyncIterator[bytes]) -> Response:
    """Return a stream of lines once it has the first, until which it may be refused."""
    first = await anext(lines)

    async def every() -> AsyncIterator[bytes]:
        yield first
        async for each in lines:
            yield each

    return StreamingResponse(every(), media_type=STREAM)


async def _never() -> Message:
    """Wait for a client's end that another task waits for already."""
    return await asyncio.Future()


def text_of(answer: str | Json) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


def words_of(content: str | Iterable[str]) -> Iterable[str]:
    """Return a reply's tokens."""
    return re.findall(r"\s*\S+|\s+", content) if isinstance(content, str) else content


def prompt_tokens(body: Json) -> int:
    return sum(count_tokens(str(message.get("content", ""))) for message in body["messages"])


def count_tokens(text: str) -> int:
    """Count a text's tokens, at four characters each."""
    return math.ceil(len(text) / 4)


def line(content: Json) -> bytes:
    """Return a line of a stream of JSON."""
    return json.dumps(content, ensure_ascii=False).encode() + b"\n"


def part(body: Json, *, content: str = "", **more: Any) -> Json:
    """Return what a line of the reply to a request tells."""
    message = {"role": "assistant", "content": content, **more}
    return {"model": body["model"], "created_at": "2026-01-01T00:00:00Z", "message": message, "done": False}


def metrics(reason: str, prompt: int, tokens: int) -> Json:
    """Return what the last line tells."""
    counts = {"prompt_eval_count": prompt, "eval_count": tokens, "total_duration": 1, "load_duration": 1}
    return {"done": True, "done_reason": reason} | {name: n for name, n in counts.items() if n}


def _details(model: Model) -> Json:
    return {
        "parent_model": "",
        "format": "gguf",
        "family": "llama",
        "families": ["llama"],
        "parameter_size": "8.0B",
        "quantization_level": model.quantization,
    }


def tag_of(model: Model) -> Json:
    """Tell of a model what `/api/tags` tells."""
    return {
        "name": model.name,
        "model": model.name,
        "modified_at": "2026-01-01T00:00:00Z",
        "size": model.size,
        "digest": hashlib.sha256(model.name.encode()).hexdigest(),
        "details": _details(model),
        "capabilities": list(model.capabilities),
    }


def shown_of(model: Model, verbose: bool = False) -> Json:
    """Tell of a model what `/api/show` tells."""
    facts = {
        "general.architecture": "llama",
        "llama.context_length": model.context_length,
        "llama.embedding_length": model.dimension,
    }
    return {
        "modelfile": "",
        "parameters": "",
        "template": model.template,
        "details": _details(model),
        "model_info": facts | (model.vocabulary if verbose else {}),
        "capabilities": list(model.capabilities),
        "modified_at": "2026-01-01T00:00:00Z",
    }
