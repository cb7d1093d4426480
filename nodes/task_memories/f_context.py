"""f_context (§3, algorithm 1): the task, the agent's own memory, then as many recent turns as fit.

Deviation: algorithm 1 lets task and memory alone exceed the limit, and continues with a negative remainder.
Here that is an error, since the model's server would truncate such a prompt silently.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mneme.core.errors import PromptTooLong

Count = Callable[[str], int]
"""Number of tokens of a text, by the tokenizer of the model that reads it."""


def fitting(texts: Sequence[str], room: float, count: Count, left_out: str) -> str:
    """Join as many texts, from the first, as fit into `room` tokens; append `left_out` if not all do."""
    kept: list[str] = []
    for text in texts:
        room -= count(text + "\n")
        if room < 0:
            return "\n".join([*kept, left_out])
        kept.append(text)
    return "\n".join(kept)


@dataclass(frozen=True)
class Window:
    """The context of an agent: C_{n,m} of equation 1. `first` is the index of the oldest turn shown."""

    task: str
    memory: str
    turns: list[str]
    first: int
    tokens: int

    def __str__(self) -> str:
        memory = [f"Your memory:\n{self.memory}"] if self.memory else []
        turns = ["Recent turns:\n" + "\n\n".join(self.turns)] if self.turns else []
        return "\n\n".join([f"Task:\n{self.task}", *memory, *turns])


def f_context(task: str, memory: str, turns: Sequence[str], max_tokens: int, count: Count) -> Window:
    """Return task, memory, and the newest turns that fit into the remaining tokens, oldest first.

    Raises `PromptTooLong` if task and memory alone do not fit.
    """
    pinned = count(task) + count(memory)
    if pinned > max_tokens:
        raise PromptTooLong(
            f"Task and memory need {pinned} tokens; the context has {max_tokens}.",
            "Raise context_tokens, lower memory_tokens, or shorten the task.",
        )
    first, used = len(turns), pinned
    for turn in reversed(turns):
        used += (size := count(turn))
        if used > max_tokens:  # an older, shorter turn is not shown instead: turns have no gaps
            used -= size
            break
        first -= 1
    return Window(task, memory, list(turns[first:]), first, used)
