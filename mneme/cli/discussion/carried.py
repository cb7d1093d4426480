"""`mneme discuss carried` and `forget-carried`: what agents bring into their next discussion."""

import json
from typing import Annotated

import typer
from rich.syntax import Syntax

from mneme.api.discussions import TeamDiscussions
from mneme.cli.options import Owner, Yes
from mneme.cli.show import confirmed, console, emit
from mneme.client.home import open_operations
from mneme.core.errors import NotFound

TeamName = Annotated[str, typer.Option("--team", "-t", help="The team's name.")]


async def carried(team: TeamName = "data_pipeline", owner: Owner = "local") -> None:
    """Show what a team's agents carry into their next discussion; --json exports it."""
    async with open_operations(TeamDiscussions, owner) as done:
        found = await done.carried(team)
    for each in found:
        emit(each.model_dump(mode="json"))
        console.print(f"[bold]{each.agent}[/] [dim]from {each.discussion}, version {each.version}[/]")
        console.print(Syntax(json.dumps(each.memory, indent=1, ensure_ascii=False), "json", word_wrap=True))
    if not found:
        console.print(f"The agents of {team} carry nothing; `mneme discuss --carry` has them do so.")


async def forget_carried(
    team: TeamName = "data_pipeline",
    roles: Annotated[list[str] | None, "Of this role alone; repeatable.", "--role"] = None,
    yes: Yes = False,
    owner: Owner = "local",
) -> int:
    """Erase what a team's agents carry; this cannot be undone."""
    if not confirmed(yes):
        return 1
    async with open_operations(TeamDiscussions, owner) as done:
        erased = await done.forget_carried(team, roles or [], "decided on the command line")
    if not erased:
        raise NotFound(f"No such agent of {team} carries anything.", "See `mneme discuss carried`.")
    emit({"erased": list(erased)})
    console.print(f"Erased: {', '.join(erased)}.")
    return 0
