"""What a message gives to remember, in the user's own words where a model's cannot be used."""

from collections.abc import Iterable
from typing import TypeVar

from pydantic import BaseModel

from mneme.core.errors import BadAnswer
from mneme.models.asking.asking import ask
from mneme.models.asking.replies import Unusable, read
from mneme.nodes.chat.remembering import State
from mneme.prompts.chat.bounds import moment
from mneme.prompts.chat.evidence import located
from mneme.prompts.chat.memory_agent.reading import Candidate, Incoming, check_candidate
from mneme.prompts.prompt import Prompt
from mneme.stores.users.memories import Memory

Given = TypeVar("Given", bound=BaseModel)
Answer = TypeVar("Answer", bound=BaseModel)

MAX_QUOTE_CHARS = 900
"""Characters of the user's own words that stand for a memory which could not be written."""


def incoming(state: State) -> Incoming:
    """Return the message as a question gives it."""
    return Incoming(
        message=state["message"], preceding=state.get("preceding", []), time=moment(state.get("time", ""))
    )


def written(given: Incoming, memories: Iterable[Candidate], doubt: str = "") -> list[Memory]:
    """Return memories-to-be, each once and with the message's own words as its quote.

    One whose quote or content cannot be used (a model's last reply) is flagged; so is the one in doubt.
    """
    kept = [_kept(given, memory) for memory in memories]
    for number, memory in enumerate(kept):
        if (what := f"memories[{number}].content") in doubt:
            kept[number] = memory.model_copy(update={"flag": f"In doubt: {doubt.replace(what, 'it')}"})
    return list({each.content: each for each in kept}.values())


def _kept(given: Incoming, candidate: Candidate) -> Memory:
    quote, flag = located(candidate.quote, given.message), ""
    try:
        check_candidate(given, candidate)
    except ValueError as wrong:
        quote, flag = quote or given.message[:MAX_QUOTE_CHARS], f"Not as it should be: {wrong}"
    content = candidate.content.strip() or f"The user said: “{quote}”"
    return Memory(**candidate.model_dump() | {"content": content, "quote": quote, "flag": flag})


async def last_reply(prompt: Prompt[Given, Answer], given: Given, who: str) -> tuple[Answer, str]:
    """Ask in the background; return the answer and what stayed in doubt of it.

    Where every reply failed its checks the last one is returned, to keep what holds. Raises the failure where
    that is no answer at all.
    """
    try:
        answered = await ask(prompt, given, who, lane="background")
    except BadAnswer as bad:
        try:
            return read(bad.raw, prompt.answer), ""
        except Unusable:
            raise bad from None
    return answered.value, answered.doubt
