"""Checks of form by code: does a text scan, rhyme, cover its weeks, explain its pun?"""

from importlib import import_module
from typing import get_args

from agents.agent import Form
from agents.forms.report import Fault, FormReport
from mneme.errors import BadInput, MnemeError

FORMS: tuple[str, ...] = get_args(Form)
"""The forms that can be checked, named after the shipped agents."""
LONGEST = 20_000
"""Characters of an answer; no form here is nearly as long."""
_MODULES = {"study": "plan", "travel": "plan", "fitness": "plan"}

__all__ = ["FORMS", "LONGEST", "Fault", "FormReport", "check_form"]


def check_form(form: str, question: str, answer: str) -> FormReport:
    """Say what is wrong with an answer's form, and where.

    An unknown form or an answer over `LONGEST` characters raises `BadInput`; a library that is not installed,
    `MnemeError`. The first check of verse in a process loads a dictionary, which takes about a second.
    """
    if form not in FORMS:
        raise BadInput(f'There is no form "{form}".', f"Forms: {', '.join(FORMS)}.")
    if len(answer) > LONGEST:
        raise BadInput(f"The answer has {len(answer)} characters.", f"Give at most {LONGEST}.")
    try:
        module = import_module(f"agents.forms.{_MODULES.get(form, form)}")
    except ModuleNotFoundError as missing:
        raise MnemeError(
            f'The form "{form}" is checked with {missing.name}, which is not installed.',
            "pip install 'mneme[forms]'",
        ) from missing
    checked = module.check(question, answer) if form not in _MODULES else module.check(form, question, answer)
    return FormReport.model_validate(checked)
