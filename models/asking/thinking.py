"""Keep a model's thinking out of what is shown and read of its reply."""

import re

from mneme.models.asking.json_objects import calls_in
from mneme.models.asking.unusable import Leaked, Unusable

HIDDEN = "think(?:ing)?|tool_call"
OPENING = re.compile(f"<(?:{HIDDEN})>", re.IGNORECASE)
CLOSING = re.compile(f"</(?:{HIDDEN})>", re.IGNORECASE)
TAGS = ("<think>", "<thinking>", "<tool_call>", "</think>", "</thinking>", "</tool_call>")
LONGEST_TAG = max(map(len, TAGS))
CALL_STARTS = ("{", "[{", "```json", "[TOOL_CALLS]", "<|python_tag|>", "<function")


class ThinkingFilter:
    """Pass on of a streamed reply its answer, never its thinking.

    With `hold`, nothing passes before a closing tag or the end: for models whose opening tag is
    written by their template, so that thinking cannot be told from the answer before it ends. Text that
    begins like a tool call is held to its end as well, and refused if it is one.
    """

    def __init__(self, hold: bool = False) -> None:
        self._hold = hold
        self._buffer = ""
        self._thinking = False
        self.said = ""

    def feed(self, text: str) -> str:
        """Return what of the text may be shown now."""
        self._buffer += text
        shown = ""
        while (piece := self._step()) is not None:
            shown += piece
        return self._show(shown)

    def end(self) -> str:
        """Return what is left to show; thinking that never ended is not."""
        rest = "" if self._thinking else self._buffer
        self._buffer = ""
        if not self.said and calls_in(rest):
            raise Unusable("Answer in plain words; no tools are offered.", rest)
        return self._show(rest)

    def _step(self) -> str | None:
        """Move past one tag or up to a possible one; None when more text is needed."""
        if self._thinking:
            return self._skip_thought()
        opening, closing = OPENING.search(self._buffer), CLOSING.search(self._buffer)
        if closing and (not opening or closing.start() < opening.start()):
            return self._unsay(closing.end())
        if opening:
            self._thinking = True
            shown, self._buffer = self._buffer[: opening.start()], self._buffer[opening.end() :]
            return shown
        if self._hold or self._like_a_call():
            return None
        ready = len(self._buffer) - _begun_tag(self._buffer)
        shown, self._buffer = self._buffer[:ready], self._buffer[ready:]
        return shown or None

    def _skip_thought(self) -> str | None:
        closing = CLOSING.search(self._buffer)
        if closing is None:
            self._buffer = self._buffer[-LONGEST_TAG:]
            return None
        self._thinking = False
        self._hold = False
        self._buffer = self._buffer[closing.end() :]
        return ""

    def _unsay(self, end: int) -> str:
        """Drop thinking that had no opening tag; raise where part of it has been shown already."""
        if self.said:
            raise Leaked("The thinking was not marked as such.", self.said)
        self._hold = False
        self._buffer = self._buffer[end:]
        return ""

    def _like_a_call(self) -> bool:
        start = self._buffer.lstrip()
        near = any(start.startswith(mark) or mark.startswith(start) for mark in CALL_STARTS)
        return not self.said and near

    def _show(self, text: str) -> str:
        text = text if self.said else text.lstrip()
        self.said += text
        return text


def _begun_tag(text: str) -> int:
    """Return the length of the text's end that may be the beginning of a tag."""
    end = text[-LONGEST_TAG:].lower()
    begun = (len(end) - at for at in range(len(end)) if any(tag.startswith(end[at:]) for tag in TAGS))
    return next(begun, 0)
