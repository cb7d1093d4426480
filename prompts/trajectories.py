"""How what a team did is told in text, and read back: one text a turn, what was done, what came of it."""

import re
from collections.abc import Sequence
from typing import NamedTuple

OBSERVATION = "\nObservation: "
TURN = re.compile(r"\[(\d+)\] ([^:\n]+): (.*?)(?:\nObservation: (.*))?", re.DOTALL)
START = re.compile(r"^(?=\[\d+\] [^:\n]+: )", re.MULTILINE)
NO_EFFECT = re.compile(r"\b(?:not valid|no effect|invalid|cannot|error|failed)\b", re.IGNORECASE)
LOOKING = re.compile(r"^(?:check valid actions|look around|think)\b", re.IGNORECASE)


class Told(NamedTuple):
    """A turn as it is read from text."""

    number: int
    agent: str
    output: str
    outcome: str

    @property
    def failed(self) -> bool:
        """Say whether the turn was answered as being without effect."""
        return bool(NO_EFFECT.search(self.outcome))

    @property
    def worked(self) -> bool:
        """Say whether the turn changed something, as far as the text tells."""
        return not (self.failed or LOOKING.search(self.output))

    @property
    def thought(self) -> str:
        """Return what was thought aloud in the turn, if it was a thought."""
        return self.output.partition(":")[2].strip() if self.output.lower().startswith("think") else ""


def tell(number: int, agent: str, output: str, outcome: str = "") -> str:
    """Say a turn as text."""
    return f"[{number}] {agent}: {output}{OBSERVATION if outcome else ''}{outcome}"


def read_turn(text: str) -> Told | None:
    """Read a turn's text; None where it is no turn."""
    found = TURN.fullmatch(text.strip())
    if found is None:
        return None
    number, agent, output, outcome = found.groups()
    return Told(int(number), agent.strip(), output.strip(), (outcome or "").strip())


def split_turns(text: str) -> list[str]:
    """Cut a text that holds several turns into their texts."""
    return [each.strip() for each in START.split(text) if each.strip()]


def read_turns(texts: Sequence[str]) -> list[Told]:
    """Read the turns among these texts."""
    return [told for told in map(read_turn, texts) if told]


def key_turns(turns: Sequence[Told]) -> list[int]:
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


def _same_sight(one: Told, other: Told) -> bool:
    return len(one.outcome.split(". ")) > 3 and one.outcome == other.outcome
