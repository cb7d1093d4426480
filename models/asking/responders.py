"""Responders: resolves the name in a graph's context to a model, rules or a prepared script."""

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig

from mneme.core.errors import BadInput, ModelUnavailable
from mneme.core.settings import read_settings, settings
from mneme.models.asking import gate
from mneme.models.asking.gate import Lane
from mneme.models.asking.lazily import import_lazily
from mneme.models.ollama import catalogue

RESPONDER_FORMS = "auto, rules, ollama:<model>, <provider>:<model>"

log = logging.getLogger(__name__)

prepared: dict[str, Callable[[str, type[Any]], Any]] = {}
"""Prepared answers in place of a model, by responder; called with a prompt's name and its answer type."""


@dataclass(frozen=True)
class ModelRequest:
    """Input of a model call; only the history may be shortened if it does not fit."""

    system: str
    history: Sequence[BaseMessage]
    task: Sequence[BaseMessage]


@dataclass(frozen=True)
class CallOptions:
    """Reply format and sampling parameters of one model call.

    `free_text` replies stream, without their thinking; others are read whole, as JSON or as tool calls.
    """

    num_predict: int
    temperature: float
    seed: int
    schema: dict[str, Any] | None = None
    tools: tuple[dict[str, Any], ...] = ()
    free_text: bool = False
    top_logprobs: int = 0
    """Number of likeliest tokens to return at each position, if the server can."""
    kept_free: int = 0
    """Minimum tokens of the context that the prompt must leave free; 0: `num_predict`."""
    repeat_penalty: float = 0.0
    """Divisor for the scores of recent tokens, with Ollama; 0: its default."""


async def say(
    responder: str, request: ModelRequest, options: CallOptions, lane: Lane, config: RunnableConfig
) -> AIMessage:
    """Return one reply of a resolved model: of Ollama, or of any other provider that LangChain knows."""
    provider, _, name = responder.partition(":")
    if provider == "ollama":
        ollama = await import_lazily("mneme.models.ollama.chat")  # takes most of a second
        reply = await ollama.say(name, request, options, lane=lane, config=config)
    else:
        provided = await import_lazily("mneme.models.asking.provided")
        reply = await provided.say(provider, name, request, options, config)
    return cast(AIMessage, reply)


async def resolve(who: str) -> str:
    """Return the actual responder: `auto` becomes a model or `rules`; an unknown form is refused."""
    chosen = (await read_settings()).auto.strip()
    who = who.strip()
    if who == "auto":
        if not chosen:
            key = (settings().ollama_url, settings().model)
            known = _decided.get(key)  # a model that was found stays: if it fails, that is an error
            if known and (known.responder != "rules" or time.monotonic() - known.at < LOOK_AGAIN_SECONDS):
                return known.responder
            found = _decided[key] = _Decision(*await _find_responder(*key), time.monotonic())
            if known is None or known.responder != found.responder:
                log.info(found.notice or f"Answering by {found.responder}.")
            return found.responder
        who = chosen
    check_form(who)
    return who


def check_form(who: str) -> None:
    """Refuse a name whose form matches no responder. Raises BadInput."""
    kind, _, name = who.strip().partition(":")
    if who.strip() not in ("auto", "rules") and not (kind and name and kind != "rules"):
        raise unknown(who)


def unknown(who: str) -> BadInput:
    """Return the error for an unknown name; the commonest mistake is an Ollama model without `ollama:`."""
    provider, _, name = who.partition(":")
    meant = "" if provider == "ollama" or not provider else f" For a model of Ollama: {in_ollama(who)}."
    named = provider and name
    wrong = f"No provider is called {provider!r}." if named else f"{who!r} names no model and no responder."
    return BadInput(wrong, f"Accepted: {RESPONDER_FORMS}.{meant}")


def in_ollama(who: str) -> str:
    """Return the full name of an Ollama model that was named without its provider."""
    return f"ollama:{who.strip(':')}"


async def check(who: str) -> None:
    """Check before any work, and without a question, that a responder can answer.

    Raises BadInput for an unknown name, ModelUnavailable if the model is not available, MnemeError if a
    package is missing.
    """
    responder = await resolve(who)
    provider, _, name = responder.partition(":")
    if responder == "rules" or responder in prepared or (who.strip() == "auto" and not settings().auto):
        return  # `auto` has found a model that is there, unless MNEME_AUTO names one
    if provider == "ollama":
        known = await catalogue.digests(settings().ollama_url)
        if not {name, f"{name}:latest"} & set(known):
            raise catalogue.absent(name, list(known))
    else:
        provided = await import_lazily("mneme.models.asking.provided")
        await provided.check(provider, name)


async def check_sight(who: str) -> None:
    """Check before any work that a responder accepts pictures, as far as it says so.

    Raises BadInput for rules, ModelUnavailable for a model of Ollama without vision, and what `check` raises.
    """
    responder = await resolve(who)
    provider, _, name = responder.partition(":")
    if responder == "rules":
        raise BadInput(
            "No rule sees pictures.", "Name a model with vision: ollama:<model> or <provider>:<model>."
        )
    await check(responder)
    if provider == "ollama" and (await catalogue.facts(settings().ollama_url, name)).lacks("vision"):
        raise catalogue.blind(name)


LOOK_AGAIN_SECONDS = 30.0
"""Seconds that `auto` stays with `rules` before it looks for a model again, which may be pulled meanwhile."""


class _Decision(NamedTuple):
    """The responder for `auto`, the notice why it is not a model, and the time of the decision."""

    responder: str
    notice: str
    at: float


_decided: dict[tuple[str, str], _Decision] = {}


@dataclass
class ModelFacts:
    """Facts that this process learned about a model by asking it; None if it has not asked yet."""

    leaks_thought: bool = False
    returns_logprobs: bool | None = None
    count: Callable[[str], int] | None = None
    """Counts the tokens of a text with the model's tokenizer."""


learned: defaultdict[str, ModelFacts] = defaultdict(ModelFacts)
"""Facts by responder, such as `ollama:llama3.1:8b`."""


async def _find_responder(url: str, model: str) -> tuple[str, str]:
    """Return the responder for `auto`, and the notice that describes it."""
    get = f"Get a model: ollama pull {model}"
    try:
        names = await catalogue.digests(url)
    except catalogue.Refused:  # no Ollama here, which is no fault
        return "rules", f"No Ollama at {url}: answering by rules. {get}"
    except ModelUnavailable as error:
        return "rules", f"{str(error).rstrip('.')}: answering by rules. {error.hint}"
    if model in names or f"{model}:latest" in names:  # Ollama lists a model without a tag as `latest`
        return f"ollama:{model}", ""
    return "rules", f"Ollama at {url} has no {model}: answering by rules. {get}"


def auto_notice() -> str:
    """Return the notice for users if `auto` became `rules`; empty before `resolve`, or with a model."""
    known = _decided.get((settings().ollama_url, settings().model))
    return known.notice if known else ""


def clear_endpoints() -> None:
    """Clear what was decided and learned about endpoints, so that the next question looks again."""
    _decided.clear()
    learned.clear()
    catalogue.clear_catalogue()
    gate.clear_gates()


_drawn: ContextVar[tuple[int, float] | None] = ContextVar("drawn", default=None)


@contextmanager
def drawn(seed: int, temperature: float) -> Iterator[None]:
    """Sample every reply in the block with this seed, and at least at this temperature."""
    token = _drawn.set((seed, temperature))
    try:
        yield
    finally:
        _drawn.reset(token)


def as_drawn(options: CallOptions) -> CallOptions:
    """Return the options of a call with the seed and temperature of the block around it, if any."""
    draw = _drawn.get()
    if draw is None:
        return options
    seed, temperature = draw
    # At least: JSON is asked for at 0.0, where all seeds give the same reply.
    return replace(options, seed=seed, temperature=max(options.temperature, temperature))
