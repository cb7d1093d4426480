"""How probable a model holds something: the probabilities of its yes and its no, not a figure that it says.

Asked a question whose answer is one truth value, a model gives with its reply the log-probabilities of the
tokens that it could have said instead, where its server tells them: Ollama does since 0.12.11. What a
provider other than Ollama, an older server or a rule does not tell, is not guessed: there is no weight then.
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

from models.asking import resolve
from models.attempts import SEED, Asking, Tally, complete, repaired, traced
from models.gate import Lane
from models.replies import Unusable, read
from models.responders import Wish, Words
from models.schema import flat
from prompts.prompt import Prompt

G = TypeVar("G", bound=BaseModel)
A = TypeVar("A", bound=BaseModel)

TOKENS = 64
ALTERNATIVES = 20
"""The most that Ollama tells."""

log = logging.getLogger(__name__)
_untold: set[str] = set()


@dataclass(frozen=True)
class Weighed:
    """How probable it is that the answer is true, and who holds it so."""

    probability: float
    responder: str


async def weigh(prompt: Prompt[G, A], given: G, who: str, *, lane: Lane = "user") -> Weighed | None:
    """Return the probability that the answer, one truth value, is true; None where nobody tells it.

    Who has not told it once is not asked again by this process. Raises as `ask` does.
    """
    tally = Tally(prompt.name, await resolve(who))
    if tally.is_prepared or not tally.responder.startswith("ollama:") or tally.responder in _untold:
        return None
    probability = await traced(
        tally, given, lambda run: repaired(_asking(prompt, given, lane), tally, run), None
    )
    if probability is None:
        _untold.add(tally.responder)
        log.warning("%s tells no log-probabilities: it is asked for a grade instead.", tally.responder)
        return None
    return Weighed(probability, tally.responder)


def _asking(prompt: Prompt[G, A], given: G, lane: Lane) -> Asking[float | None]:
    system, user = prompt.wording(given)
    wish = Wish(TOKENS, 0.0, SEED, schema=flat(prompt.answer), alternatives=ALTERNATIVES)
    words = Words(system, (), [HumanMessage(user)])
    return Asking(
        words,
        wish,
        lambda message: _weighed(prompt, given, message),
        lane,
        False,
        "Reply again, with the corrected JSON object only.",
    )


def _weighed(prompt: Prompt[G, A], given: G, message: AIMessage) -> float | None:
    """Return the probability of true in a reply that holds; raise `Unusable` for one that does not."""
    raw = complete(message)
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
    """Ask everybody again."""
    _untold.clear()
