"""How probable a model's answer is, by the log-probabilities of its tokens, not by a number it writes.

Asked a question whose answer is one truth value, a model gives with its reply the log-probabilities of the
tokens that it could have said instead, where its server tells them: Ollama does since 0.12.11. Where
the answer comes from another provider, an older server or a rule, there is no probability; none is guessed.
"""

import logging
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeVar, cast

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
from mneme.models.asking.replies import read
from mneme.models.asking.responders import CallOptions, ModelRequest
from mneme.models.asking.schema import flat
from mneme.models.asking.unusable import Unusable
from mneme.models.asking.wording import in_own_words
from mneme.prompts.prompt import Prompt

G = TypeVar("G", bound=BaseModel)
A = TypeVar("A", bound=BaseModel)

TOKENS = 64
ALTERNATIVES = 20
"""The most tokens whose log-probabilities Ollama returns."""

log = logging.getLogger(__name__)
_without_logprobs: set[str] = set()


@dataclass(frozen=True)
class Probability:
    """How probable it is that the answer is true, and which model says so."""

    probability: float
    responder: str


async def ask_probability(
    prompt: Prompt[G, A], given: G, who: str, *, lane: Lane = "user"
) -> Probability | None:
    """Return the probability that the answer, one truth value, is true; None where it is not known.

    A model that did not return it once is not asked again by this process. Raises as `ask` does.
    """
    record = AskRecord(prompt.name, await resolve(who))
    if (
        record.is_prepared
        or not record.responder.startswith("ollama:")
        or record.responder in _without_logprobs
    ):
        return None
    own = await in_own_words(prompt)
    probability = await as_one_run(
        record, given, lambda run: ask_with_repairs(_question(own, given, lane), record, run), None
    )
    if probability is None:
        _without_logprobs.add(record.responder)
        log.warning("%s returns no log-probabilities: it is asked for a grade instead.", record.responder)
        return None
    return Probability(probability, record.responder)


def _question(prompt: Prompt[G, A], given: G, lane: Lane) -> Question[float | None]:
    system, user = prompt.wording(given)
    options = CallOptions(TOKENS, 0.0, SEED, schema=flat(prompt.answer), top_logprobs=ALTERNATIVES)
    request = ModelRequest(system, (), [HumanMessage(user)])
    return Question(
        request,
        options,
        lambda message: _probability(prompt, given, message),
        lane,
        False,
        "Reply again, with the corrected JSON object only.",
    )


def _probability(prompt: Prompt[G, A], given: G, message: AIMessage) -> float | None:
    """Return the probability of true in a reply that holds; raise `Unusable` for one that does not."""
    raw = complete_text(message)
    try:
        prompt.verify(given, read(raw, prompt.answer))
    except ValueError as error:
        raise Unusable(str(error), raw) from error
    tokens = message.response_metadata.get("logprobs")
    return probability_of_true(cast(Sequence[Mapping[str, Any]], tokens)) if tokens else None


def probability_of_true(tokens: Sequence[Mapping[str, Any]]) -> float | None:
    """Return P(true) against P(false) at the token where a reply decides; None where it tells neither.

    Each token has its text, its log-probability and its likeliest alternatives, as Ollama gives them.
    """
    said = re.search(r":\s*(true|false)", "".join(str(each["token"]) for each in tokens))
    if said is None:
        return None
    ends = accumulate(len(str(each["token"])) for each in tokens)
    masses = _masses(next(token for token, end in zip(tokens, ends, strict=True) if end > said.start(1)))
    total = sum(masses.values())
    return masses["true"] / total if total > 0 else None


def _masses(token: Mapping[str, Any]) -> dict[str, float]:
    """Sum the probabilities of the tokens with which either word could have begun."""
    masses = {"true": 0.0, "false": 0.0}
    told = {
        str(each["token"]): float(each["logprob"]) for each in [token, *(token.get("top_logprobs") or ())]
    }
    for text, logarithm in told.items():
        begun = text.strip(' :"\t\n').casefold()
        for word in masses:
            if begun and (word.startswith(begun) or re.match(rf"{word}\b", begun)):
                masses[word] += math.exp(logarithm)
    return masses


def forget() -> None:
    """Forget which models returned no log-probabilities, so that they are asked again."""
    _without_logprobs.clear()
