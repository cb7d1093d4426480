"""Stand in for an Ollama server: its HTTP protocol on a loopback socket, with scripted answers.

So the real client code runs over real sockets::

    with OllamaDouble(parallel=1, seconds=0.2) as double:
        double.chat.reply("Hello!", Reply(status=503, error="server busy"))
        ... settings().ollama_url = double.url ...
        double.chats[0].body["format"]

A reply is taken from the script while it lasts, else from the `brain`, a function of the request's JSON. To
the stand-in it adds what goes wrong with a real server, embeddings, and loading.
"""

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator

from starlette.responses import JSONResponse, Response, StreamingResponse

from tests.doubles.brains import by_rules
from tests.doubles.ollama_limits import context_of, refusal_of_chat, refusal_of_embedding, vector_of
from tests.doubles.ollama_streams import Accident, Answer, Brain, Embedding, Reply, lines_of, silent
from tests.doubles.stand_in import (
    STREAM,
    Json,
    Model,
    Refused,
    Request,
    StandIn,
    count_tokens,
    line,
    prompt_tokens,
    tag_of,
    text_of,
)

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


class OllamaDouble(StandIn):
    """A server on a free port of the loopback, run by a thread of its own while its `with` lasts."""

    def __init__(
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
        super().__init__(*models, parallel=parallel, seconds=seconds, brain=brain)
        self.token_seconds, self.load_seconds = token_seconds, load_seconds
        self.queue, self.api_key = queue, api_key
        self.chat, self.embed = Script(), Script()
        self.loaded: dict[str, int] = {}
        self.loads = self._waiting = 0

    @property
    def embeds(self) -> list[Request]:
        """The embedding requests, in order of arrival."""
        return [request for request in self.requests if request.path == "/api/embed"]

    async def answer(self, request: Request) -> Response:
        if self.api_key and request.headers.get("authorization") != f"Bearer {self.api_key}":
            raise Refused("unauthorized", 401)
        match request.path:
            case "/api/ps":
                return JSONResponse({"models": [self._process(name) for name in self.loaded]})
            case "/api/pull":
                return self._pull(request.body)
            case "/api/embed":
                return self._embed(request.body, self.model(request))
        return await super().answer(request)

    def _process(self, name: str) -> Json:
        model = self.models[name]
        more = {"size_vram": model.size_vram, "context_length": self.loaded[name]}
        return {**tag_of(model), "expires_at": "2030-01-01T00:00:00Z", **more}

    def _pull(self, body: Json) -> Response:
        known = body.get("model") in self.models
        lines: list[Json] = [{"status": "pulling manifest"}]
        if known:
            lines += [{"status": "pulling abc", "digest": "sha256:abc", "total": 10, "completed": 10}]
        lines += [{"status": "success"} if known else {"error": "pull model manifest: file does not exist"}]
        return StreamingResponse(iter([line(each) for each in lines]), media_type=STREAM)

    def _embed(self, body: Json, model: Model) -> Response:
        given = body.get("input", [])
        texts = [given] if isinstance(given, str) else given
        if refusal := refusal_of_embedding(body, texts, model):
            raise Refused(refusal, 400)
        answer = self.embed.next(body, lambda body: Embedding([vector_of(text, model) for text in texts]))
        if not isinstance(answer, Embedding):
            raise TypeError("an embedding is answered by an Embedding")
        if answer.status != 200:
            raise Refused(answer.error, answer.status)
        count = sum(count_tokens(text) for text in texts)
        return JSONResponse({"model": model.name, "embeddings": answer.vectors, "prompt_eval_count": count})

    async def lines(self, request: Request, model: Model) -> AsyncIterator[bytes]:
        """Yield the lines of a reply, or what comes in place of some. Raises Refused before the first."""
        if refusal := refusal_of_chat(request.body, model):
            raise Refused(refusal, 400)
        if self._waiting >= self.queue:
            raise Refused("server busy, please try again.  maximum pending requests exceeded", 503)
        self._waiting += 1
        try:
            await self.places.acquire()
        finally:
            self._waiting -= 1
        try:
            await self._load(request.body, model)
            async for each in self._replied(request, model):
                yield each
        finally:
            self.places.release()

    async def _load(self, body: Json, model: Model) -> None:
        """Load the model, again where the request asks for another context than the loaded one."""
        context = context_of(body, model)
        if self.loaded.get(model.name) != context:
            self.loads += 1
            await asyncio.sleep(self.load_seconds)
            self.loaded[model.name] = context

    async def _replied(self, request: Request, model: Model) -> AsyncIterator[bytes]:
        body, context = request.body, context_of(request.body, model)
        prompt = prompt_tokens(body)
        if prompt > context and model.overflow == "error":
            raise Refused(json.dumps({"error": {"code": 400, "type": "exceed_context_size_error"}}), 400)
        answer = self.chat.next(body, self.brain)
        if isinstance(answer, Embedding):
            raise TypeError("a chat is not answered by an Embedding")
        reply = answer if isinstance(answer, Reply) else Reply(text_of(answer))
        await asyncio.sleep(self.seconds if reply.seconds is None else reply.seconds)
        if reply.status != 200:
            raise Refused(reply.error, reply.status)
        counted = context // 2 if prompt > context else prompt
        counted = counted if reply.prompt_tokens is None else reply.prompt_tokens
        pause = self.token_seconds if reply.token_seconds is None else reply.token_seconds
        yield b""  # the head of the answer is sent, whatever then goes wrong
        try:
            async for each in lines_of(body, reply, counted, pause):
                request.first_token = request.first_token or time.monotonic()
                yield each
        except Accident as accident:
            if accident.line is None:
                raise
            yield accident.line


def sent(double: OllamaDouble) -> list[Json]:
    """Return the bodies of the requests to chat."""
    return [request.body for request in double.chats]
