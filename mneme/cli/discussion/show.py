"""`mneme discuss list, show, report, memory, teams`: what was discussed, and what agents remember of it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.syntax import Syntax

from mneme.api.discussions import TeamDiscussions
from mneme.cli.discussion.printing import print_end, print_turn, write_files
from mneme.cli.discussion.report import ending
from mneme.cli.show import console, print_json, print_result, print_table
from mneme.client.home import open_operations
from mneme.core.errors import BadInput
from mneme.library.teams.team import Team, load_team, shipped
from mneme.stores.discussions.agent_memory import MemoryVersion
from mneme.stores.discussions.discussions import Discussion

Values = dict[str, Any]


def one_of(discussion: str, named: str) -> str:
    """Return the id that was given as an argument or as `--id`. Raises BadInput where the two differ."""
    if discussion and named and discussion != named:
        raise BadInput(f"Two discussions are named: {discussion} and {named}.", "Name one.")
    return discussion or named


def print_discussions(found: Sequence[Discussion]) -> None:
    """Print discussions as a table."""
    rows = (
        [each.id, each.team["name"], each.ended or "not ended", each.turns, _title(each)] for each in found
    )
    print_table("", ("id", "team", "ended", "turns", "task"), rows)


def _title(about: Discussion) -> str:
    return about.task.strip().splitlines()[0][:60]


async def show(owner: str, discussion: str, as_json: bool) -> None:
    """Print a discussion with its turns."""
    async with open_operations(TeamDiscussions, owner, reading=True) as done:
        about = await done.starting(discussion)
        turns = await done.turns(about.id)
    if as_json:
        print_json(about)
    for turn in turns:
        print_json(turn) if as_json else print_turn(turn)
    if not as_json:
        console.print(f"\n[bold]{escape(ending(about))}[/]")
        console.print(Syntax(json.dumps(about.document, indent=1, ensure_ascii=False), "json"))


async def report(owner: str, discussion: str, out: Path | None, as_json: bool) -> None:
    """Write a discussion's report again."""
    async with open_operations(TeamDiscussions, owner, reading=True) as done:
        about = await done.starting(discussion)
        files = await write_files(done, about, out)
    print_end(about, None, files, as_json)


async def memory(
    owner: str,
    discussion: str,
    agent: str,
    turns: tuple[int | None, int | None],
    history: bool,
    as_json: bool,
) -> None:
    """Print an agent's memory after a turn, its versions, or what changed in it between two turns."""
    since, turn = turns
    async with open_operations(TeamDiscussions, owner, reading=True) as done:
        about = await done.starting(discussion)
        if history:
            print_result(await done.memory_history(about.id, agent), as_json, _print_versions)
            return
        last = MANY if turn is None else turn
        if since is not None:
            diff = await done.memory_diff(about.id, agent, since, last)
            print_result(diff, as_json, _print_diff, "diff")
            return
        found = await done.memory_at(about.id, agent, last)
    print_result(found, as_json, _print_memory)


def _print_memory(found: MemoryVersion) -> None:
    console.print(f"[bold]{escape(found.agent)}[/] after turn {found.turn} [dim](version {found.version})[/]")
    console.print(Syntax(json.dumps(found.memory, indent=1, ensure_ascii=False), "json", word_wrap=True))


MANY = 1_000_000


def _print_versions(versions: Sequence[MemoryVersion]) -> None:
    for each in versions:
        console.print(f"turn {each.turn:>4}  version {each.version:>3}  {escape(each.reason)}")


def _print_diff(diff: str) -> None:
    console.print(Syntax(diff, "diff", word_wrap=True) if diff else "[dim]nothing changed[/]")


async def teams(as_json: bool) -> None:
    """List the teams that come with Mneme, with their roles."""
    print_result([load_team(name) for name in shipped()], as_json, _print_teams)


def _print_teams(loaded: Sequence[Team]) -> None:
    rows = ([team.name, f"{team.purpose}\nRoles: {', '.join(team.names)}."] for team in loaded)
    print_table("", ("team", "what it is for"), rows)
