"""How probable a model's answer is, by the log-probabilities of its tokens, not by a number it writes.

Asked a question whose answer is one truth value, a model gives with its reply the log-probabilities of the
tokens that it could have said instead, where its server tells them: Ollama does since 0.12.11, and so do
servers that speak OpenAI's protocol, such as llama.cpp's. Where the answer comes from another provider, an
older server or a rule, there is no probability; none is guessed. A word that is not among the tokens told has
an unknown probability, not 0.

`ask_likelihood` measures instead of asking: how probable each token of a given answer is, after a given
prompt. The server is made to say exactly that answer, by a schema that allows nothing else; the
log-probabilities that it tells are those before the schema shut out the rest.
"""

import asyncio
import json
import logging
import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

from langchain_core.messages import AIMessage, HumanMessage
from pydantic import BaseModel

from mneme.models.asking.asking import resolve
from mneme.models.asking.attempts import (
    SEED,
    AskRecord,
    Question,
    as_one_run,
    ask_with_repairs,
    complete_text,
)
from mneme.models.asking.gate import Lane
from mneme.models.asking.replies import Unusable, read
from mneme.models.asking.responders import CallOptions, ModelRequest, learned
from mneme.models.asking.schema import flat
from mneme.models.asking.wording import in_own_words
from mneme.prompts.prompt import Prompt

G = TypeVar("G", bound=BaseModel)
A = TypeVar("A", bound=BaseModel)
Said = TypeVar("Said", bound=BaseModel | str)

TOKENS = 64
ALTERNATIVES = 20
"""The most tokens whose log-probabilities Ollama returns."""

MAX_MEASURED_CHARS = 600
"""Characters of an answer that are measured: a server says them one token after the other."""
LOGPROB_PROVIDERS = ("ollama:", "openai:")
"""Providers whose servers may tell log-probabilities."""
Tokens = Sequence[Mapping[str, Any]]

log = logging.getLogger(__name__)
_first: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, asyncio.Lock]] = WeakKeyDictionary()
"""Of each event loop, what the first question to a server holds."""


@dataclass(frozen=True)
class Probability:
    """How probable it is that the answer is true, and which model says so."""

    probability: float
    responder: str


async def ask_probability(
    prompt: Prompt[G, A], given: G, who: str, *, lane: Lane = "user"
) -> Probability | None:
    """Return the probability that the answer, one truth value, is true; None where it is not known.

    A model that told no log-probabilities once is not asked again by this process. Raises as `ask` does.
    """

    def found(raw: str, tokens: Tokens) -> float | None:
        try:
            own.verify(given, read(raw, own.answer))
        except ValueError as error:
            raise Unusable(str(error), raw) from error
        return probability_of_true(tokens)

    own = await in_own_words(prompt)
    drawn = CallOptions(TOKENS, 0.0, SEED, schema=flat(prompt.answer), top_logprobs=ALTERNATIVES)
    return await _told(own, given, who, lane, drawn, found)


async def ask_likelihood(
    prompt: Prompt[G, str], given: G, answer: str, who: str, *, lane: Lane = "user"
) -> Probability | None:
    """Return how probable an answer's tokens are after a prompt, as their geometric mean; None: not known.

    Of a long answer the first MAX_MEASURED_CHARS are measured, all on one line: llama.cpp b11549 holds no
    model to a text with line breaks. Raises as `ask` does.
    """
    said = " ".join(answer.split())[:MAX_MEASURED_CHARS]
    schema = {"type": "object", "properties": {"answer": {"const": said}}, "required": ["answer"]}

    def found(raw: str, tokens: Tokens) -> float | None:
        """Believe no server that was not held to the schema and said something else."""
        try:
            held = json.loads(raw) == {"answer": said}
        except ValueError:
            held = False
        return likelihood_of(tokens) if held else None

    room = len(json.dumps(said)) + TOKENS  # no token is shorter than a character of what JSON makes of it
    drawn = CallOptions(room, 0.0, SEED, schema=schema, top_logprobs=1)
    return await _told(await in_own_words(prompt), given, who, lane, drawn, found)


async def _told(  # noqa: PLR0913, PLR0917 (one name for each thing that is asked)
    prompt: Prompt[G, Said],
    given: G,
    who: str,
    lane: Lane,
    drawn: CallOptions,
    found: Callable[[str, Tokens], float | None],
) -> Probability | None:
    """Ask a server that tells log-probabilities, and return what is found in them; None: unknown."""
    record = AskRecord(prompt.name, await resolve(who))
    if not record.responder.startswith(LOGPROB_PROVIDERS):
        return None
    answered, tells = False, True

    def accept(message: AIMessage) -> float | None:
        nonlocal answered, tells
        raw, told = complete_text(message), message.response_metadata.get("logprobs") or []
        # Ollama gives a list, OpenAI's protocol one inside.
        tokens = cast(Tokens, (told.get("content") or []) if isinstance(told, dict) else told)
        answered, tells = True, bool(tokens)
        return found(raw, tokens)

    system, user = prompt.wording(given)
    request = ModelRequest(system, (), [HumanMessage(user)])
    question = Question(request, drawn, accept, lane, False, "Reply again, with the JSON object only.")

    async def asked() -> float | None:
        try:
            return await as_one_run(record, given, lambda run: ask_with_repairs(question, record, run), None)
        finally:
            if answered:
                if not tells:
                    log.warning(
                        "%s returns no log-probabilities: it is asked for a grade instead.", record.responder
                    )
                learned[record.responder].returns_logprobs = tells

    probability = await _one_first(record.responder, asked)
    return None if probability is None else Probability(probability, record.responder)


async def _one_first(responder: str, asked: Callable[[], Awaitable[float | None]]) -> float | None:
    """Let one question find out whether a server tells log-probabilities, while the others wait for it."""
    if learned[responder].returns_logprobs is None:
        async with _first.setdefault(asyncio.get_running_loop(), {}).setdefault(responder, asyncio.Lock()):
            if learned[responder].returns_logprobs is None:
                return await asked()
    return await asked() if learned[responder].returns_logprobs else None


def likelihood_of(tokens: Tokens) -> float | None:
    """Return the geometric mean of the probabilities of a reply's tokens but those of JSON around it.

    The first token of the answer may share the quote before it, and counts whole; None: there is none.
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
        if last > begin.end() and first < end
    ]
    return math.exp(sum(inside) / len(inside)) if inside else None


def probability_of_true(tokens: Tokens) -> float | None:
    """Return P(true) against P(false) at the token where a reply decides; None where one of them is not told.

    Each token has its text, its log-probability and its likeliest alternatives, as Ollama gives them.
    """
    said = re.search(r":\s*(true|false)", "".join(str(each["token"]) for each in tokens))
    if said is None:
        return None
    ends = accumulate(len(str(each["token"])) for each in tokens)
    token = next(token for token, end in zip(tokens, ends, strict=True) if end > said.start(1))
    masses = {"true": 0.0, "false": 0.0}  # of the tokens with which either word could have begun
    told = {
        str(each["token"]): float(each["logprob"]) for each in [token, *(token.get("top_logprobs") or ())]
    }
    for text, logarithm in told.items():
        begun = text.strip(' :"\t\n').casefold()
        for word in masses:
            if begun and (word.startswith(begun) or re.match(rf"{word}\b", begun)):
                masses[word] += math.exp(logarithm)
    return masses["true"] / sum(masses.values()) if all(masses.values()) else None
