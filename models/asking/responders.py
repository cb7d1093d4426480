"""Who answers: the one place where the string of a graph's context becomes somebody."""

import asyncio
import logging
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.runnables import RunnableConfig

from mneme.core.errors import BadInput, MnemeError, ModelUnavailable, install_hint
from mneme.core.settings import read_settings, settings
from mneme.models.asking import gate
from mneme.models.asking.gate import Lane
from mneme.models.asking.lazily import import_lazily
from mneme.models.ollama import catalogue

if TYPE_CHECKING:
    from langchain_core.language_models.chat_models import BaseChatModel

FORMS = "auto, rules, scripted:<name>, ollama:<model>, <provider>:<model>"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ModelRequest:
    """What a model is to read; only the history may be shortened where it does not fit."""

    system: str
    history: Sequence[BaseMessage]
    task: Sequence[BaseMessage]


@dataclass(frozen=True)
class CallOptions:
    """What kind of reply one call is to have, and how it is drawn.

    `free_text` replies stream, without their thinking; others are read whole, as JSON or as tool calls.
    """

    num_predict: int
    temperature: float
    seed: int
    schema: dict[str, Any] | None = None
    tools: tuple[dict[str, Any], ...] = ()
    free_text: bool = False
    top_logprobs: int = 0
    """How many of the likeliest tokens to return at each place, where the server can."""
    kept_free: int = 0
    """Tokens of the context that the prompt must leave; 0: as many as are to be predicted."""


class Model(Protocol):
    """A language model, wherever it runs."""

    async def say(
        self, request: ModelRequest, options: CallOptions, lane: Lane, config: RunnableConfig
    ) -> AIMessage: ...


class Ollama:
    """A model that Ollama serves."""

    def __init__(self, name: str) -> None:
        self._name = name

    async def say(
        self, request: ModelRequest, options: CallOptions, lane: Lane, config: RunnableConfig
    ) -> AIMessage:
        """Return one reply of the model."""
        ollama = await import_lazily("mneme.models.ollama.chat")  # takes most of a second
        return cast(AIMessage, await ollama.say(self._name, request, options, lane=lane, config=config))


class Provided:
    """A model of any other provider that LangChain knows; its own client waits and repeats."""

    def __init__(self, provider: str, model: str) -> None:
        self._provider = provider
        self._model = model

    async def say(
        self, request: ModelRequest, options: CallOptions, lane: Lane, config: RunnableConfig
    ) -> AIMessage:
        """Return one reply; the schema is part of the system text, which every provider reads."""
        chat = await asyncio.to_thread(self._open, options)
        system = request.system + (_schema_text(options.schema) if options.schema else "")
        messages = [SystemMessage(system), *request.history, *request.task]
        runnable = chat.bind_tools(list(options.tools)) if options.tools else chat
        try:
            return await runnable.ainvoke(messages, config)
        except Exception as error:  # each provider has its own kinds
            raise self._failed(error) from error

    def _open(self, options: CallOptions) -> "BaseChatModel":
        try:
            models = import_module("langchain.chat_models")
            chat = models.init_chat_model(
                self._model,
                model_provider=self._provider,
                temperature=options.temperature,
                max_tokens=options.num_predict,
            )
        except ImportError as error:
            raise MnemeError(str(error).splitlines()[0], _install(error)) from error
        except Exception as error:  # each provider has its own kinds
            if "Unsupported provider" in str(error):
                raise BadInput(f"No provider is called {self._provider!r}.", f"Accepted: {FORMS}.") from error
            raise self._failed(error) from error
        return cast("BaseChatModel", chat)

    def _failed(self, error: Exception) -> ModelUnavailable:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        hint = "Check the model's name, its provider's key in the environment, and the network."
        return ModelUnavailable(f"{self._provider}:{self._model} does not answer: {reason}", hint)


def _install(error: ImportError) -> str:
    """Return the hint that says what to install; LangChain names the package only in its message."""
    named = re.search(r"pip install (?:-U )?([\w-]+)", str(error))
    if named is None or named[1] == "langchain":
        return install_hint("providers")
    return f"Install it: pip install {named[1]}"


def _schema_text(schema: dict[str, Any]) -> str:
    return f"\n\nReply with one JSON object and nothing else. It follows this JSON schema:\n{schema}"


def model_of(responder: str) -> Model:
    """Return the model that a resolved responder names."""
    provider, _, name = responder.partition(":")
    return Ollama(name) if provider == "ollama" else Provided(provider, name)


async def resolve(who: str) -> str:
    """Return who really answers: `auto` becomes a model or `rules`; an unknown form is refused."""
    await read_settings()
    who = who.strip()
    if who == "auto":
        return await _auto()
    kind, _, name = who.partition(":")
    if who == "rules" or (kind and name and kind != "rules"):
        return who
    raise BadInput(f"{who!r} names no model and no other responder.", f"Accepted: {FORMS}.")


LOOK_AGAIN_SECONDS = 30.0
"""How long `auto` stays with the rules before it looks again: a model may be pulled meanwhile."""


class _Decision(NamedTuple):
    """Who answers for `auto`, the line that says why it is not a model, and when that was decided."""

    responder: str
    notice: str
    at: float


_decided: dict[tuple[str, str], _Decision] = {}


async def _auto() -> str:
    """Decide for each endpoint: Ollama where it answers and has the model, else the rules for a while."""
    key = (settings().ollama_url, settings().model)
    known = _decided.get(key)
    if known and (known.responder != "rules" or time.monotonic() - known.at < LOOK_AGAIN_SECONDS):
        return known.responder
    found = _decided[key] = _Decision(*await _find_responder(*key), time.monotonic())
    if known is None or known.responder != found.responder:
        log.info(found.notice or f"Answering by {found.responder}.")
    return found.responder


async def _find_responder(url: str, model: str) -> tuple[str, str]:
    """Return who answers, and the one line that says so."""
    get = f"Get a model: ollama pull {model}"
    try:
        names = await catalogue.names(url)
    except ModelUnavailable:
        return "rules", f"No Ollama at {url}: answering by rules. {get}"
    if model in names or f"{model}:latest" in names:
        return f"ollama:{model}", ""
    return "rules", f"Ollama at {url} has no {model}: answering by rules. {get}"


def auto_notice() -> str:
    """Return the line to show where `auto` became `rules`; empty before `resolve`, or with a model."""
    known = _decided.get((settings().ollama_url, settings().model))
    return known.notice if known else ""


def forget() -> None:
    """Forget what was decided and learned about endpoints, so that the next ask looks again."""
    _decided.clear()
    catalogue.forget()
    gate.forget()
