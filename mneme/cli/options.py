"""The options that commands share."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

User = Annotated[
    str, typer.Option("--user", "-u", envvar="MNEME_USER", help="The user whose memories are used.")
]
Team = Annotated[str, typer.Option("--team", envvar="MNEME_TEAM", help="The team whose data is used.")]
Agents = Annotated[
    str,
    typer.Option("--agents", envvar="MNEME_AGENTS", help="Who answers: auto, rules, ollama:MODEL, …"),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON Lines instead of text.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="Show at most this many.")]
Reason = Annotated[str, typer.Option("--reason", help="Why; kept in the history.")]
ToFile = Annotated[Path, typer.Argument(help="Where to write; `-` writes to stdout.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
Names = Mapping[str, str]
"""Option names by field name, where the two differ; a name without hyphens is an argument."""
RENAMED: Names = {
    "--anew": "--fresh",
    "--answer-from": "--search",
    "--at-once": "--jobs",
    "--budget": "--tokens --calls",
    "--by": "--agents --comparer --period",
    "--card": "--card-id",
    "--designer": "--agents",
    "--expires": "--expires-at",
    "--history": "--history-db",
    "--keep": "--turns",
    "--last": "--limit",
    "--limit": "--turns",
    "--manager-model": "--manager",
    "--memory-agent": "--agents",
    "--mode": "--search",
    "--model": "--agents",
    "--models": "--agents",
    "--name": "--id",
    "--ollama": "--served-base",
    "--owner": "--team",
    "--refuse": "--reject",
    "--responder": "--agents",
    "--retired": "--include-retired",
    "--seeds": "--courses",
    "--since": "--since-turn",
    "--size": "--tasks",
    "--stale": "--include-stale",
    "--team": "--experts",
    "--to": "--to-version",
    "--until": "--pool-size",
    "--virtualhome": "--simulator",
    "--window": "--context-tokens",
    "--workers": "--jobs",
    "-n": "--members --count --turn",
}
"""Present option names by those of earlier versions; a command has one of the present ones."""


def by_role(given: Sequence[str], otherwise: str) -> tuple[str, list[str]]:
    """Return the default responder, and those of single roles, from words MODEL and ROLE=MODEL."""
    everyone = [each for each in given if "=" not in each]
    return everyone[-1] if everyone else otherwise, [each for each in given if "=" in each]
