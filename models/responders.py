"""Who answers: the one place where the string of a graph's context becomes somebody."""

import asyncio
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.runnables import RunnableConfig

from mneme.errors import BadInput, MnemeError, ModelUnavailable
from mneme.settings import read_settings, settings
from models import catalogue, gate
from models.gate import Lane
from models.lazily import lazily

if TYPE_CHECKING:
    from langchain_core.language_models.chat_models import BaseChatModel

FORMS = "auto, rules, scripted:<name>, ollama:<model>, <provider>:<model>"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Words:
    """What a model is to read; of it, only the history may be shortened."""

    system: str
    history: Sequence[BaseMessage]
    task: Sequence[BaseMessage]


@dataclass(frozen=True)
class Wish:
    """What is wanted of one call: the kind of reply and how it is drawn."""

    num_predict: int
    temperature: float
    seed: int
    schema: dict[str, Any] | None = None
    tools: tuple[dict[str, Any], ...] = ()
    spoken: bool = False
    alternatives: int = 0
    """Likeliest tokens to be told at each place with their log-probabilities, where the server can."""


class Model(Protocol):
    """A language model, wherever it runs."""

    async def say(self, words: Words, wish: Wish, lane: Lane, config: RunnableConfig) -> AIMessage: ...


class Ollama:
    """A model that Ollama serves."""

    def __init__(self, name: str) -> None:
        self._name = name

    async def say(self, words: Words, wish: Wish, lane: Lane, config: RunnableConfig) -> AIMessage:
        """Return one reply of the model."""
        ollama = await lazily("models.ollama")  # takes most of a second
        return cast(AIMessage, await ollama.say(self._name, words, wish, lane=lane, config=config))


class Provided:
    """A model of any other provider that LangChain knows; its own client waits and repeats."""

    def __init__(self, provider: str, model: str) -> None:
        self._provider = provider
        self._model = model

    async def say(self, words: Words, wish: Wish, lane: Lane, config: RunnableConfig) -> AIMessage:
        """Return one reply of the model; the wanted schema is told in words, as every provider reads them."""
        chat = await asyncio.to_thread(self._open, wish)
        system = words.system + (_in_words(wish.schema) if wish.schema else "")
        messages = [SystemMessage(system), *words.history, *words.task]
        runnable = chat.bind_tools(list(wish.tools)) if wish.tools else chat
        try:
            return await runnable.ainvoke(messages, config)
        except Exception as error:  # each provider has its own kinds
            raise self._failed(error) from error

    def _open(self, wish: Wish) -> "BaseChatModel":
        try:
            models = import_module("langchain.chat_models")
            chat = models.init_chat_model(
                self._model,
                model_provider=self._provider,
                temperature=wish.temperature,
                max_tokens=wish.num_predict,
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
    """Say what to install: LangChain names a provider's package in its message only."""
    named = re.search(r"pip install (?:-U )?([\w-]+)", str(error))
    package = named[1] if named and named[1] != "langchain" else '"mneme[providers]"'
    return f"Install it: pip install {package}"


def _in_words(schema: dict[str, Any]) -> str:
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
    raise BadInput(f"Nobody called {who!r} can answer.", f"Accepted: {FORMS}.")


_decided: dict[tuple[str, str], tuple[str, str]] = {}


async def _auto() -> str:
    """Decide once per process and endpoint: Ollama where it answers and has the model, else the rules."""
    key = (settings().ollama_url, settings().model)
    if key not in _decided:
        found = await _look_around(*key)
        if _decided.setdefault(key, found) is found:
            log.info(found[1] or f"Answering by {found[0]}.")
    return _decided[key][0]


async def _look_around(url: str, model: str) -> tuple[str, str]:
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
    return _decided.get((settings().ollama_url, settings().model), ("", ""))[1]


def forget() -> None:
    """Forget what was decided and learned about endpoints, so that the next ask looks again."""
    _decided.clear()
    catalogue.forget()
    gate.forget()
