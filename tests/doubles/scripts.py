"""Answers that are prepared for each prompt, given in order by the responder `scripted:<name>`."""

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage
from pydantic import BaseModel

from mneme.core.errors import BadAnswer, BadInput
from mneme.models.asking.replies import Unusable, read
from mneme.models.asking.responders import prepared

Line = BaseModel | str | AIMessage | Exception


class Script:
    """Answers prepared for each prompt by name, given in order; safe under threads."""

    def __init__(self, name: str, answers: Mapping[str, Sequence[Line]]) -> None:
        self.name = name
        self._lines = {prompt: deque(lines) for prompt, lines in answers.items()}
        self._lock = threading.Lock()

    def answer(self, prompt: str, kind: type[Any]) -> Any:
        """Return the next answer for a prompt; raise one that is an error, and when none is left."""
        with self._lock:
            lines = self._lines.get(prompt)
            if not lines:
                raise BadInput(f"The script {self.name!r} has no answer left for {prompt!r}.")
            line = lines.popleft()
        if isinstance(line, Exception):
            raise line
        if isinstance(line, str) and kind is AIMessage:
            return AIMessage(line)
        if isinstance(line, str) and issubclass(kind, BaseModel):
            try:
                return read(line, kind)
            except Unusable as unusable:
                raise BadAnswer(f"The script's line cannot be used: {unusable}", line) from unusable
        if not isinstance(line, kind):
            raise BadAnswer(f"scripted:{self.name} has no {kind.__name__} for {prompt}.", str(line))
        return line

    def left(self, prompt: str) -> int:
        """Return how many answers are left for a prompt."""
        return len(self._lines.get(prompt, ()))


def script(name: str, answers: Mapping[str, Sequence[Line]]) -> Script:
    """Register a script, which then answers as `scripted:<name>`; an earlier one of that name is replaced."""
    made = Script(name, answers)
    prepared[f"scripted:{name}"] = made.answer
    return made
