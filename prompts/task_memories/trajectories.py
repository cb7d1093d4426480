"""How what a team did is told in text, and read back: one text a turn, what was done, what came of it."""

import re
from typing import NamedTuple

OBSERVATION = "\nObservation: "


NO_EFFECT = re.compile(r"\b(?:not valid|no effect|invalid|cannot|error|failed)\b", re.IGNORECASE)


LOOKING = re.compile(r"^(?:check valid actions|look around|think)\b", re.IGNORECASE)


class ReadTurn(NamedTuple):
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
