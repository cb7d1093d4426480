"""Wordings of one's own: a file in the folder `MNEME_PROMPTS` takes the place of a prompt's.

`FOLDER/<workflow>/<prompt>.yaml` has `system`, `user` and `examples`, each of them if it is to be another. A
file is read with each question, so that a change counts at once.
"""

import asyncio
from dataclasses import replace
from pathlib import Path
from string import Template
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from mneme.core.errors import BadInput, first_fault
from mneme.core.settings import read_settings
from mneme.prompts.prompt import Prompt

G = TypeVar("G", bound=BaseModel)
A = TypeVar("A", bound=BaseModel | str)


class Wording(BaseModel):
    """The parts of a prompt that a file may replace."""

    model_config = ConfigDict(extra="forbid")

    system: str | None = Field(None, min_length=1)
    user: str | None = Field(None, min_length=1)
    examples: list[Any] | None = None


async def in_own_words(prompt: Prompt[G, A]) -> Prompt[G, A]:
    """Return the prompt as it is worded in `MNEME_PROMPTS`. Raises BadInput for a file that does not fit."""
    folder = (await read_settings()).prompts
    return prompt if folder is None else await asyncio.to_thread(worded, prompt, folder)  # it reads a file


def worded(prompt: Prompt[G, A], folder: Path) -> Prompt[G, A]:
    """Return a prompt as it is worded in a folder, or as it is; the answer's type and checks stay.

    Raises BadInput for a file that cannot be read or does not fit the prompt's types.
    """
    file = file_of(prompt, folder)
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:  # most prompts have no file
        return prompt
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{file} cannot be read: {error}.", "Make it a readable UTF-8 file.") from error
    given = _read(text, file)
    if given.user is not None:
        template, fields = Template(given.user), list(prompt.given.model_fields)
        if not template.is_valid():
            raise BadInput(f"{file}: user: a $ has no field's name.", "Write $$ for the sign itself.")
        named = template.get_identifiers()
        if unknown := [each for each in named if each not in fields]:
            wrong = f"{file}: user: there is no ${unknown[0]}."
            raise BadInput(wrong, f"There are: {', '.join(f'${each}' for each in fields)}.")
        if left := [each for each in Template(prompt.user).get_identifiers() if each not in named]:
            raise BadInput(f"{file}: user: ${left[0]} is left out.", "A model could not answer without it.")
    return replace(
        prompt,
        system=given.system or prompt.system,
        user=given.user or prompt.user,
        examples=prompt.examples if given.examples is None else _examples(prompt, given.examples, file),
    )


def file_of(prompt: Prompt[Any, Any], folder: Path) -> Path:
    """Return the file in which a prompt is worded."""
    return folder.expanduser() / prompt.room / f"{prompt.name}.yaml"


def as_file(prompt: Prompt[Any, Any]) -> str:
    """Return a prompt's wording as the text of such a file."""
    examples = [
        each if isinstance(each, str) else each.model_dump(mode="json", by_alias=True)
        for each in prompt.examples
    ]
    wording = {"system": prompt.system, "user": prompt.user, "examples": examples}
    return str(yaml.dump(wording, Dumper=_Readable, sort_keys=False, allow_unicode=True, width=110))


class _Readable(yaml.SafeDumper):
    """Writes texts of several lines as they are."""


_Readable.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    ),
)


def _read(text: str, file: Path) -> Wording:
    try:
        return Wording.model_validate(yaml.safe_load(text) or {})  # an empty file is `None`
    except yaml.YAMLError as error:
        raise BadInput(f"{file} is not YAML: {' '.join(str(error).split())}", "Fix that line.") from error
    except ValidationError as error:
        wrong = first_fault(error, "the document")
        raise BadInput(f"{file}: {wrong}", "It has system, user and examples.") from error


def _examples(prompt: Prompt[Any, Any], given: list[Any], file: Path) -> list[Any]:
    """Read examples: texts, or answers of the prompt's type."""
    adapter = TypeAdapter[Any](prompt.answer)
    try:
        return [each if isinstance(each, str) else adapter.validate_python(each) for each in given]
    except ValidationError as error:
        hint = f"An example is a text, or an answer: {prompt.form or 'a text'}"
        raise BadInput(f"{file}: examples: {first_fault(error)}", hint) from error
