"""Results as a model reads them: short, bounded, and each thing on a line of its own.

What was stored came from somebody's words. Its line breaks are taken out, so that no text can pose as another
line of the result.
"""

from pydantic import BaseModel

LONGEST = 600
"""Characters that are shown of one text."""


class Brief(BaseModel):
    """A result for a model, as data and as lines of text."""

    def lines(self) -> list[str]:
        """Return the result as lines."""
        raise NotImplementedError

    @property
    def text(self) -> str:
        return "\n".join(self.lines())


def short(text: str) -> str:
    """Return a text on one line, cut where it is too long."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


def alike(similarity: float | None) -> str:
    """Return how a line says a similarity; nothing where there is none."""
    return "" if similarity is None else f", similarity {similarity:.2f}"
