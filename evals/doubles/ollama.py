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
import math
import re
import struct
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from types import TracebackType
from typing import Any, Literal, Self, get_origin

from mneme.prompts.prompt import FORM, Prompt
from mneme.rules import registry

VERSION = "0.33.0"
STREAM = "application/x-ndjson"
REPEATS = 30
Json = dict[str, Any]


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
    """One answer of `/api/chat`, with whatever is to go wrong in it."""

    content: str | Iterable[str] = ""
    thinking: str = ""
    tool_calls: tuple[Json, ...] = ()
    done_reason: str = "stop"
    status: int = 200
    error: str = ""
    error_after: int | None = None
    cut_after: int | None = None
    broken_after: int | None = None
    done: bool = True
    empty: bool = False
    calls_in_last_line: bool = False
    seconds: float | None = None
    token_seconds: float | None = None
    prompt_tokens: int | None = None
    alternatives: Mapping[str, Mapping[str, float]] | None = None
    """For a piece, the log-probabilities of what could stand there; None: a server that tells none."""


@dataclass
class Embedding:
    """One answer of `/api/embed` in place of the hashed vectors."""

    vectors: list[list[float]] = field(default_factory=list)
    status: int = 200
    error: str = ""


Answer = str | Json | Reply | Embedding
Brain = Callable[[Json], Answer]


@dataclass
class Request:
    """What a client sent, and when what happened to it (seconds of `time.monotonic`)."""

    path: str
    headers: Mapping[str, str]
    body: Json
    arrived: float
    first_token: float | None = None
    ended: float | None = None
    aborted: bool = False


class Script:
    """Answers in the order in which they are to be given."""

    def __init__(self) -> None:
        self._answers: deque[Answer | Brain] = deque()

    def reply(self, *answers: Answer | Brain) -> None:
        """Append answers: a text, JSON, a `Reply`, or a function of the request that returns one."""
        self._answers.extend(answers)

    def next(self, body: Json, otherwise: Brain) -> Answer:
        """Return the next answer, or the brain's when the script is over."""
        answer = self._answers.popleft() if self._answers else otherwise
        return answer(body) if callable(answer) else answer


def by_rules(*prompts: Prompt[Any, Any]) -> Brain:
    """Make a brain that recognises prompts by their wording and answers by their rules.

    So a whole workflow runs over the wire, with valid answers, and without a language model. What was
    given is read back from the wording; lists and numbers are recognised as the prompt rendered them.
    """
    known = {
        system: prompt
        for prompt in prompts
        for system in (prompt.system, prompt.system_text(with_examples=True))
    }

    def answer(body: Json) -> Answer:
        system, user = (_said(body, role) for role in ("system", "user"))
        prompt = known.get(system)
        if prompt is None:
            return silent(body)
        ruled = registry.answer(prompt, _given(prompt, user))
        return ruled if isinstance(ruled, str) else Reply(ruled.model_dump_json())

    return answer


def _said(body: Json, role: str) -> str:
    """Return what the last message of a role says."""
    said = [str(message["content"]) for message in body["messages"] if message["role"] == role]
    return said[-1] if said else ""


def _given(prompt: Prompt[Any, Any], user: str) -> Any:
    """Read what was given out of the wording that it was put into."""
    parts = re.split(r"\$\{?(\w+)\}?", prompt.user)
    groups = [f"(?P<{part}>.*?)" if at % 2 else re.escape(part) for at, part in enumerate(parts)]
    found = re.fullmatch("".join(groups), user.rpartition(f"\n\n{FORM}")[0] or user, re.DOTALL)
    if found is None:
        raise ValueError(f"The wording of {prompt.name} is not recognised in: {user}")
    fields = prompt.given.model_fields
    values = {name: _unrendered(text, fields[name].annotation) for name, text in found.groupdict().items()}
    return prompt.given.model_validate(values)


def _unrendered(text: str, kind: Any) -> Any:
    """Undo how a prompt renders a list and an absent value."""
    if get_origin(kind) in {list, tuple}:
        return re.split(r"(?:\A|\n)\[\d+\] ", text)[1:]
    return "" if text == "(none)" else text


def silent(body: Json) -> Answer:
    """Refuse, because neither a script nor a brain has an answer."""
    return Reply(status=500, error="the double has no answer for this request")


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
                request = await _read(reader)
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
            await _whole(writer, {"error": str(refused)}, refused.status)

    async def _route(self, request: Request, writer: asyncio.StreamWriter) -> None:
        if self.api_key and request.headers.get("authorization") != f"Bearer {self.api_key}":
            raise _Refused("unauthorized", 401)
        match request.path:
            case "/":
                await _send(writer, b"Ollama is running", "text/plain", 200)
            case "/api/version":
                await _whole(writer, {"version": VERSION})
            case "/api/tags":
                await _whole(writer, {"models": [_tag(model) for model in self.models.values()]})
            case "/api/ps":
                await _whole(writer, {"models": [self._process(name) for name in self.loaded]})
            case "/api/pull":
                await self._pull(request, writer)
            case "/api/show" | "/api/embed" | "/api/chat":
                await self._with_model(request, writer)
            case _:
                await _send(writer, b"404 page not found", "text/plain", 404)

    def _process(self, name: str) -> Json:
        model = self.models[name]
        return {
            **_tag(model),
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
        await _head(writer, 200, STREAM)
        for line in lines:
            await _chunk(writer, _line(line))
        await _chunk(writer, b"")

    async def _with_model(self, request: Request, writer: asyncio.StreamWriter) -> None:
        name = str(request.body.get("model", ""))
        model = self.models.get(name) or self.models.get(f"{name}:latest")
        if model is None:
            raise _Refused(f"model '{name}' not found", 404)
        if request.path == "/api/show":
            await _whole(writer, _shown(model, verbose=bool(request.body.get("verbose"))))
        elif request.path == "/api/embed":
            await self._embed(request, model, writer)
        else:
            await self._queue_chat(request, model, writer)

    async def _embed(self, request: Request, model: Model, writer: asyncio.StreamWriter) -> None:
        given = request.body.get("input", [])
        texts = [given] if isinstance(given, str) else given
        if refusal := _refusal_of_embedding(request.body, texts, model):
            raise _Refused(refusal, 400)
        answer = self.embed.next(request.body, lambda body: Embedding([_vector(t, model) for t in texts]))
        if not isinstance(answer, Embedding):
            raise TypeError("an embedding is answered by an Embedding")
        if answer.status != 200:
            raise _Refused(answer.error, answer.status)
        count = sum(_tokens(text) for text in texts)
        body = {"model": model.name, "embeddings": answer.vectors, "prompt_eval_count": count}
        await _whole(writer, body)

    async def _queue_chat(self, request: Request, model: Model, writer: asyncio.StreamWriter) -> None:
        if refusal := _refusal(request.body, model):
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
        context = _context(request.body, model)
        if self.loaded.get(model.name) == context:
            return
        self.loads += 1
        await asyncio.sleep(self.load_seconds)
        self.loaded[model.name] = context

    async def _chat(self, request: Request, model: Model, writer: asyncio.StreamWriter) -> None:
        body, context = request.body, _context(request.body, model)
        prompt = sum(_tokens(str(message.get("content", ""))) for message in body["messages"])
        if prompt > context and model.overflow == "error":
            inner = json.dumps({"error": {"code": 400, "type": "exceed_context_size_error"}})
            raise _Refused(inner, 400)
        if prompt > context:
            prompt = context // 2
        answer = self.chat.next(body, self.brain)
        reply = _as_reply(answer)
        await asyncio.sleep(self.seconds if reply.seconds is None else reply.seconds)
        if reply.status != 200:
            raise _Refused(reply.error, reply.status)
        count = prompt if reply.prompt_tokens is None else reply.prompt_tokens
        await self._stream(request, reply, count, writer)

    async def _stream(self, request: Request, reply: Reply, count: int, writer: asyncio.StreamWriter) -> None:
        await _head(writer, 200, STREAM)
        pause = self.token_seconds if reply.token_seconds is None else reply.token_seconds
        try:
            async for line in _lines(request.body, reply, count, pause):
                request.first_token = request.first_token or time.monotonic()
                await _chunk(writer, line)
        except _Accident as accident:
            if accident.line is None:
                writer.transport.abort()
                return
            if accident.line:
                await _chunk(writer, accident.line)
        await _chunk(writer, b"")


class _Accident(Exception):  # noqa: N818  (what the double is asked for, not an error of it)
    """The end of a stream that breaks off: with a last line, with none (b""), or with a cut socket (None)."""

    def __init__(self, line: bytes | None) -> None:
        super().__init__(line)
        self.line = line


class _Refused(Exception):  # noqa: N818  (an answer, not an error)
    """A request that is answered by a status and a message."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


async def _lines(body: Json, reply: Reply, count: int, pause: float) -> AsyncIterator[bytes]:
    """Yield the stream's lines; raise `_Accident` where it is to break off."""
    if reply.empty:
        return
    if reply.thinking and body.get("think") is not False:
        yield _line(_part(body, thinking=reply.thinking))
    limit = body.get("options", {}).get("num_predict", -1)
    sent = 0
    for piece in islice(_pieces(reply), limit if limit >= 0 else None):
        yield _line(_part(body, content=piece) | _weights(body, reply, piece))
        sent += 1
        await asyncio.sleep(pause)
    if reply.done:
        reason = "length" if sent == limit else reply.done_reason
        for line in _ending(body, reply, _metrics(reason, count, sent)):
            yield line


def _weights(body: Json, reply: Reply, piece: str) -> Json:
    """Tell the log-probabilities of a piece and its alternatives, where they are asked for."""
    if not body.get("logprobs") or reply.alternatives is None:
        return {}
    told = reply.alternatives.get(piece, {piece: 0.0})
    top = [{"token": token, "logprob": weight} for token, weight in told.items()]
    return {"logprobs": [{"token": piece, "logprob": told[piece], "top_logprobs": top}]}


def _pieces(reply: Reply) -> Iterator[str]:
    """Yield the reply's tokens, as far as they come: Ollama gives up at 30 of the same."""
    words = re.findall(r"\s*\S+|\s+", reply.content) if isinstance(reply.content, str) else reply.content
    last, same, sent = "", 0, 0
    for word in words:
        _come_to(reply, sent)
        same = same + 1 if word == last else 1
        if same > REPEATS:
            raise _Accident(b"")
        yield word
        last, sent = word, sent + 1
    _come_to(reply, sent)


def _come_to(reply: Reply, sent: int) -> None:
    """Break off where the reply says that something goes wrong after so many tokens."""
    if sent == reply.cut_after:
        raise _Accident(None)
    if sent == reply.error_after:
        raise _Accident(_line({"error": reply.error}))
    if sent == reply.broken_after:
        raise _Accident(b'{"model": "x", "mess\n')


def _ending(body: Json, reply: Reply, metrics: Json) -> Iterator[bytes]:
    calls = [{"function": call} for call in reply.tool_calls]
    if calls and not reply.calls_in_last_line:
        yield _line(_part(body, tool_calls=calls))
    last: Json = {"tool_calls": calls} if calls and reply.calls_in_last_line else {}
    yield _line(_part(body, **last) | metrics)


def _part(body: Json, *, content: str = "", **more: Any) -> Json:
    message = {"role": "assistant", "content": content, **more}
    return {"model": body["model"], "created_at": "2026-01-01T00:00:00Z", "message": message, "done": False}


def _metrics(reason: str, prompt: int, tokens: int) -> Json:
    counts = {"prompt_eval_count": prompt, "eval_count": tokens, "total_duration": 1, "load_duration": 1}
    return {"done": True, "done_reason": reason} | {name: n for name, n in counts.items() if n}


def _as_reply(answer: Answer) -> Reply:
    if isinstance(answer, Reply):
        return answer
    if isinstance(answer, Embedding):
        raise TypeError("a chat is not answered by an Embedding")
    return Reply(answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False))


def _refusal(body: Json, model: Model) -> str:
    if body.get("tools") and "tools" not in model.capabilities:
        return f"registry.ollama.ai/library/{model.name} does not support tools"
    if body.get("think") and "thinking" not in model.capabilities:
        return f'"{model.name}" does not support thinking'
    if "completion" not in model.capabilities:
        return f'"{model.name}" does not support chat'
    return ""


def _context(body: Json, model: Model) -> int:
    return min(int(body.get("options", {}).get("num_ctx", 4096)), model.context_length)


def _tokens(text: str) -> int:
    return math.ceil(len(text) / 4)


def _vector(text: str, model: Model) -> list[float]:
    """Return a unit vector that depends on the text alone."""
    digest = hashlib.shake_256(text.encode()).digest(2 * model.dimension)
    raw = [number / 32768 for number in struct.unpack(f"{model.dimension}h", digest)]
    length = math.sqrt(sum(x * x for x in raw))
    return [x / length for x in raw]


def _details(model: Model) -> Json:
    return {
        "parent_model": "",
        "format": "gguf",
        "family": "llama",
        "families": ["llama"],
        "parameter_size": "8.0B",
        "quantization_level": model.quantization,
    }


def _refusal_of_embedding(body: Json, texts: list[str], model: Model) -> str:
    if "embedding" not in model.capabilities:
        return f'"{model.name}" does not support embeddings'
    if body.get("truncate") is False and any(_tokens(text) > model.context_length for text in texts):
        return "the input length exceeds the context length"
    return ""


def _tag(model: Model) -> Json:
    return {
        "name": model.name,
        "model": model.name,
        "modified_at": "2026-01-01T00:00:00Z",
        "size": model.size,
        "digest": hashlib.sha256(model.name.encode()).hexdigest(),
        "details": _details(model),
        "capabilities": list(model.capabilities),
    }


def _shown(model: Model, verbose: bool = False) -> Json:
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


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    path = first.split(" ")[1]
    return Request(path, headers, json.loads(body) if body else {}, time.monotonic())


async def _whole(writer: asyncio.StreamWriter, body: Json, status: int = 200) -> None:
    await _send(writer, json.dumps(body).encode(), "application/json", status)


async def _send(writer: asyncio.StreamWriter, body: bytes, kind: str, status: int) -> None:
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    writer.write(f"{head}Connection: close\r\n\r\n".encode() + body)
    await writer.drain()


async def _head(writer: asyncio.StreamWriter, status: int, kind: str) -> None:
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n"
    writer.write(f"{head}Connection: close\r\n\r\n".encode())
    await writer.drain()


async def _chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Write one chunk of a chunked body; an empty one ends it."""
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
    await writer.drain()


def _line(part: Json) -> bytes:
    return json.dumps(part, ensure_ascii=False).encode() + b"\n"
