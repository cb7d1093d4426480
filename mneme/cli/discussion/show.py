"""`mneme discuss show, report, memory, teams`: print discussions, and write their reports."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from mneme.api.copies import note_reports
from mneme.api.discussions import TeamDiscussions
from mneme.api.rendering import count_of
from mneme.cli.discussion.report import ending, write_report
from mneme.cli.options import Team
from mneme.cli.show import console, emit, print_code, print_result, print_rows, print_shared, say
from mneme.client.home import open_operations
from mneme.core.errors import BadInput
from mneme.library.teams.team import load_team, shipped
from mneme.models.asking.counting import Asked, in_words
from mneme.stores.discussions.agent_memory import CarriedMemory
from mneme.stores.discussions.discussions import Discussion, Turn


def one_of(discussion: str, named: str) -> str:
    """Return the id given as an argument or as `--id`. Raises BadInput if the two differ."""
    if discussion and named and discussion != named:
        raise BadInput(f"Two discussions are named: {discussion} and {named}.", "Name one.")
    return discussion or named


Which = Annotated[
    str,
    typer.Argument(metavar="[ID]", help="A discussion's id, or its first letters; default: the latest."),
]
Named = Annotated[str, typer.Option("--id", "--discussion", "-d", help="The same as the argument ID.")]


async def show(discussion: Which = "", named: Named = "", team: Team = "local") -> None:
    """Show a discussion: how it ended, the document, the transcript."""
    async with open_operations(TeamDiscussions, team, reading=True) as done:
        about = await done.starting(one_of(discussion, named))
        turns = await done.turns(about.id)
    emit(about)
    for turn in turns:
        emit(turn)
        print_turn(turn)
    console.print(f"\n[bold]{escape(ending(about))}[/]")
    if about.document:
        _print_json(about.document)


async def report(
    discussion: Which = "",
    named: Named = "",
    out: Annotated[Path | None, "Folder; default: discussions/ID."] = None,
    team: Team = "local",
) -> None:
    """Write a discussion's document, transcript, memories and report again."""
    async with open_operations(TeamDiscussions, team, reading=True) as done:
        about = await done.starting(one_of(discussion, named))
        files = await write_files(done, about, out)
    print_end(about, None, files)


async def memory(
    agent: Annotated[str, "A role's name, e.g. data_engineer."],
    discussion: Which = "",
    named: Named = "",
    turn: Annotated[int | None, typer.Option("--turn", min=0, help="The memory after this turn.")] = None,
    since: Annotated[
        int | None, typer.Option("--since-turn", min=0, help="Show what changed since this turn.")
    ] = None,
    history: Annotated[bool, "List every version."] = False,
    team: Team = "local",
) -> None:
    """Show an agent's memory now, after a turn, or what changed between two turns."""
    async with open_operations(TeamDiscussions, team, reading=True) as done:
        about = await done.starting(one_of(discussion, named))
        for option, given in (("--turn", turn), ("--since-turn", since)):
            if given is not None and given > about.turns:
                there = f"Give 0, the beginning, to {about.turns}."
                raise BadInput(f"{option} {given}: the discussion {about.id} has no such turn.", there)
        last = about.turns if turn is None else turn
        if history:
            for each in (versions := await done.memory_history(about.id, agent)):  # silent with --json
                console.print(f"turn {each.turn:>4}  version {each.version:>3}  {escape(each.reason)}")
            print_result(versions, lambda _: None)
        elif since is not None:
            diff = await done.memory_diff(about.id, agent, since, last)
            print_result(diff, lambda _: print_code(diff or "nothing changed", "diff"), "diff")
        else:
            found = await done.memory_at(about.id, agent, last)
            after = f"[bold]{escape(found.agent)}[/] after turn {found.turn}"
            console.print(f"{after} [dim](version {found.version})[/]")
            print_result(found, lambda _: _print_json(found.memory))


def _print_json(value: Any) -> None:
    print_code(json.dumps(value, indent=1, ensure_ascii=False), "json")


def teams() -> None:
    """List the teams that come with Mneme."""
    loaded = [load_team(name) for name in shipped()]
    rows = [
        {"team": each.name, "what it is for": f"{each.purpose}\nRoles: {', '.join(each.names)}."}
        for each in loaded
    ]
    print_result(loaded, lambda _: print_rows(rows))


def print_carried(found: Sequence[CarriedMemory]) -> None:
    """Print what each agent carries."""
    for each in found:
        console.print(f"[bold]{each.agent}[/] [dim]from {each.discussion}, version {each.version}[/]")
        _print_json(each.memory)


def is_carried(found: Sequence[CarriedMemory], given: Mapping[str, Any]) -> bool:
    """Return whether one of the named agents, or any, carries something."""
    return any(each.agent in (given["roles"] or [each.agent]) for each in found)


def print_erased(agents: Sequence[str]) -> None:
    """Print whose memories were erased."""
    console.print(f"Erased: {', '.join(agents)}.")


REPORTS_FOLDER = Path("discussions")
INTRINSIC_MEMORY = "intrinsic"
WAITING_STATUS = 3
"""Exit status of a command whose discussion waits for a person."""


def print_step(event: dict[str, Any]) -> None:
    emit(event)
    if event["step"] == "turn":
        print_turn(Turn.model_validate({name: each for name, each in event.items() if name != "step"}))
    elif event["step"] == "open":
        console.print(f"[bold]discussion[/] {event['discussion']} [dim]({escape(event['team'])})[/]")
    elif event["step"] == "shared":
        print_shared(event["shown"])


def print_turn(turn: Turn) -> None:
    marks = " [green]accepts[/]" * turn.accept + " [green]finalises[/]" * turn.finalize
    console.print(f"\n[cyan]{turn.number}. {escape(turn.title)}[/]{marks} [dim]{escape(turn.answered_by)}[/]")
    say(escape(turn.message))
    if turn.complaint:
        say(f"[yellow]{escape(turn.complaint)}[/]")


def print_end(ended: Discussion, asked: Asked | None, files: Sequence[Path]) -> None:
    emit(
        {
            **ended.model_dump(mode="json", exclude={"team", "task"}),
            "asked": asked,
            "files": [str(each) for each in files],
        }
    )
    cost = f" [dim]{in_words(asked)}[/]" if asked else ""
    console.print(f"\n[bold]{escape(ending(ended))}[/] {ended.turns} turns, {ended.tokens} tokens.{cost}")
    if ended.complaints:
        some = count_of(len(ended.complaints), "answer")
        console.print(f"[yellow]{some} could be used only in part:[/]")
    for complaint in ended.complaints:
        say(f"  {escape(complaint)}")
    for file in files:
        say(str(file))


async def write_files(done: TeamDiscussions, about: Discussion, out: Path | None) -> list[Path]:
    """Write a discussion's report into its folder."""
    turns = await done.turns(about.id)
    memories = []
    if about.memory == INTRINSIC_MEMORY:  # the baseline's agents have none
        memories = [await done.memory_now(about.id, role["name"]) for role in about.team["roles"]]
    files = await asyncio.to_thread(write_report, out or REPORTS_FOLDER / about.id, about, turns, memories)
    # by this note `memories forget` finds copies of what it erases
    await asyncio.to_thread(note_reports, files, f"discuss/{await done.whose()}/{about.id}")
    return files
