"""`mneme discuss TASK.md …` and what belongs to it."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mneme.commands.options import Json, Limit, run_command

RUN = "run"


class TaskFirst(TyperGroup):
    """Take a first word that is no command for the task: `discuss TASK.md` is `discuss run TASK.md`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in {"--help", "-h"}:
            args = [RUN, *args]
        return super().parse_args(ctx, args)


discuss = typer.Typer(
    cls=TaskFirst,
    no_args_is_help=True,
    help="Let a team discuss a task, each agent with a memory of its own: mneme discuss TASK.md --team NAME.",
)

Owner = Annotated[str, typer.Option("--owner", "-o", envvar="MNEME_TEAM", help="Whose discussions.")]
Agents = Annotated[
    str, typer.Option("--agents", envvar="MNEME_AGENTS", help="Who answers for all agents: auto, rules, …")
]
Team = Annotated[
    str, typer.Option("--team", "-t", help="data_pipeline, design_review, pddl, or a team's YAML file.")
]
Which = Annotated[
    str, typer.Option("--discussion", "-d", help="Its id, or enough of its beginning; default: the latest.")
]
Agent = Annotated[str, typer.Argument(help="A role's name, e.g. data_engineer.")]


@discuss.command(RUN)
def run_discussion(
    task: Annotated[
        str, typer.Argument(help="A file with the task, the task's words, or `-` for stdin.")
    ] = "",
    team: Team = "data_pipeline",
    agents: Agents = "auto",
    models: Annotated[
        list[str] | None, typer.Option("--model", help="Who answers for one role: ROLE=WHO; repeatable.")
    ] = None,
    memory: Annotated[
        str, typer.Option("--memory", help="intrinsic, none, or one of the baseline memories.")
    ] = "intrinsic",
    context_tokens: Annotated[
        int, typer.Option("--context-tokens", help="Tokens of task, memory and turns; 0: the team's.")
    ] = 0,
    max_turns: Annotated[
        int, typer.Option("--max-turns", help="Bound on turns, 1 to 10000; 0: the team's.")
    ] = 0,
    person: Annotated[str, typer.Option("--as", help="Speak as this role yourself.")] = "",
    approve: Annotated[bool, typer.Option("--approve", help="Approve the document yourself.")] = False,
    discussion: Annotated[
        str, typer.Option("--id", help="Its id: letters, digits, - and _; that of a killed one resumes it.")
    ] = "",
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of document and report; default: discussions/ID.")
    ] = None,
    owner: Owner = "local",
    as_json: Json = False,
) -> None:
    """Discuss a task until all accept, and write the document (also without the word `run`)."""
    from mneme import discuss as run

    context = {
        "agents": agents,
        "memory": memory,
        "context_tokens": context_tokens,
        "max_turns": max_turns,
        "person": person,
        "approve": approve,
        "team": owner,
    }
    run_command(run.discuss(task, team, models or [], discussion, context, out, as_json))


@discuss.command("list")
def list_discussions(owner: Owner = "local", limit: Limit = 100, as_json: Json = False) -> None:
    """List the discussions, in the order in which they began."""
    from mneme import discuss as run

    run_command(run.list_(owner, limit, as_json))


@discuss.command()
def show(discussion: Which = "", owner: Owner = "local", as_json: Json = False) -> None:
    """Show a discussion: how it ended, the document, the transcript."""
    from mneme import discuss as run

    run_command(run.show(owner, discussion, as_json))


@discuss.command()
def report(
    discussion: Which = "",
    out: Annotated[Path | None, typer.Option("--out", help="Folder; default: discussions/ID.")] = None,
    owner: Owner = "local",
    as_json: Json = False,
) -> None:
    """Write document, transcript, memories and report of a discussion again."""
    from mneme import discuss as run

    run_command(run.report(owner, discussion, out, as_json))


@discuss.command()
def memory(
    agent: Agent,
    turn: Annotated[int | None, typer.Option("--turn", "-n", min=0, help="After this turn.")] = None,
    since: Annotated[
        int | None, typer.Option("--since", min=0, help="Show what changed since that turn instead.")
    ] = None,
    history: Annotated[bool, typer.Option("--history", help="List every version.")] = False,
    discussion: Which = "",
    owner: Owner = "local",
    as_json: Json = False,
) -> None:
    """Show an agent's memory, now or after a turn, or what changed in it between two turns."""
    from mneme import discuss as run

    run_command(run.memory(owner, discussion, agent, (since, turn), history, as_json))


@discuss.command("teams")
def list_teams(as_json: Json = False) -> None:
    """List the teams that come with Mneme."""
    from mneme import discuss as run

    run_command(run.teams(as_json))


@discuss.command("new-team")
def new_team(
    name: Annotated[str, typer.Argument(help="The team's name; the file is NAME.yaml.")],
    task: Annotated[str, typer.Option("--task", help="A file with a task, or its words.")],
    roles: Annotated[
        list[str] | None, typer.Option("--role", help='An expert: "Title: what it is for"; repeatable.')
    ] = None,
    like: Annotated[
        str, typer.Option("--like", help="The team whose document and facilitators are taken over.")
    ] = "data_pipeline",
    out: Annotated[Path | None, typer.Option("--out", help="The file; default: NAME.yaml.")] = None,
    agents: Agents = "auto",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="I have reviewed such templates before.")] = False,
    as_json: Json = False,
) -> None:
    """Make a team: memory templates from its roles and a task, which you review before use."""
    from mneme.new_team import new_team as run

    run_command(run(name, task, roles or [], like, out, agents, yes, as_json))
