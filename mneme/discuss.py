"""`mneme discuss …`: let a team discuss a task, look at its discussions and at each agent's memory."""

import asyncio
import json
import re
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple, get_args
from uuid import uuid4

from langgraph.types import Command
from pydantic import ValidationError
from rich.markup import escape
from rich.syntax import Syntax

from mneme.discussion_operations import DiscussionOperations
from mneme.discussion_report import ending, write_report
from mneme.errors import BadInput
from mneme.home import open_operations
from mneme.show import console, print_json, print_table
from mneme.talk import show_notice
from mneme.workflows import Workflows, open_workflows
from nodes.discussion_context import DiscussionContext
from nodes.task_memories.kinds import MemoryName
from stores.discussions import Discussion, Turn, check_id
from teams.team import Team, load_team, shipped

GRAPH = "intrinsic_memory"
TASK_FILES = {".md", ".txt"}
FOLDER = Path("discussions")
WAITING = 3
"""The exit status where a discussion waits for a person."""
Values = dict[str, Any]


async def discuss(
    task: str,
    team: str,
    models: Sequence[str],
    discussion_id: str,
    context: Values,
    out: Path | None,
    as_json: bool,
) -> int:
    """Discuss a task, or go on with a discussion that was killed or waits; write what came of it."""
    if context["memory"] not in get_args(MemoryName):
        raise BadInput(
            f"--memory {context['memory']}: there is no such memory.",
            f"One of {', '.join(get_args(MemoryName))}.",
        )
    _check_context(context)
    given = None if discussion_id and not task else {"task": task_of(task), "team": team_of(team, models)}
    if given is not None and discussion_id:
        check_id(discussion_id)
    await show_notice(context["agents"])
    async with (
        open_workflows(GRAPH) as flows,
        flows.operations(DiscussionOperations, context["team"]) as done,
    ):
        known = await _known(done, discussion_id, given, context)
        if not await _run(flows, known, context, as_json):
            return _say_waiting(known.id, as_json)
        ended = await done.get(known.id)
        files = await _write(done, ended, out)
    _print_end(ended, files, as_json)
    return 0


class Known(NamedTuple):
    """A discussion to be held: whose, its whole id, its task and team."""

    owner: str
    id: str
    given: Values


def _check_context(context: Values) -> None:
    """Refuse, with its option named, what no discussion can be held with."""
    try:
        DiscussionContext.model_validate(context)
    except ValidationError as error:
        first = error.errors()[0]
        option = str(first["loc"][0]).replace("_", "-")
        raise BadInput(f"--{option}: {first['msg']}.", "See mneme discuss run --help.") from error


def _check_as_begun(about: Discussion, context: Values) -> None:
    """Refuse what a discussion that is resumed was not begun with: it keeps to that until its end."""
    for name, option in BEGUN.items():
        begun, wanted = getattr(about, name), context[name]
        if wanted and wanted != begun:
            raise BadInput(
                f"{option} {wanted}: the discussion {about.id} was begun with {begun or 'none'}.",
                "Leave it out to go on, or begin another discussion.",
            )


BEGUN = {
    "person": "--as",
    "approve": "--approve",
    "max_turns": "--max-turns",
    "context_tokens": "--context-tokens",
}
"""What a discussion keeps to from its beginning, by the option that sets it."""


async def _known(
    done: DiscussionOperations, discussion_id: str, given: Values | None, context: Values
) -> Known:
    """Return what is to be discussed: anew, or what the ledger knows of the one that is named."""
    owner = await done.whose()
    if given is not None:
        return Known(owner, discussion_id or uuid4().hex[:12], given)
    about = await done.starting(discussion_id)
    _check_as_begun(about, context)
    return Known(owner, about.id, {"task": about.task, "team": about.team})


def task_of(task: str) -> str:
    """Return the task: a file's content, stdin's, or the words themselves. Raises BadInput."""
    if task == "-":
        return sys.stdin.read()
    path = Path(task)
    if not _is_file(task, path):
        _check_words(task)
        return task
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            f"Cannot read the task {path}: {error}.", "Give a text file, or the task in words."
        ) from error


def _is_file(task: str, path: Path) -> bool:
    if not task.strip() or len(task) >= 1000 or "\n" in task:
        return False
    if path.is_dir():
        raise BadInput(f"The task {path} is a folder.", "Give a text file, or the task in words.")
    return path.suffix in TASK_FILES or path.is_file()


def _check_words(task: str) -> None:
    """Refuse a single word that was meant for something else: a file's path, or a command."""
    if any(each.isspace() for each in task.strip()):
        return
    if re.search(r"[/\\~]|\.\w", task):
        raise BadInput(f"There is no file {task}.", "Give a text file, or the task in words.")
    if near := get_close_matches(task.lower(), COMMANDS, 1):
        raise BadInput(
            f"{task!r} is no command: did you mean {near[0]}?", "A task in words has more words than one."
        )


COMMANDS = ("run", "list", "show", "report", "memory", "teams", "new-team")


def team_of(team: str, models: Sequence[str]) -> Values:
    """Return the team as plain JSON, with the models that are wanted for single roles. Raises BadInput."""
    loaded = load_team(team)
    wanted = dict(_model(each, loaded) for each in models)
    roles = [role.model_copy(update={"model": wanted.get(role.name, role.model)}) for role in loaded.roles]
    return loaded.model_copy(update={"roles": roles}).model_dump(mode="json")


def _model(given: str, team: Team) -> tuple[str, str]:
    name, equals, who = given.partition("=")
    if not equals or not who:
        raise BadInput(f"--model {given}: say ROLE=WHO.", f"e.g. {team.names[0]}=ollama:llama3.1:8b")
    return team.role(name).name, who


async def _run(flows: Workflows, about: Known, context: Values, as_json: bool) -> bool:
    """Run the graph to its end; return whether it got there, or waits for a person who is not here.

    What has begun goes on with no input, also where nothing seems to be left to do: a thread that was
    killed between a step's writes and its checkpoint looks so, and one that has ended runs nothing.
    """
    config = await flows.thread(f"discuss/{about.owner}/{about.id}", GRAPH)
    _, values = await flows.left_at(GRAPH, config)
    step: Any = None if values else {**about.given, "discussion_id": about.id}
    while True:
        async for told in flows.stream(GRAPH, step, config, context, "custom"):
            _print_step(told, as_json)
        question = await _waiting(flows, config)
        if question is None:
            return True
        answer = await asyncio.to_thread(_answer, question, as_json)
        if answer is None:
            return False
        step = Command(resume=answer)


async def _waiting(flows: Workflows, config: Any) -> Values | None:
    """Return what the run asks a person, if it does."""
    state = await flows.graphs[GRAPH].aget_state(config)
    return next((each.value for task in state.tasks for each in task.interrupts), None)


# A person


def _answer(question: Values, as_json: bool) -> Values | None:
    """Read a person's answer from the terminal, or a line of JSON; nothing at the end of the input."""
    if as_json:
        print_json({"waits": question})
        line = sys.stdin.readline()
        return _json(line) if line.strip() else None
    _print_question(question)
    return _approval() if "document" in question else _words(question)


def _json(line: str) -> Values:
    try:
        read: Values = json.loads(line)
    except json.JSONDecodeError as error:
        raise BadInput(f"This line is no JSON: {error}.", 'e.g. {"message": "…", "accept": false}') from error
    return read


def _print_question(question: Values) -> None:
    if "document" in question:
        console.print(Syntax(json.dumps(question["document"], indent=1, ensure_ascii=False), "json"))
        return
    console.print(f"\n[bold]You speak as {escape(question['role'])}.[/] Your memory:")
    console.print(escape(question["memory"] or "nothing"), soft_wrap=True)
    for turn in question["turns"][-SHOWN:]:
        console.print(escape(turn), soft_wrap=True)
    if question["wrong"]:
        console.print(f"[red]{escape(question['wrong'])}[/]")


SHOWN = 3


def _words(question: Values) -> Values | None:
    message = _line("say (empty: stop here)> ")
    if not message:
        return None
    return {"message": message, "accept": _yes("do you accept the solution?"), "finalize": _may_end(question)}


def _may_end(question: Values) -> bool:
    return bool(question["may_finalize"]) and _yes("call for the document?")


def _approval() -> Values | None:
    answer = _line("approve? (yes, or what has to be discussed; empty: stop here)> ")
    if not answer:
        return None
    approved = answer.lower() in {"y", "yes"}
    return {"approve": approved, "remarks": "" if approved else answer}


def _yes(question: str) -> bool:
    return (_line(f"{question} [y/N]> ") or "n").lower().startswith("y")


def _line(prompt: str) -> str:
    console.print(prompt, end="", markup=False)
    return sys.stdin.readline().strip()


# What is printed


def _print_step(told: Values, as_json: bool) -> None:
    if as_json:
        print_json(told)
    elif told["step"] == "turn":
        _print_turn(Turn.model_validate({name: each for name, each in told.items() if name != "step"}))
    elif told["step"] == "open":
        console.print(f"[bold]discussion[/] {told['discussion']} [dim]({escape(told['team'])})[/]")


def _print_turn(turn: Turn) -> None:
    marks = " [green]accepts[/]" * turn.accept + " [green]finalises[/]" * turn.finalize
    console.print(f"\n[cyan]{turn.number}. {escape(turn.title)}[/]{marks} [dim]{escape(turn.answered_by)}[/]")
    console.print(escape(turn.message), soft_wrap=True)


def _say_waiting(known: str, as_json: bool) -> int:
    if as_json:
        print_json({"discussion": known, "waits": True})
    else:
        console.print(f"\nThe discussion waits for you: mneme discuss --id {known}")
    return WAITING


def _print_end(ended: Discussion, files: Sequence[Path], as_json: bool) -> None:
    if as_json:
        print_json(
            {
                **ended.model_dump(mode="json", exclude={"team", "task"}),
                "files": [str(each) for each in files],
            }
        )
        return
    console.print(f"\n[bold]{escape(ending(ended))}[/] {ended.turns} turns, {ended.tokens} tokens.")
    for file in files:
        console.print(str(file), soft_wrap=True)


async def _write(done: DiscussionOperations, about: Discussion, out: Path | None) -> list[Path]:
    """Write the report of a discussion into its folder."""
    turns = await done.turns(about.id)
    memories = []
    if about.memory == GRAPH.removesuffix("_memory"):
        memories = [await done.memory_now(about.id, role["name"]) for role in about.team["roles"]]
    return await asyncio.to_thread(write_report, out or FOLDER / about.id, about, turns, memories)


# Looking back


async def list_(owner: str, limit: int, as_json: bool) -> None:
    """List discussions."""
    async with open_operations(DiscussionOperations, owner) as done:
        found = await done.list(limit)
    if as_json:
        for each in found:
            print_json(each)
        return
    rows = (
        [each.id, each.team["name"], each.ended or "goes on", str(each.turns), _title(each)] for each in found
    )
    print_table("", ("id", "team", "ended", "turns", "task"), rows) if found else console.print(
        "[dim]nothing[/]"
    )


def _title(about: Discussion) -> str:
    return about.task.strip().splitlines()[0][:60]


async def show(owner: str, discussion: str, as_json: bool) -> None:
    """Print a discussion with its turns."""
    async with open_operations(DiscussionOperations, owner) as done:
        about = await done.starting(discussion)
        turns = await done.turns(about.id)
    if as_json:
        print_json(about)
    for turn in turns:
        print_json(turn) if as_json else _print_turn(turn)
    if not as_json:
        console.print(f"\n[bold]{escape(ending(about))}[/]")
        console.print(Syntax(json.dumps(about.document, indent=1, ensure_ascii=False), "json"))


async def report(owner: str, discussion: str, out: Path | None, as_json: bool) -> None:
    """Write a discussion's report again."""
    async with open_operations(DiscussionOperations, owner) as done:
        about = await done.starting(discussion)
        files = await _write(done, about, out)
    _print_end(about, files, as_json)


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
    async with open_operations(DiscussionOperations, owner) as done:
        about = await done.starting(discussion)
        if history:
            for each in await done.memory_history(about.id, agent):
                _print_version(each.model_dump(mode="json"), as_json)
            return
        last = MANY if turn is None else turn
        if since is not None:
            _print_diff(await done.memory_diff(about.id, agent, since, last), as_json)
            return
        found = await done.memory_at(about.id, agent, last)
    if as_json:
        print_json(found)
        return
    console.print(f"[bold]{escape(agent)}[/] after turn {found.turn} [dim](version {found.version})[/]")
    console.print(Syntax(json.dumps(found.memory, indent=1, ensure_ascii=False), "json", word_wrap=True))


MANY = 1_000_000


def _print_version(version: Values, as_json: bool) -> None:
    if as_json:
        print_json(version)
        return
    console.print(f"turn {version['turn']:>4}  version {version['version']:>3}  {escape(version['reason'])}")


def _print_diff(diff: str, as_json: bool) -> None:
    if as_json:
        print_json({"diff": diff})
        return
    console.print(Syntax(diff, "diff", word_wrap=True) if diff else "[dim]nothing changed[/]")


async def teams(as_json: bool) -> None:
    """List the shipped teams with their roles."""
    loaded = [load_team(name) for name in shipped()]
    if as_json:
        for team in loaded:
            print_json(team)
        return
    rows = ([team.name, f"{team.purpose}\nRoles: {', '.join(team.names)}."] for team in loaded)
    print_table("", ("team", "what it is for"), rows)
