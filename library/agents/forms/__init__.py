"""Checks of verse in code: metre, rhyme, tones."""

from importlib import import_module
from typing import get_args

from mneme.core.errors import BadInput, needs
from mneme.library.agents.agent import Form
from mneme.library.agents.forms.report import FormReport

FORMS: tuple[str, ...] = get_args(Form)
"""The forms that can be checked, named after the shipped agents; a rubric judges all other answers."""
LONGEST = 20_000
"""The most characters of an answer."""

__all__ = ["FORMS", "LONGEST", "FormReport", "check_form"]


def check_form(form: str, answer: str) -> FormReport:
    """Say what is wrong with an answer's form, and where.

    An unknown form or an answer over `LONGEST` characters raises `BadInput`; a library that is not installed,
    `MnemeError`. The first check of verse in a process loads a dictionary, which takes about a second.
    """
    if form not in FORMS:
        raise BadInput(f'There is no form "{form}".', f"Forms: {', '.join(FORMS)}.")
    if len(answer) > LONGEST:
        raise BadInput(f"The answer has {len(answer)} characters.", f"Give at most {LONGEST}.")
    with needs(f'The check of the form "{form}"', "forms"):
        module = import_module(f"mneme.library.agents.forms.{form}")
    return FormReport.model_validate(module.check(answer))
