"""The typed question: its wording, what is given, what is answered, and the checks of an answer.

A question is declared once, beside its types::

    challenge = Prompt(
        name="challenge", given=Draft, answer=Verdict,
        system="You review drafts …", user="Task: $task\\n\\nDraft:\\n$draft",
    )

`$field` in the user wording is the field of the given model of that name. A prompt whose answer is
`str` is answered in free text; any other in JSON that validates against the answer's type. What answers
without a model stands in `rules/`, registered by prompt.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from string import Template
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

Given = TypeVar("Given", bound=BaseModel)
Answer = TypeVar("Answer", bound=BaseModel | str)
Check = Callable[[Any, Any], None]
PACKAGE = __name__.rpartition(".")[0]


@dataclass(frozen=True, kw_only=True)
class Prompt(Generic[Given, Answer]):
    """One question that a node may ask.

    `checks` are semantic: each takes what was given and what was answered, and raises
    `ValueError` with a sentence that a model can act on.
    """

    name: str
    given: type[Given]
    answer: type[Answer]
    system: str
    user: str
    checks: list[Check] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Let wordings be written between triple quotes on lines of their own."""
        for wording in ("system", "user"):
            object.__setattr__(self, wording, getattr(self, wording).strip())

    @property
    def room(self) -> str:
        """The workflow whose question it is: the package below `prompts/` where its input is defined."""
        home = self.given.__module__
        return home.removeprefix(f"{PACKAGE}.").partition(".")[0] if home.startswith(PACKAGE) else ""

    def wording(self, given: Given) -> tuple[str, str]:
        """Return the system text and the user text for what is given."""
        return self.system, Template(self.user).substitute(_as_text(given))

    def check(self, rule: Callable[[Given, Answer], None]) -> Callable[[Given, Answer], None]:
        """Register a semantic check; used as a decorator."""
        self.checks.append(rule)
        return rule

    def verify(self, given: Given, answer: Answer) -> Answer:
        """Return the answer when every check accepts it; raise the check's `ValueError` else."""
        for check in self.checks:
            check(given, answer)
        return answer


def _as_text(given: BaseModel) -> dict[str, str]:
    return {name: _lines(value) for name, value in given}


def _lines(value: Any) -> str:
    """Render a list as numbered candidates, 0 first, and nothing as `(none)`."""
    if isinstance(value, list | tuple):
        return "\n".join(f"[{number}] {item}" for number, item in enumerate(value)) or "(none)"
    return "(none)" if value is None or value == "" else str(value)
