"""`mneme discuss …`: the commands."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from mneme.cli.groups import Calls, Group, group, options_of
from mneme.cli.options import Agents, Json, Yes, run_command

RUN = "run"


class TaskFirst(Group):
    """Read a first word that is no command as the task: `discuss TASK.md` is `discuss run TASK.md`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in {"--help", "-h"}:
            args = [RUN, *args]
        return super().parse_args(ctx, args)


discuss = group(
    "A team discusses a task; each agent has its own memory: mneme discuss TASK.md --team NAME.",
    TaskFirst,
)

Owner = Annotated[
    str, typer.Option("--owner", "-o", envvar="MNEME_TEAM", help="The owner of the discussions.")
]
Team = Annotated[
    str, typer.Option("--team", "-t", help="data_pipeline, design_review, pddl, or a team's YAML file.")
]
CarriedTeam = Annotated[str, typer.Option("--team", "-t", help="The team's name.")]
Which = Annotated[
    str,
    typer.Argument(metavar="[ID]", help="A discussion's id, or its first letters; default: the latest."),
]
Named = Annotated[str, typer.Option("--id", "--discussion", "-d", help="The same as the argument ID.")]
Agent = Annotated[str, typer.Argument(help="A role's name, e.g. data_engineer.")]


@options_of(
    discuss,
    f"discuss {RUN}",
    {"team": "--owner -o", "person": "--as"},
    "agents",
    context="mneme.nodes.discussion.context:DiscussionContext",
)
def run_discussion(
    context: dict[str, Any],
    task: Annotated[
        str, typer.Argument(help="A file with the task, the task's words, or `-` for stdin.")
    ] = "",
    discussing: Team = "data_pipeline",
    agents: Annotated[
        list[str],
        typer.Option(
            "--agents",
            envvar="MNEME_AGENTS",
            help="Who answers: auto, rules, ollama:MODEL, …; ROLE=MODEL: for one role. Repeatable.",
        ),
    ] = ["auto"],  # noqa: B006  (typer makes a new list of it)
    discussion: Annotated[
        str,
        typer.Option(
            "--id",
            help="Id of a new discussion (letters, digits, - and _), or of the one to continue.",
        ),
    ] = "",
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for document and report; default: discussions/ID.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Discuss a task until all accept, and write the document (the word `run` may be left out)."""
    from mneme.cli.discussion import discuss as run

    everyone = [each for each in agents if "=" not in each]
    context |= {"agents": everyone[-1] if everyone else os.environ.get("MNEME_AGENTS", "auto")}
    models = [each for each in agents if "=" in each]
    run_command(run.discuss(task, discussing, models, discussion, context, out, as_json))


Calls(discuss, "discuss", "mneme.api.discussions:TeamDiscussions", "mneme.cli.discussion.show", Owner)(
    "list", "list", "print_discussions", "List the discussions, in the order in which they began."
)


@discuss.command()
def show(discussion: Which = "", named: Named = "", owner: Owner = "local", as_json: Json = False) -> None:
    """Show a discussion: how it ended, the document, the transcript."""
    from mneme.cli.discussion import show as run

    run_command(run.show(owner, run.one_of(discussion, named), as_json))


@discuss.command()
def report(
    discussion: Which = "",
    named: Named = "",
    out: Annotated[Path | None, typer.Option("--out", help="Folder; default: discussions/ID.")] = None,
    owner: Owner = "local",
    as_json: Json = False,
) -> None:
    """Write a discussion's document, transcript, memories and report again."""
    from mneme.cli.discussion import show as run

    run_command(run.report(owner, run.one_of(discussion, named), out, as_json))


@discuss.command()
def memory(
    agent: Agent,
    discussion: Which = "",
    named: Named = "",
    turn: Annotated[
        int | None, typer.Option("--turn", "-n", min=0, help="The memory after this turn.")
    ] = None,
    since: Annotated[
        int | None, typer.Option("--since", min=0, help="Show what changed since this turn.")
    ] = None,
    history: Annotated[bool, typer.Option("--history", help="List every version.")] = False,
    owner: Owner = "local",
    as_json: Json = False,
) -> None:
    """Show an agent's memory now, after a turn, or what changed between two turns."""
    from mneme.cli.discussion import show as run

    run_command(run.memory(owner, run.one_of(discussion, named), agent, (since, turn), history, as_json))


@discuss.command()
def carried(team: CarriedTeam = "data_pipeline", owner: Owner = "local", as_json: Json = False) -> None:
    """Show what a team's agents carry into their next discussion; --json exports it."""
    from mneme.cli.discussion import carried as run

    run_command(run.show(owner, team, as_json))


@discuss.command("forget-carried")
def forget_carried(
    team: CarriedTeam = "data_pipeline",
    roles: Annotated[list[str] | None, typer.Option("--role", help="Of this role alone; repeatable.")] = None,
    yes: Yes = False,
    owner: Owner = "local",
    as_json: Json = False,
) -> None:
    """Erase what a team's agents carry; this cannot be undone."""
    from mneme.cli.discussion import carried as run

    run_command(run.forget(owner, team, roles or [], yes, as_json))


@discuss.command("teams")
def list_teams(as_json: Json = False) -> None:
    """List the teams that come with Mneme."""
    from mneme.cli.discussion import show as run

    run_command(run.teams(as_json))


@discuss.command("new-team")
def new_team(
    name: Annotated[str, typer.Argument(help="The team's name; the file is NAME.yaml.")],
    task: Annotated[str, typer.Option("--task", help="A file with the task, or the task in words.")],
    roles: Annotated[
        list[str] | None, typer.Option("--role", help='An expert: "Title: duties"; repeatable.')
    ] = None,
    like: Annotated[
        str,
        typer.Option("--like", help="A team to copy document and facilitators from; else designed."),
    ] = "",
    out: Annotated[Path | None, typer.Option("--out", help="The file; default: NAME.yaml.")] = None,
    agents: Agents = "auto",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Use the templates without review.")] = False,
    as_json: Json = False,
) -> None:
    """Make a team: a model designs it for the task, with memory templates, and you review it."""
    from mneme.cli.discussion.new_team import new_team as run

    run_command(run(name, task, roles or [], like, out, agents, yes, as_json))
