"""Stand in for an Ollama server: its HTTP protocol on a loopback socket, with scripted answers.

For tests and for latency runs, so that the real client code runs over real sockets::

    with OllamaDouble(parallel=1, seconds=0.2) as double:
        double.chat.reply("Hello!", Reply(status=503, error="server busy"))
        ... settings().ollama_url = double.url ...
        double.chats[0].body["format"]

A reply is taken from the script while it lasts, else from the `brain`, a function of the request's
JSON. Requests queue for `parallel` places in order of arrival, as in Ollama; a client that goes away
frees its place at once. What the double does not do is think: a token is a word, prompts are counted
at four characters a token, vectors are made of hashes.
"""

import asyncio
import contextlib
import hashlib
import json
import threading
import time
from dataclasses import replace
from types import TracebackType
from typing import Self

from mneme.evals.doubles.brains import by_rules
from mneme.evals.doubles.http import (
    BLOBS,
    as_line,
    read_request,
    send_bytes,
    send_chunk,
    send_head,
    send_json,
)
from mneme.evals.doubles.models import (
    context_of,
    count_tokens,
    refusal_of_chat,
    refusal_of_embedding,
    shown_of,
    tag_of,
    vector_of,
)
from mneme.evals.doubles.scripts import (
    Answer,
    Brain,
    Embedding,
    Json,
    Model,
    Reply,
    Request,
    Script,
    as_reply,
    silent,
)
from mneme.evals.doubles.streams import Accident, lines_of

__all__ = [
    "Answer",
    "Brain",
    "Embedding",
    "Json",
    "Model",
    "OllamaDouble",
    "Reply",
    "Request",
    "Script",
    "by_rules",
    "silent",
]

VERSION = "0.33.0"
STREAM = "application/x-ndjson"


class OllamaDouble:
    """A server on a free port of the loopback, run by a thread of its own while its `with` lasts."""

    def __init__(  # noqa: PLR0913  (each is a knob of the server)
        self,
        *models: Model,
        parallel: int = 1,
        seconds: float = 0.0,
        token_seconds: float = 0.0,
        load_seconds: float = 0.0,
        queue: int = 512,
        api_key: str = "",
        brain: Brain = silent,
    ) -> None:
        self.blobs: dict[str, bytes] = {}
        self.models = {model.name: model for model in models or (Model(),)}
        self.seconds, self.token_seconds, self.load_seconds = seconds, token_seconds, load_seconds
        self.parallel, self.queue, self.api_key, self.brain = parallel, queue, api_key, brain
        self.chat, self.embed = Script(), Script()
        self.requests: list[Request] = []
        self.loaded: dict[str, int] = {}
        self.loads = 0
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="ollama-double", daemon=True)
        self._ready = threading.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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

    @property
    def embeds(self) -> list[Request]:
        """The embedding requests, in order of arrival."""
        return [request for request in self.requests if request.path == "/api/embed"]

    def _serve(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._listen())

    async def _listen(self) -> None:
        self._stopping = asyncio.Event()
        self._places = asyncio.Semaphore(self.parallel)
        self._waiting = 0
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._ready.set()
        await self._stopping.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = self._loop.create_task(self._converse(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request on one connection, and stop when the client goes away."""
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                request = await read_request(reader)
                self.requests.append(request)
                await self._answer_unless_gone(request, reader, writer)
        finally:
            writer.close()

    async def _answer_unless_gone(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        answering = asyncio.ensure_future(self._answer(request, writer))
        gone = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({answering, gone}, return_when=asyncio.FIRST_COMPLETED)
            request.aborted = not answering.done() or isinstance(answering.exception(), ConnectionError)
        finally:
            answering.cancel()
            gone.cancel()
            results = await asyncio.gather(answering, gone, return_exceptions=True)
            request.ended = time.monotonic()
        if isinstance(results[0], Exception) and not isinstance(results[0], ConnectionError):
            raise results[0]

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        try:
            await self._route(request, writer)
        except _Refused as refused:
            await send_json(writer, {"error": str(refused)}, refused.status)

    async def _route(self, request: Request, writer: asyncio.StreamWriter) -> None:
        if self.api_key and request.headers.get("authorization") != f"Bearer {self.api_key}":
            raise _Refused("unauthorized", 401)
        match request.path:
            case "/":
                await send_bytes(writer, b"Ollama is running", "text/plain", 200)
            case "/api/version":
                await send_json(writer, {"version": VERSION})
            case "/api/tags":
                await send_json(writer, {"models": [tag_of(model) for model in self.models.values()]})
            case "/api/ps":
                await send_json(writer, {"models": [self._process(name) for name in self.loaded]})
            case "/api/pull":
                await self._pull(request, writer)
            case "/api/create":
                await self._create(request, writer)
            case path if path.startswith(BLOBS):
                await self._blob(request, writer)
            case "/api/show" | "/api/embed" | "/api/chat":
                await self._with_model(request, writer)
            case _:
                await send_bytes(writer, b"404 page not found", "text/plain", 404)

    def _process(self, name: str) -> Json:
        model = self.models[name]
        return {
            **tag_of(model),
            "expires_at": "2030-01-01T00:00:00Z",
            "size_vram": model.size_vram,
            "context_length": self.loaded[name],
        }

    async def _pull(self, request: Request, writer: asyncio.StreamWriter) -> None:
        known = request.body.get("model") in self.models
        lines: list[Json] = [{"status": "pulling manifest"}]
        if known:
            lines += [{"status": "pulling abc", "digest": "sha256:abc", "total": 10, "completed": 10}]
        lines += [{"status": "success"} if known else {"error": "pull model manifest: file does not exist"}]
        await send_head(writer, 200, STREAM)
        for line in lines:
            await send_chunk(writer, as_line(line))
        await send_chunk(writer, b"")

    async def _blob(self, request: Request, writer: asyncio.StreamWriter) -> None:
        """Say whether a file is here (HEAD), or take it in, if its digest is right."""
        digest = request.path.removeprefix(BLOBS)
        if request.method == "HEAD":
            await send_bytes(writer, b"", "text/plain", 200 if digest in self.blobs else 404)
            return
        if digest != f"sha256:{hashlib.sha256(request.raw).hexdigest()}":
            raise _Refused(f'digest mismatch, expected "{digest}"', 400)
        self.blobs[digest] = request.raw
        await send_bytes(writer, b"", "text/plain", 201)

    async def _create(self, request: Request, writer: asyncio.StreamWriter) -> None:
        """Make a model of another and an adapter whose files were uploaded."""
        wanted = request.body
        base = self.models.get(wanted["from"]) or self.models.get(f"{wanted['from']}:latest")
        if base is None:
            raise _Refused("pull model manifest: file does not exist", 500)  # it asks its registry first
        if missing := {*wanted.get("adapters", {}).values()} - {*self.blobs}:
            raise _Refused(f"blob {min(missing)} not found", 400)
        self.models[wanted["model"]] = replace(base, name=wanted["model"])
        await send_json(writer, {"status": "success"})

    async def _with_model(self, request: Request, writer: asyncio.StreamWriter) -> None:
        name = str(request.body.get("model", ""))
        model = self.models.get(name) or self.models.get(f"{name}:latest")
        if model is None:
            raise _Refused(f"model '{name}' not found", 404)
        if request.path == "/api/show":
            await send_json(writer, shown_of(model, verbose=bool(request.body.get("verbose"))))
        elif request.path == "/api/embed":
            await self._embed(request, model, writer)
        else:
            await self._queue_chat(request, model, writer)

    async def _embed(self, request: Request, model: Model, writer: asyncio.StreamWriter) -> None:
        given = request.body.get("input", [])
        texts = [given] if isinstance(given, str) else given
        if refusal := refusal_of_embedding(request.body, texts, model):
            raise _Refused(refusal, 400)
        answer = self.embed.next(request.body, lambda body: Embedding([vector_of(t, model) for t in texts]))
        if not isinstance(answer, Embedding):
            raise TypeError("an embedding is answered by an Embedding")
        if answer.status != 200:
            raise _Refused(answer.error, answer.status)
        count = sum(count_tokens(text) for text in texts)
        body = {"model": model.name, "embeddings": answer.vectors, "prompt_eval_count": count}
        await send_json(writer, body)

    async def _queue_chat(self, request: Request, model: Model, writer: asyncio.StreamWriter) -> None:
        if refusal := refusal_of_chat(request.body, model):
            raise _Refused(refusal, 400)
        if self._waiting >= self.queue:
            raise _Refused("server busy, please try again.  maximum pending requests exceeded", 503)
        self._waiting += 1
        try:
            await self._places.acquire()
        finally:
            self._waiting -= 1
        try:
            await self._load(request, model)
            await self._chat(request, model, writer)
        finally:
            self._places.release()

    async def _load(self, request: Request, model: Model) -> None:
        """Load the model, again where the request asks for another context than the loaded one."""
        context = context_of(request.body, model)
        if self.loaded.get(model.name) == context:
            return
        self.loads += 1
        await asyncio.sleep(self.load_seconds)
        self.loaded[model.name] = context

    async def _chat(self, request: Request, model: Model, writer: asyncio.StreamWriter) -> None:
        body, context = request.body, context_of(request.body, model)
        prompt = sum(count_tokens(str(message.get("content", ""))) for message in body["messages"])
        if prompt > context and model.overflow == "error":
            inner = json.dumps({"error": {"code": 400, "type": "exceed_context_size_error"}})
            raise _Refused(inner, 400)
        if prompt > context:
            prompt = context // 2
        answer = self.chat.next(body, self.brain)
        reply = as_reply(answer)
        await asyncio.sleep(self.seconds if reply.seconds is None else reply.seconds)
        if reply.status != 200:
            raise _Refused(reply.error, reply.status)
        count = prompt if reply.prompt_tokens is None else reply.prompt_tokens
        await self._stream(request, reply, count, writer)

    async def _stream(self, request: Request, reply: Reply, count: int, writer: asyncio.StreamWriter) -> None:
        await send_head(writer, 200, STREAM)
        pause = self.token_seconds if reply.token_seconds is None else reply.token_seconds
        try:
            async for line in lines_of(request.body, reply, count, pause):
                request.first_token = request.first_token or time.monotonic()
                await send_chunk(writer, line)
        except Accident as accident:
            if accident.line is None:
                writer.transport.abort()
                return
            if accident.line:
                await send_chunk(writer, accident.line)
        await send_chunk(writer, b"")


class _Refused(Exception):  # noqa: N818  (an answer, not an error)
    """A request that is answered by a status and a message."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status
