"""Measure how probable a model holds a given answer, by the log-probabilities of the answer's tokens.

The server is made to say exactly that answer, by a schema that allows nothing else; the log-probabilities
that it returns are those before the schema shut out the rest. Ollama returns them since 0.12.11, and so do
servers that speak OpenAI's protocol, such as llama.cpp's. Where another provider, an older server or a rule
answers, there is no probability; none is guessed.
"""

import asyncio
import json
import logging
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

from langchain_core.messages import AIMessage, HumanMessage
from pydantic import BaseModel

from mneme.models.asking.asking import (
    SEED,
    Answered,
    Question,
    as_one_run,
    ask_with_repairs,
    complete_text,
    resolve,
)
from mneme.models.asking.gate import Lane
from mneme.models.asking.responders import CallOptions, ModelRequest, learned
from mneme.models.asking.wording import in_own_words
from mneme.prompts.prompt import Prompt

G = TypeVar("G", bound=BaseModel)

OVERHEAD = 64
MAX_MEASURED_CHARS = 600
"""Maximum characters of an answer that are measured: a server produces them one token after the other."""
LOGPROB_PROVIDERS = ("ollama:", "openai:")
"""Providers whose servers may return log-probabilities."""
Tokens = Sequence[Mapping[str, Any]]

log = logging.getLogger(__name__)
_first: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, asyncio.Lock]] = WeakKeyDictionary()
"""Of each event loop, what the first question to a server holds."""


@dataclass(frozen=True)
class Probability:
    """The probability of an answer, and the model that measured it."""

    probability: float
    responder: str


async def ask_likelihood(
    prompt: Prompt[G, str], given: G, answer: str, who: str, *, lane: Lane = "user"
) -> Probability | None:
    """Return how probable an answer's tokens are after a prompt, as their geometric mean; None: not known.

    Of a long answer the first MAX_MEASURED_CHARS are measured. A model that once returned no
    log-probabilities is not asked again by this process. Raises as `ask` does.
    """
    responder = await resolve(who)
    if not responder.startswith(LOGPROB_PROVIDERS):
        return None
    # On one line: llama.cpp b11549 holds no model to a text with line breaks.
    own, said = await in_own_words(prompt), " ".join(answer.split())[:MAX_MEASURED_CHARS]
    # The first question finds out whether there are log-probabilities, while the others wait for it.
    if learned[responder].returns_logprobs is None:
        async with _first.setdefault(asyncio.get_running_loop(), {}).setdefault(responder, asyncio.Lock()):
            if learned[responder].returns_logprobs is None:
                return await _measured(own, given, said, responder, lane)
    return await _measured(own, given, said, responder, lane) if learned[responder].returns_logprobs else None


async def _measured(
    prompt: Prompt[G, str], given: G, answer: str, responder: str, lane: Lane
) -> Probability | None:
    """Measure an answer's probability; None where the server did not hold the model to it."""

    def accept(message: AIMessage) -> float | None:
        raw, told = complete_text(message), message.response_metadata.get("logprobs") or []
        # Ollama gives a list, OpenAI's protocol one inside.
        tokens = cast(Tokens, (told.get("content") or []) if isinstance(told, dict) else told)
        if not tokens:
            log.warning("%s returns no log-probabilities: it is asked for a grade instead.", responder)
        learned[responder].returns_logprobs = bool(tokens)
        try:  # a server that ignores the schema may say something else: its tokens are not the answer's
            return likelihood_of(tokens) if json.loads(raw) == {"answer": answer} else None
        except ValueError:
            return None

    schema = {"type": "object", "properties": {"answer": {"const": answer}}, "required": ["answer"]}
    room = len(json.dumps(answer)) + OVERHEAD  # no token is shorter than a character of what JSON makes of it
    system, user = prompt.wording(given)
    question = Question(
        ModelRequest(system, (), [HumanMessage(user)]),
        CallOptions(room, 0.0, SEED, schema=schema, top_logprobs=1),
        accept,
        lane,
        False,
        "Reply again, with the JSON object only.",
    )
    record = Answered[Any](prompt.name, responder)
    async with as_one_run(record, given, None) as run:
        record.value = await ask_with_repairs(question, record, run)
    return None if record.value is None else Probability(record.value, responder)


def likelihood_of(tokens: Tokens) -> float | None:
    """Return the geometric mean of the probabilities of an answer's tokens; None where there is none.

    The tokens of the JSON around the answer do not count.
    """
    said = "".join(str(each["token"]) for each in tokens)
    begin, end = re.search(r':\s*"', said), said.rfind('"')
    if begin is None:
        return None
    ends = list(accumulate(len(str(each["token"])) for each in tokens))
    starts = [0, *ends[:-1]]
    inside = [
        float(each["logprob"])
        for each, first, last in zip(tokens, starts, ends, strict=True)
        if last > begin.end() and first < end  # a token that shares the answer's quote counts whole
    ]
    # The mean per token, not the product P(Y) of Memory Sharing's eq. 1, which shrinks with the length.
    return math.exp(sum(inside) / len(inside)) if inside else None
