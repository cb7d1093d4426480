"""Answers that are known beforehand: scripts for tests."""

import threading
from collections import deque
from collections.abc import Mapping, Sequence

from langchain_core.messages import AIMessage
from pydantic import BaseModel

from mneme.core.errors import BadInput

Line = BaseModel | str | AIMessage | Exception


class Script:
    """Answers prepared for each prompt by name, given in order; safe under threads."""

    def __init__(self, name: str, answers: Mapping[str, Sequence[Line]]) -> None:
        self.name = name
        self._lines = {prompt: deque(lines) for prompt, lines in answers.items()}
        self._lock = threading.Lock()

    def next(self, prompt: str) -> Line:
        """Return the next answer for a prompt; raise one that is an error, and when none is left."""
        with self._lock:
            lines = self._lines.get(prompt)
            if not lines:
                raise BadInput(f"The script {self.name!r} has no answer left for {prompt!r}.")
            line = lines.popleft()
        if isinstance(line, Exception):
            raise line
        return line

    def left(self, prompt: str) -> int:
        """Return how many answers are left for a prompt."""
        return len(self._lines.get(prompt, ()))


_scripts: dict[str, Script] = {}


def script(name: str, answers: Mapping[str, Sequence[Line]]) -> Script:
    """Register a script, which then answers as `scripted:<name>`; an earlier one of that name is replaced."""
    _scripts[name] = Script(name, answers)
    return _scripts[name]


def is_script(name: str) -> bool:
    """Tell whether a script of this name is registered."""
    return name in _scripts


def line_of(responder: str, prompt: str) -> Line:
    """Return the next line that the script of a responder `scripted:<name>` has for a prompt."""
    name = responder.partition(":")[2]
    if name not in _scripts:
        hint = "Register it: mneme.models.asking.scripts.script(name, answers)"
        raise BadInput(f"No script is called {name!r}.", hint)
    return _scripts[name].next(prompt)
