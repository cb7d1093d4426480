"""What a discussion prints and writes: its turns as they are said, its end, its files."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape

from mneme.api.discussions import TeamDiscussions
from mneme.cli.discussion.report import ending, write_report
from mneme.cli.show import console, count_of, emit
from mneme.models.asking.counting import Asked, in_words
from mneme.stores.discussions.discussions import Discussion, Turn

FOLDER = Path("discussions")
INTRINSIC = "intrinsic"
WAITING = 3
"""The exit status of a discussion that waits for a person."""
Values = dict[str, Any]


def print_step(event: Values) -> None:
    emit(event)
    if event["step"] == "turn":
        print_turn(Turn.model_validate({name: each for name, each in event.items() if name != "step"}))
    elif event["step"] == "open":
        console.print(f"[bold]discussion[/] {event['discussion']} [dim]({escape(event['team'])})[/]")


def print_turn(turn: Turn) -> None:
    marks = " [green]accepts[/]" * turn.accept + " [green]finalises[/]" * turn.finalize
    console.print(f"\n[cyan]{turn.number}. {escape(turn.title)}[/]{marks} [dim]{escape(turn.answered_by)}[/]")
    console.print(escape(turn.message), soft_wrap=True)
    if turn.complaint:
        console.print(f"[yellow]{escape(turn.complaint)}[/]", soft_wrap=True)


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
        console.print(f"  {escape(complaint)}", soft_wrap=True)
    for file in files:
        console.print(str(file), soft_wrap=True)


async def write_files(done: TeamDiscussions, about: Discussion, out: Path | None) -> list[Path]:
    """Write a discussion's report into its folder."""
    turns = await done.turns(about.id)
    memories = []
    if about.memory == INTRINSIC:
        memories = [await done.memory_now(about.id, role["name"]) for role in about.team["roles"]]
    return await asyncio.to_thread(write_report, out or FOLDER / about.id, about, turns, memories)
