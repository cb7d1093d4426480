"""How rules answer the questions of `prompts/task_memories/trajectories.py`."""

import re
from collections.abc import Sequence

from mneme.prompts.task_memories.trajectories import ReadTurn

TURN = re.compile(r"\[(\d+)\] ([^:\n]+): (.*?)(?:\nObservation: (.*))?", re.DOTALL)


START = re.compile(r"^(?=\[\d+\] [^:\n]+: )", re.MULTILINE)


def read_turn(text: str) -> ReadTurn | None:
    """Read a turn's text; None where it is no turn."""
    found = TURN.fullmatch(text.strip())
    if found is None:
        return None
    number, agent, output, outcome = found.groups()
    return ReadTurn(int(number), agent.strip(), output.strip(), (outcome or "").strip())


def split_turns(text: str) -> list[str]:
    """Cut a text that holds several turns into their texts."""
    return [each.strip() for each in START.split(text) if each.strip()]


def read_turns(texts: Sequence[str]) -> list[ReadTurn]:
    """Read the turns among these texts."""
    return [told for told in map(read_turn, texts) if told]


def key_turns(turns: Sequence[ReadTurn]) -> list[int]:
    """Return the places of the turns that led on: without effectless ones and without ways back.

    A way back is what lies between two turns after which the same was seen, if what was seen is more
    than a few words.
    """
    kept: list[int] = []
    for place, turn in enumerate(turns):
        if not turn.worked:
            continue
        seen = [at for at, earlier in enumerate(kept) if _same_sight(turns[earlier], turn)]
        kept = kept[: seen[-1] + 1] if seen else [*kept, place]
    return kept


def _same_sight(one: ReadTurn, other: ReadTurn) -> bool:
    return len(one.outcome.split(". ")) > 3 and one.outcome == other.outcome
