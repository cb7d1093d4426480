"""`mneme prompts …`: what models are asked, and wordings of one's own."""

from pathlib import Path
from typing import Annotated

import typer

from mneme.cli.show import console, print_error, print_lines, print_result, print_table
from mneme.core.errors import BadInput, MnemeError, NotFound
from mneme.core.settings import settings
from mneme.models.asking.wording import as_file, file_of, worded
from mneme.prompts.every import Question, questions

Name = Annotated[str, typer.Argument(metavar="WORKFLOW/PROMPT", help="A name that `list` shows.")]


def list_() -> None:
    """List all prompts; those with a file of yours in MNEME_PROMPTS are marked."""
    folder = settings().prompts
    own = {key: folder is not None and file_of(each, folder).exists() for key, each in questions().items()}
    found = [{"workflow": room, "prompt": name, "own": is_own} for (room, name), is_own in own.items()]
    rows = ([each["workflow"], each["prompt"], "own" if each["own"] else ""] for each in found)
    print_result(found, lambda _: print_table("", ("workflow", "prompt", "wording"), rows))


def show(name: Name) -> None:
    """Print a prompt as it is used now, in YAML: a file to start your own from."""
    prompt, folder = _named(name), settings().prompts
    print_lines(as_file(prompt if folder is None else worded(prompt, folder)))


def export(
    folder: Annotated[Path, "Where to write them; files that are there stay."],
    name: Annotated[str, typer.Argument(metavar="[WORKFLOW/PROMPT]", help="Only this one.")] = "",
) -> None:
    """Write the prompts as files to change; use them with MNEME_PROMPTS=FOLDER."""
    chosen = [_named(name)] if name else list(questions().values())
    files = {file_of(each, folder): as_file(each) for each in chosen}
    new = {file: text for file, text in files.items() if not file.exists()}  # a person has changed the others
    for file, text in new.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    console.print(f"{len(new)} written, {len(files) - len(new)} were there. Use them: MNEME_PROMPTS={folder}")


def check() -> int:
    """Check every file in MNEME_PROMPTS against the type of its prompt; exit with 1 if one does not fit."""
    folder = settings().prompts
    if folder is None:
        raise BadInput("MNEME_PROMPTS is not set.", "Set it to a folder; see `mneme prompts export`.")
    if not folder.expanduser().is_dir():
        raise BadInput(f"MNEME_PROMPTS={folder} is not a folder.", "See `mneme prompts export`.")
    known = {file_of(each, folder): each for each in questions().values()}
    files, wrong = sorted(folder.expanduser().rglob("*.yaml")), 0
    for file in files:
        try:  # one file's fault hides no other's
            if file not in known:
                hint = "`mneme prompts list` shows workflows and names."
                raise BadInput(f"{file} belongs to no prompt.", hint)
            worded(known[file], folder)
        except MnemeError as error:
            wrong += 1
            print_error(error)
    console.print(f"{len(files) - wrong} of {len(files)} fit.")
    return 1 if wrong else 0


def _named(name: str) -> Question:
    room, _, prompt = name.partition("/")
    if (room, prompt) not in questions():
        raise NotFound(f"There is no prompt {name!r}.", "`mneme prompts list` shows them.")
    return questions()[room, prompt]
