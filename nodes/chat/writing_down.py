"""What a message gives to remember, in the user's own words where a model's do not hold."""

from collections.abc import Iterable
from typing import Any, TypeVar

from pydantic import BaseModel

from mneme.core.errors import BadAnswer
from mneme.core.evidence import located
from mneme.models.asking.asking import ask
from mneme.models.asking.replies import read
from mneme.models.asking.unusable import Unusable
from mneme.nodes.chat.remembering import State
from mneme.prompts.chat.memory_agent.reading import Candidate, Incoming, check_candidate
from mneme.prompts.prompt import Prompt

Given = TypeVar("Given", bound=BaseModel)
Answer = TypeVar("Answer", bound=BaseModel)

LONGEST_QUOTE = 900
"""Characters of the user's own words that stand for a memory which could not be written."""


def incoming(state: State) -> Incoming:
    """Return the message as a question gives it."""
    return Incoming(
        message=state["message"], preceding=state.get("preceding", []), time=state.get("time", "")
    )


def written(given: Incoming, memories: Iterable[Candidate]) -> list[dict[str, Any]]:
    """Return memories-to-be, each once and with the message's own words as its quote.

    What does not hold (a model's last reply) is replaced by what the user said, flagged.
    """
    kept = [_kept(given, memory) for memory in memories]
    return list({each["content"]: each for each in kept}.values())


def _kept(given: Incoming, memory: Candidate) -> dict[str, Any]:
    flag = ""
    try:
        check_candidate(given, memory)
    except ValueError as wrong:
        quote = located(memory.quote, given.message) or given.message[:LONGEST_QUOTE]
        memory = memory.model_copy(
            update={"content": f"The user said: “{quote}”", "quote": quote, "entities": [], "relations": []}
        )
        flag = f"In the user's own words: {wrong}"
    return memory.model_dump() | {"quote": located(memory.quote, given.message), "flag": flag}


async def answer_or_last_reply(prompt: Prompt[Given, Answer], given: Given, who: str) -> Answer:
    """Ask in the background; return the last reply where every one failed its checks, to keep what holds.

    Raises the failure where that reply is no answer at all.
    """
    try:
        return (await ask(prompt, given, who, lane="background")).value
    except BadAnswer as bad:
        try:
            return read(bad.raw, prompt.answer)
        except Unusable:
            raise bad from None
