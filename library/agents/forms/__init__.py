"""Checks of verse in code: metre, rhyme, tones."""

from collections.abc import Iterable
from importlib import import_module
from typing import get_args

from pydantic import BaseModel, ConfigDict

from mneme.core.errors import BadInput, needs
from mneme.library.agents.agent import Form
from mneme.prompts.sharing.scoring import Fault

FORMS: tuple[str, ...] = get_args(Form)
"""The forms that can be checked, named after the shipped agents; a rubric judges all other answers."""
MAX_CHARS = 20_000
"""The most characters of an answer."""


class FormReport(BaseModel):
    """The faults of a form (without faults it is correct), and notes on what other rules would not accept."""

    model_config = ConfigDict(frozen=True)

    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        return not self.faults

    def as_text(self) -> str:
        """Write one line per fault, or that the form holds."""
        return "\n".join(str(fault) for fault in self.faults) or "The form holds."


def report(faults: Iterable[tuple[str, str]], notes: Iterable[str] = ()) -> FormReport:
    """Make a report from (where, what) pairs."""
    return FormReport(
        faults=tuple(Fault(where=where, what=what) for where, what in faults), notes=tuple(notes)
    )


def check_form(form: str, answer: str) -> FormReport:
    """Say what is wrong with an answer's form, and where.

    An unknown form or an answer over `MAX_CHARS` raises `BadInput`; a library that is not installed,
    `MnemeError`. The first check of verse in a process loads a dictionary, which takes about a second.
    """
    if form not in FORMS:
        raise BadInput(f'There is no form "{form}".', f"Forms: {', '.join(FORMS)}.")
    if len(answer) > MAX_CHARS:
        raise BadInput(f"The answer has {len(answer)} characters.", f"Give at most {MAX_CHARS}.")
    with needs(f'The check of the form "{form}"', "forms"):
        module = import_module(f"mneme.library.agents.forms.{form}")
    return FormReport.model_validate(module.check(answer))
