"""The documentation: what its pages link to is there, and so are the commands and options that they name."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from mneme.cli.main import app

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
COMMAND = re.compile(r"(?:`|^|\$ |&& |\| |=\S+ )mneme ([^`\n|]+)", re.MULTILINE)
QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
NAME = re.compile(r"[a-z][\w-]*")
ROOT_COMMAND: Any = typer.main.get_command(app)
OF_ALL = {"--help", "--version", "--install-completion", "--show-completion"}
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    broken = [link for link in LINK.findall(text) if "://" not in link and not leads(page, link)]
    assert broken == []


def leads(page: Path, link: str) -> bool:
    place, _, part = link.partition("#")
    target = (page.parent / place).resolve() if place else page
    return target.exists() and (not part or part in anchors(target))


def anchors(page: Path) -> set[str]:
    """Return the names of a page's headings, as they are linked to."""
    headings = HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_command_that_a_page_names_is_there_with_its_options(page: Path) -> None:
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    named = COMMAND.findall(text) if page.name != "CHANGELOG.md" else []
    assert [fault for each in named for fault in faults(QUOTED.sub("TEXT", each.partition("  #")[0]))] == []


def faults(command: str) -> Iterator[str]:
    """Yield the first word that is no command, or the options that the command lacks."""
    words, made = command.split(), ROOT_COMMAND
    while hasattr(made, "commands"):
        name = words.pop(0) if words and (words[0] in made.commands or NAME.fullmatch(words[0])) else "run"
        if name not in made.commands and name != "run":
            yield f"mneme {command}: {name}"
        if name not in made.commands or made.name == "eval":  # some evaluations need what is not installed
            return
        made = made.resolve_command(None, [name])[1]
    options = OF_ALL.union(*([*each.opts, *each.secondary_opts] for each in made.params))
    given = [word.partition("=")[0].strip("…,.;:)]") for word in words if re.match("--[a-z]", word)]
    yield from (f"mneme {command}: {each}" for each in given if each not in options)
