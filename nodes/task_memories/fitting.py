"""What of a task's turns fits into a context beside the task and the memory (algorithm 1)."""

from collections.abc import Sequence

from mneme.environments.turns import Turn
from mneme.nodes.task_memories.f_context import Count, f_context
from mneme.nodes.task_memories.interface import Means, Shown, Task

SHARE = 0.5
"""The most that a recollection may take of what the task leaves of the window: turns need room, too."""
SHORTEST = 20
LEFT_OUT = "(The rest is left out.)"


def within(means: Means, task: Task, memory: str, turns: Sequence[Turn]) -> Shown:
    """Return the memory and the newest turns that the window has room for.

    A memory that fills the window by itself loses its end. Raises PromptTooLong where the task does not fit.
    """
    shown = _clipped(memory, max(0, means.window - means.count(task.text)), means.count)
    window = f_context(task.text, shown, [str(turn) for turn in turns], means.window, means.count)
    return Shown(shown, list(turns[window.first :]))


def shortened(means: Means, task: Task, texts: Sequence[str]) -> str:
    """Return as many of the texts, from the first, as a recollection has room for."""
    count = means.count
    room = max(0, means.window - count(task.text)) * SHARE - count(LEFT_OUT)
    kept: list[str] = []
    for text in texts:
        room -= count(text + "\n")
        if room < 0:
            return "\n".join([*kept, LEFT_OUT]) if kept else ""
        kept.append(text)
    return "\n".join(kept)


def condensed(means: Means, texts: Sequence[str]) -> list[str]:
    """Return the texts for a question about them all; where they are too long, each loses its end."""
    needed = sum(means.count(text) for text in texts)
    if needed <= means.window:
        return list(texts)
    share = means.window / needed
    return [_cut(text, max(SHORTEST, int(len(text) * share))) for text in texts]


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[:room]} …"


def _clipped(text: str, room: int, count: Count) -> str:
    while count(text) > room:
        text = text[: len(text) * 9 // 10]
    return text
