"""The typed question: its wording, what is given, what is answered, and the rule that answers it.

A prompt is made by decorating its rule::

    @prompt(system="You review drafts …", user="Task: $task\\n\\nDraft:\\n$draft")
    def challenge(given: Draft) -> Verdict:
        \"\"\"Object to drafts that name no evidence.\"\"\"

`$field` in the user wording is the field of the given model of that name. A prompt whose rule
returns `str` is answered in free text; any other in JSON that validates against the answer's type.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from string import Template
from typing import Any, Generic, TypeVar, get_type_hints

from pydantic import BaseModel

Given = TypeVar("Given", bound=BaseModel)
Answer = TypeVar("Answer", bound=BaseModel | str)
Check = Callable[[Any, Any], None]


@dataclass(frozen=True)
class Prompt(Generic[Given, Answer]):
    """One question that a node may ask.

    `checks` are semantic: each takes what was given and what was answered, and raises
    `ValueError` with a sentence that a model can act on.
    """

    name: str
    system: str
    user: Template
    given: type[Given]
    answer: type[Answer]
    rule: Callable[[Given], Answer]
    checks: list[Check] = field(default_factory=list)

    def wording(self, given: Given) -> tuple[str, str]:
        """Return the system text and the user text for what is given."""
        return self.system, self.user.substitute(_as_text(given))

    def check(self, rule: Callable[[Given, Answer], None]) -> Callable[[Given, Answer], None]:
        """Register a semantic check; used as a decorator."""
        self.checks.append(rule)
        return rule

    def verify(self, given: Given, answer: Answer) -> Answer:
        """Return the answer when every check accepts it; raise the check's `ValueError` else."""
        for check in self.checks:
            check(given, answer)
        return answer


def prompt(*, system: str, user: str) -> Callable[[Callable[[Given], Answer]], Prompt[Given, Answer]]:
    """Make a prompt of the rule it decorates, named after that rule."""

    def make(rule: Callable[[Given], Answer]) -> Prompt[Given, Answer]:
        hints = get_type_hints(rule)
        answer = hints.pop("return")
        (given,) = hints.values()
        return Prompt(rule.__name__, system.strip(), Template(user.strip()), given, answer, rule)

    return make


def _as_text(given: BaseModel) -> dict[str, str]:
    return {name: _lines(value) for name, value in given}


def _lines(value: Any) -> str:
    """Render a list as numbered candidates, 0 first, and nothing as `(none)`."""
    if isinstance(value, list | tuple):
        return "\n".join(f"[{number}] {item}" for number, item in enumerate(value)) or "(none)"
    return "(none)" if value is None or value == "" else str(value)
