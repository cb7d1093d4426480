"""A turn of a team: an action and its result, written as text and parsed from it."""

import re
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

FAILURE_WORDS = re.compile(r"\b(?:not valid|no effect|invalid|cannot|error|failed)\b", re.IGNORECASE)
LOOKING = re.compile(r"^(?:check valid actions|look around|think)\b", re.IGNORECASE)
TURN_LINE = re.compile(r"\[(\d+)\] ([^:\n]+): (.*?)(?:\nObservation: (.*))?", re.DOTALL)
TURN_START = re.compile(r"^(?=\[\d+\] [^:\n]+: )", re.MULTILINE)


class Turn(BaseModel):
    """One contribution to a task: an agent's output, and its environment's answer, if there is one."""

    model_config = ConfigDict(frozen=True)

    number: int
    agent: str
    output: str
    outcome: str = ""

    def __str__(self) -> str:
        seen = f"\nObservation: {self.outcome}" if self.outcome else ""
        return f"[{self.number}] {self.agent}: {self.output}{seen}"

    @property
    def failed(self) -> bool:
        """Return whether the environment answered that the turn had no effect."""
        return bool(FAILURE_WORDS.search(self.outcome))

    @property
    def worked(self) -> bool:
        """Return whether the turn changed something, according to its text."""
        return not (self.failed or LOOKING.search(self.output))

    @property
    def thought(self) -> str:
        """Return the thought of a turn that thinks aloud, else ""."""
        return self.output.partition(":")[2].strip() if self.output.lower().startswith("think") else ""


def read_turn(text: str) -> Turn | None:
    """Parse a turn's text; return None if it is no turn."""
    found = TURN_LINE.fullmatch(text.strip())
    if found is None:
        return None
    number, agent, output, outcome = ((each or "").strip() for each in found.groups())
    return Turn(number=int(number), agent=agent, output=output, outcome=outcome)


def split_turns(text: str) -> list[str]:
    """Split a text of several turns into the texts of each."""
    return [each.strip() for each in TURN_START.split(text) if each.strip()]


def read_turns(texts: Sequence[str]) -> list[Turn]:
    """Read the turns among these texts."""
    return [told for told in map(read_turn, texts) if told]
