"""Checks of verse in code: metre, rhyme, tones."""

from importlib import import_module
from typing import get_args

from mneme.core.errors import BadInput, needs
from mneme.library.agents.agent import Form
from mneme.prompts.sharing.scoring import Fault

VERSE_FORMS: tuple[str, ...] = get_args(Form)
"""The forms that can be checked, named after the shipped agents; a rubric judges all other answers."""
MAX_VERSE_CHARS = 20_000  # of an answer
Faults = list[tuple[str, str]]
"""Faults of a form: the place, and the fault."""


def check_form(form: str, answer: str) -> list[Fault]:
    """Return the faults of an answer's form, with their places; empty if it is correct.

    Raises `BadInput` for an unknown form or an answer over `MAX_VERSE_CHARS`, `MnemeError` if a library is
    missing. The first check of verse in a process loads a dictionary, which takes about a second.
    """
    if form not in VERSE_FORMS:
        raise BadInput(f'There is no form "{form}".', f"Forms: {', '.join(VERSE_FORMS)}.")
    if len(answer) > MAX_VERSE_CHARS:
        raise BadInput(f"The answer has {len(answer)} characters.", f"Give at most {MAX_VERSE_CHARS}.")
    with needs(f'The check of the form "{form}"', "forms"):
        found: Faults = import_module(f"mneme.library.agents.forms.{form}").check(answer)
    return [Fault(where=where, what=what) for where, what in found]
