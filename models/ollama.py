"""Ask a model that Ollama serves: the client of langchain-ollama, made to fail loudly and rarely.

Set on purpose for every call: one `num_ctx` per model for the whole process (another would reload the
model), `num_predict`, `keep_alive`, seed, temperature, and `reasoning=False` for models that can think,
since unset means on (`true` on a model that cannot is refused, so there it stays unset). Waits are
bounded: for the connection, for the first token (a cold load takes a minute), between tokens.

Repeated, with growing and jittered waits: 429, 499, 500, 502, 503, an error inside a stream (-1),
transport errors, broken lines, empty streams, streams without their `done` line. Never repeated: 400,
401, 403, 404. Each repetition passes the gate anew, so that a wait holds no place.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, TypeVar

import httpx
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.language_models.chat_models import agenerate_from_stream
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, SystemMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_ollama import ChatOllama
from ollama import ResponseError
from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, stop_after_delay
from tenacity.wait import wait_exponential_jitter

from mneme.errors import BadInput, MnemeError, ModelUnavailable, PromptTooLong
from mneme.settings import settings
from models.budget import fit, refuse_if_cut, tokens, tokens_of
from models.catalogue import Facts, absent, bearer, facts, locked, refused, tls
from models.gate import Lane, gate
from models.replies import Endless, Leaked, Monotony, Spoken
from models.responders import Wish, Words

T = TypeVar("T")

PASSING = {429, 499, 500, 502, 503, -1}
CONNECT_SECONDS = 5.0
LONGEST_WAIT = 20.0

_leaky: set[str] = set()


class BrokenStreamError(Exception):
    """The stream ended without saying that it is complete."""


class Speaker(ChatOllama):
    """ChatOllama that lets no thinking through, notices circles and cuts, and does not wait for ever."""

    spoken: bool = False
    hold: bool = False
    idle: float = 60.0

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        speech = Spoken(self.hold) if self.spoken else None
        circle, complete = Monotony(), False
        async with aclosing(_unidle(super()._astream(messages, stop, **kwargs), self.idle)) as stream:
            async for chunk in stream:
                complete = complete or bool((chunk.generation_info or {}).get("done"))
                if chunk.text and circle.sees(chunk.text):
                    raise Endless("The reply repeats itself.", chunk.text)
                if speech:
                    chunk = _shown(chunk, speech, complete)  # noqa: PLW2901
                if chunk.text or complete or _calls(chunk):
                    yield chunk
        if not complete:
            raise BrokenStreamError("The stream ended without its last line.")

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        """Return the whole reply, by the same way as a streamed one."""
        return await agenerate_from_stream(self._astream(messages, stop, **kwargs))


def _shown(chunk: ChatGenerationChunk, speech: Spoken, complete: bool) -> ChatGenerationChunk:
    text = speech.feed(chunk.text) + (speech.end() if complete else "")
    return ChatGenerationChunk(
        message=chunk.message.model_copy(update={"content": text}), generation_info=chunk.generation_info
    )


def _calls(chunk: ChatGenerationChunk) -> bool:
    return isinstance(chunk.message, AIMessageChunk) and bool(chunk.message.tool_calls)


async def _unidle(stream: AsyncIterator[T], idle: float) -> AsyncGenerator[T, None]:
    """Pass a stream on; after its first item, the next may take `idle` seconds."""
    patience: float | None = None
    while True:
        try:
            async with asyncio.timeout(patience):
                item = await anext(stream)
        except StopAsyncIteration:
            return
        yield item
        patience = idle


async def say(model: str, words: Words, wish: Wish, *, lane: Lane, config: RunnableConfig) -> AIMessage:
    """Return one reply of a model, complete and within its context, or a typed error."""
    url = settings().ollama_url
    known = await facts(url, model)
    _refuse_unable(known, wish)
    context = context_of(known)
    asked = sum(tokens(json.dumps(tool)) for tool in wish.tools)
    room = context - min(wish.num_predict, context // 2) - asked
    messages = fit([SystemMessage(words.system)], words.history, words.task, room)
    speaker = _speaker(url, known, context, replace(wish, num_predict=_left(wish, context, messages)))

    async def reply() -> AIMessage:
        tools: dict[str, Any] = {"tools": list(wish.tools)} if wish.tools else {}
        return await speaker.ainvoke(messages, config, **tools)

    message = await persist(url, model, lambda: gate(url).run(lane, reply))
    refuse_if_cut(messages, message.usage_metadata["input_tokens"] if message.usage_metadata else 0)
    return message


def _left(wish: Wish, context: int, messages: Sequence[BaseMessage]) -> int:
    """Return the tokens that the reply may have: what is wished, within what the prompt leaves."""
    return min(wish.num_predict, context - tokens_of(messages))


def context_of(known: Facts) -> int:
    """Return the one context window that this process asks for, within what the model can."""
    wanted = settings().num_ctx
    return min(wanted, known.context_length) if known.context_length else wanted


def _refuse_unable(known: Facts, wish: Wish) -> None:
    if known.lacks("completion"):
        raise ModelUnavailable(f"{known.name} cannot chat.", "Choose a chat model, such as llama3.1:8b.")
    if wish.tools and known.lacks("tools"):
        raise _toolless(known.name)


def _toolless(model: str) -> ModelUnavailable:
    hint = "Choose a model with tools, such as llama3.1:8b, or version 3 of the memory agent."
    return ModelUnavailable(f"{model} does not support tools.", hint)


def _speaker(url: str, known: Facts, context: int, wish: Wish) -> Speaker:
    now = settings()
    patience = httpx.Timeout(now.first_token_seconds, connect=CONNECT_SECONDS)
    unkept = httpx.Limits(max_keepalive_connections=0)  # so that no socket outlives its event loop
    return Speaker(
        model=known.name,
        base_url=url,
        num_ctx=context,
        num_predict=wish.num_predict,
        temperature=wish.temperature,
        seed=wish.seed,
        keep_alive=now.keep_alive,
        reasoning=False if known.thinks else None,
        format=wish.schema,
        client_kwargs={"timeout": patience, "limits": unkept, "verify": tls(url), "headers": bearer()},
        idle=now.idle_seconds,
        spoken=wish.spoken,
        hold=known.may_leak_thought or known.name in _leaky,
    )


async def persist(url: str, model: str, call: Callable[[], Awaitable[T]]) -> T:
    """Return what a call returns, repeated while its failures look passing; then a typed error."""
    now = settings()
    attempts = AsyncRetrying(
        retry=retry_if_exception(passing),
        stop=stop_after_attempt(now.retries + 1) | stop_after_delay(now.first_token_seconds),
        wait=wait_exponential_jitter(now.retry_seconds, LONGEST_WAIT, jitter=now.retry_seconds),
        reraise=True,
    )

    async def attempt() -> T:
        return await call()

    try:
        return await attempts(attempt)
    except Leaked:
        _leaky.add(model)
        raise
    except (ResponseError, BrokenStreamError, ValueError, OSError, httpx.TransportError) as error:
        raise _meaning(error, url, model) from error


def passing(error: BaseException) -> bool:
    """Tell whether a failure is of the kind that goes away by itself."""
    if isinstance(error, ResponseError):
        return error.status_code in PASSING
    if isinstance(error, json.JSONDecodeError | BrokenStreamError | httpx.TransportError | OSError):
        return True
    return isinstance(error, ValueError) and _empty_stream(error)


def _empty_stream(error: ValueError) -> bool:
    return "No data received" in str(error) or "No generation" in str(error)


def _meaning(error: Exception, url: str, model: str) -> Exception:
    """Translate what langchain-ollama raises into what the user can do about it."""
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | ConnectionError):
        return refused(url)
    if isinstance(error, ResponseError):
        return _meaning_of_status(error, url, model)
    if passing(error):
        return ModelUnavailable(
            f"Ollama's answers break off ({error or type(error).__name__}).", "See Ollama's log."
        )
    return error


def _meaning_of_status(error: ResponseError, url: str, model: str) -> MnemeError:
    said = error.error
    if "exceed_context_size" in said or "exceeds the context length" in said:
        return PromptTooLong(f"The prompt does not fit the context of {model}.", "Raise MNEME_NUM_CTX.")
    if "does not support tools" in said:
        return _toolless(model)
    if error.status_code == 404:
        return absent(model)
    if error.status_code in {401, 403}:
        return locked(url)
    if error.status_code == 400:
        return BadInput(f"Ollama refuses the request: {said}")
    return ModelUnavailable(f"Ollama fails ({error.status_code}): {said}", "See its log, or `mneme doctor`.")
