"""Ask a model that Ollama serves: the client of langchain-ollama, made to fail loudly and rarely.

Every option is set on purpose for every call, and every wait is bounded: for the connection, for the first
token, between tokens, for all. Transient failures are retried (`transport.py`).
"""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import httpx
from langchain_core.language_models.chat_models import agenerate_from_stream
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, trim_messages
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_ollama import ChatOllama

from mneme.core.errors import ModelUnavailable, PromptTooLong
from mneme.core.settings import settings
from mneme.models.asking.counting import pictures_in, text_and_calls, tokens, tokens_of
from mneme.models.asking.gate import Lane, gate
from mneme.models.asking.replies import LeakedThinking
from mneme.models.asking.responders import CallOptions, ModelRequest, learned
from mneme.models.asking.streaming import ThinkingFilter, countable, watched
from mneme.models.ollama.catalogue import Facts, bearer, blind, facts, tls, toolless
from mneme.models.ollama.transport import BrokenStreamError, persist

CONNECT_SECONDS = 5.0
CUT_BELOW = 0.8
CUT_FROM = 256
LAST_OF_ALPHABETS = "\u2e80"  # behind it are the ideographs


class Speaker(ChatOllama):
    """ChatOllama that hides thinking, detects repetition and cut replies, and does not wait for ever."""

    spoken: bool = False
    hold: bool = False
    idle: float = 60.0
    longest: float = 600.0
    counted: int | None = None

    async def _astream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *_: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        # `_` takes a run manager, which langchain-ollama would give each token before thinking is removed.
        speech, complete = ThinkingFilter(self.hold) if self.spoken else None, False
        spoken = super()._astream(messages, stop, **kwargs)
        async with aclosing(watched(spoken, self.counted, self.idle, self.longest)) as stream:
            async for chunk in stream:
                complete = complete or bool((chunk.generation_info or {}).get("done"))
                if speech:
                    text = speech.feed(chunk.text) + (speech.end() if complete else "")
                    shown = chunk.message.model_copy(update={"content": text})
                    info = chunk.generation_info
                    chunk = ChatGenerationChunk(message=shown, generation_info=info)  # noqa: PLW2901
                # Hidden thinking leaves empty chunks; tool calls come without text, on some models not last.
                if chunk.text or complete or getattr(chunk.message, "tool_calls", False):
                    yield chunk
        if not complete:  # langchain-ollama 1.1.0 takes such a stream for a whole reply
            raise BrokenStreamError("The stream ended without its last line.")

    async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
        """Return the whole reply, by the same way as a streamed one."""
        # ChatOllama's own method reads the server's stream itself, past the checks of `_astream`.
        return await agenerate_from_stream(self._astream(*args, **kwargs))


async def say(
    model: str, request: ModelRequest, options: CallOptions, *, lane: Lane, config: RunnableConfig
) -> AIMessage:
    """Return one reply of a model, complete and within its context, or a typed error."""
    url = settings().ollama_url
    known = await facts(url, model)
    if known.lacks("completion"):
        raise ModelUnavailable(f"{known.name} cannot chat.", "Choose a chat model, such as llama3.1:8b.")
    if options.tools and known.lacks("tools"):
        raise toolless(known.name)
    if pictures_in(request.task) and known.lacks("vision"):
        raise blind(known.name)
    context = context_of(known)
    asked = sum(tokens(json.dumps(tool)) for tool in options.tools)
    # Prompt and reply share the context, at whose end Ollama cuts silently; half is always the prompt's.
    room = context - min(options.kept_free or options.num_predict, context // 2) - asked
    messages = fit([SystemMessage(request.system)], request.history, request.task, room)
    left = min(options.num_predict, context - tokens_of(messages))
    speaker = _speaker(url, known, context, replace(options, num_predict=left))

    async def reply() -> AIMessage:
        tools: dict[str, Any] = {"tools": list(options.tools)} if options.tools else {}
        return await speaker.ainvoke(messages, config, **tools)

    try:
        # Each attempt passes the gate anew, so that no place is held during the waits between them.
        message = await persist(url, model, lambda: gate(url).run(lane, reply))
    except LeakedThinking:  # every later reply is held back until its closing tag
        learned[f"ollama:{model}"].leaks_thought = True
        raise
    refuse_if_cut(messages, message.usage_metadata["input_tokens"] if message.usage_metadata else 0)
    return message


def context_of(known: Facts) -> int:
    """Return the one context window that this process asks for, within what the model can."""
    wanted = settings().num_ctx
    return min(wanted, known.context_length) if known.context_length else wanted


def _speaker(url: str, known: Facts, context: int, options: CallOptions) -> Speaker:
    now = settings()
    patience = httpx.Timeout(now.first_token_seconds, connect=CONNECT_SECONDS)  # a cold load takes a minute
    unkept = httpx.Limits(max_keepalive_connections=0)  # so that no socket outlives its event loop
    return Speaker(
        model=known.name,
        base_url=url,
        num_ctx=context,  # one for the whole process: another would reload the model
        num_predict=options.num_predict,
        temperature=options.temperature,
        seed=options.seed,
        repeat_penalty=options.repeat_penalty or None,
        keep_alive=now.keep_alive,
        reasoning=False if known.thinks else None,  # unset means on; others refuse True
        format=options.schema,
        logprobs=True if options.top_logprobs else None,
        top_logprobs=options.top_logprobs or None,
        client_kwargs={"timeout": patience, "limits": unkept, "verify": tls(url), "headers": bearer()},
        idle=now.idle_seconds,
        longest=now.reply_seconds,
        counted=countable(options.schema),
        spoken=options.free_text,
        hold=known.may_leak_thought or learned[f"ollama:{known.name}"].leaks_thought,
    )


def fit(
    system: Sequence[BaseMessage], history: Sequence[BaseMessage], task: Sequence[BaseMessage], room: int
) -> list[BaseMessage]:
    """Return system text, history and task within `room` tokens; the oldest whole turns are dropped."""
    # Ollama would drop the oldest messages itself, or cut the prompt to half its context, and answer 200.
    pinned = tokens_of(system) + tokens_of(task)
    if pinned > room:
        raise PromptTooLong(
            f"The prompt needs about {pinned} tokens; the model's context leaves {room}.",
            "Shorten the message, or raise MNEME_NUM_CTX.",
        )
    latest = trim_messages(
        list(history), max_tokens=room - pinned, token_counter=tokens_of, strategy="last", start_on="human"
    )
    return [*system, *latest, *task]


def refuse_if_cut(messages: Sequence[BaseMessage], read: int) -> None:
    """Raise where the server says it read far fewer tokens than the prompt can have had."""
    least = 0  # tokens that there surely are: the words of a text, or a quarter of its ideographs
    for text in map(text_and_calls, messages):
        foreign = sum(character > LAST_OF_ALPHABETS for character in text)
        least += max(len(text.split()), foreign // 4)
    if read and least >= CUT_FROM and read < CUT_BELOW * least:
        raise PromptTooLong(
            f"Ollama read {read} tokens of a prompt of at least {least}: it was cut.",
            "The server's context is smaller than MNEME_NUM_CTX; see `mneme doctor`.",
        )
