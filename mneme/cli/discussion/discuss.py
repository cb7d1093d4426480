"""`mneme discuss …`: run discussions, and show them and each agent's memory."""

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

from mneme.api.discussions import TeamDiscussions
from mneme.cli.chat.talk import show_notice
from mneme.cli.discussion.report import ending, write_report
from mneme.cli.files import read_file
from mneme.cli.show import console, print_json, print_table
from mneme.client.home import open_operations
from mneme.client.workflows import Workflows, open_workflows
from mneme.core.errors import BadAnswer, BadInput, ModelUnavailable
from mneme.library.teams.team import Team, load_team, shipped
from mneme.models.asking.counting import Asked, in_words
from mneme.nodes.discussion.context import DiscussionContext
from mneme.nodes.task_memories.kinds import MemoryName
from mneme.stores.discussions.discussions import Discussion, Turn, check_id

GRAPH = "intrinsic_memory"
TASK_FILES = {".md", ".txt"}
FOLDER = Path("discussions")
WAITING = 3
"""The exit status of a discussion that waits for a person."""
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
    """Run a discussion, or continue one that was killed or waits; write the results."""
    if context["memory"] not in get_args(MemoryName):
        raise BadInput(
            f"--memory {context['memory']}: no such memory.",
            f"Choose one of {', '.join(get_args(MemoryName))}.",
        )
    _check_context(context)
    given = None if discussion_id and not task else {"task": task_of(task), "team": team_of(team, models)}
    if given is not None and discussion_id:
        check_id(discussion_id)
    chosen = _chosen_models(given) if given else []
    await show_notice(context["agents"], *chosen)
    async with (
        open_workflows(GRAPH) as flows,
        flows.operations(TeamDiscussions, context["team"]) as done,
    ):
        prepared = await _prepared(done, discussion_id, given, context)
        try:
            values = await _run(flows, prepared, context, as_json)
        except (BadAnswer, ModelUnavailable) as error:
            kept = f"What was said is kept: `mneme discuss --id {prepared.id}` goes on."
            error.hint = f"{error.hint} {kept}".strip()
            raise
        if values is None:
            return _say_waiting(prepared.id, as_json)
        ended = await done.get(prepared.id)
        files = await _write(done, ended, out)
    _print_end(ended, values["asked"], files, as_json)
    return 0


class Prepared(NamedTuple):
    """A discussion to run: its owner, id, and the graph's input (task and team)."""

    owner: str
    id: str
    given: Values


def _check_context(context: Values) -> None:
    """Raise BadInput, naming the option, for a context that is not valid."""
    try:
        DiscussionContext.model_validate(context)
    except ValidationError as error:
        first = error.errors()[0]
        option = str(first["loc"][0]).replace("_", "-")
        raise BadInput(f"--{option}: {first['msg']}.", "See `mneme discuss run --help`.") from error


def _check_as_begun(about: Discussion, context: Values) -> None:
    """Raise BadInput for an option that differs from the one that the discussion was begun with."""
    for name, option in BEGUN.items():
        begun, wanted = getattr(about, name), context[name]
        if wanted and wanted != begun:
            raise BadInput(
                f"{option} {wanted}: the discussion {about.id} was begun with {begun or 'none'}.",
                "Leave it out to continue, or start another discussion.",
            )


BEGUN = {
    "person": "--as",
    "approve": "--approve",
    "max_turns": "--max-turns",
    "context_tokens": "--context-tokens",
    "carry": "--carry",
}
"""What cannot change after a discussion has begun, with the option that sets it."""


async def _prepared(
    done: TeamDiscussions, discussion_id: str, given: Values | None, context: Values
) -> Prepared:
    """Return a new discussion, or the one in the ledger with this id."""
    owner = await done.whose()
    if given is not None:
        return Prepared(owner, discussion_id or uuid4().hex[:12], given)
    about = await done.starting(discussion_id)
    _check_as_begun(about, context)
    return Prepared(owner, about.id, {"task": about.task, "team": about.team})


def task_of(task: str) -> str:
    """Return the task: the text of a file or of stdin, or the words themselves. Raises BadInput."""
    path = Path(task)
    if task == "-" or _is_file(task, path):
        return read_file(path, "Give a text file, or the task in words.")
    _check_words(task)
    return task


def _is_file(task: str, path: Path) -> bool:
    if not task.strip() or len(task) >= 1000 or "\n" in task:
        return False
    if path.is_dir():
        raise BadInput(f"The task {path} is a folder.", "Give a text file, or the task in words.")
    return path.suffix in TASK_FILES or path.is_file()


def _check_words(task: str) -> None:
    """Raise BadInput for a single word that looks like a file's path or a command."""
    if any(each.isspace() for each in task.strip()):
        return
    if re.search(r"[/\\~]|\.\w", task):
        raise BadInput(f"There is no file {task}.", "Give a text file, or the task in words.")
    if near := get_close_matches(task.lower(), COMMANDS, 1):
        raise BadInput(
            f"{task!r} is not a command: did you mean {near[0]}?", "A task needs more than one word."
        )


COMMANDS = ("run", "list", "show", "report", "memory", "carried", "forget-carried", "teams", "new-team")


def team_of(team: str, models: Sequence[str]) -> Values:
    """Return the team as plain JSON, with the models chosen for single roles. Raises BadInput."""
    loaded = load_team(team)
    wanted = dict(_model(each, loaded) for each in models)
    roles = [role.model_copy(update={"model": wanted.get(role.name, role.model)}) for role in loaded.roles]
    return loaded.model_copy(update={"roles": roles}).model_dump(mode="json")


def _chosen_models(given: Values) -> list[str]:
    """Return the models that the team names for single roles."""
    return [role["model"] for role in given["team"]["roles"] if role["model"]]


def _model(given: str, team: Team) -> tuple[str, str]:
    name, equals, who = given.partition("=")
    if not equals or not who:
        raise BadInput(
            f"--model {given}: write ROLE=MODEL.", f"For example: {team.names[0]}=ollama:llama3.1:8b"
        )
    return team.role(name).name, who


async def _run(flows: Workflows, about: Prepared, context: Values, as_json: bool) -> Values | None:
    """Run the graph; return its state at the end, None where it waits for a person who is not here.

    A discussion that has begun is resumed without input, even where no step seems to be left: a thread
    that was killed between a step's writes and its checkpoint looks like that.
    """
    config = await flows.thread(f"discuss/{about.owner}/{about.id}", GRAPH)
    _, values = await flows.left_at(GRAPH, config)
    step: Any = None if values else {**about.given, "discussion_id": about.id}
    while True:
        async for event in flows.stream(GRAPH, step, config, context, "custom"):
            _print_step(event, as_json)
        question = await _waiting(flows, config)
        if question is None:
            return (await flows.left_at(GRAPH, config))[1]
        answer = await asyncio.to_thread(_answer, question, as_json)
        if answer is None:
            return None
        step = Command(resume=answer)


async def _waiting(flows: Workflows, config: Any) -> Values | None:
    """Return the question that the run asks a person, if it asks one."""
    state = await flows.graphs[GRAPH].aget_state(config)
    return next((each.value for task in state.tasks for each in task.interrupts), None)


# A person


def _answer(question: Values, as_json: bool) -> Values | None:
    """Read a person's answer from the terminal or as a line of JSON; None at the end of the input."""
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
        raise BadInput(
            f"This line is not JSON: {error}.", 'For example: {"message": "…", "accept": false}'
        ) from error
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
    message = _line("your message (empty: stop here)> ")
    if not message:
        return None
    said = {"message": message, "accept": _yes("Do you accept the solution?"), "finalize": _may_end(question)}
    return said | {"answers": _answers(question.get("issues", {}))}


def _answers(issues: dict[str, str]) -> list[int]:
    """Ask which issues were answered, where there are any."""
    if not issues:
        return []
    for number, about in issues.items():
        console.print(f"  {number}. {escape(about)}", soft_wrap=True)
    named = re.findall(r"\d+", _line("Which of these issues does it answer (numbers; empty: none)> "))
    return [int(number) for number in named]


def _may_end(question: Values) -> bool:
    return bool(question["may_finalize"]) and _yes("Shall the document be written now?")


def _approval() -> Values | None:
    answer = _line("Approve? (yes, or what must still be discussed; empty: stop here)> ")
    if not answer:
        return None
    approved = answer.lower() in {"y", "yes"}
    return {"approve": approved, "remarks": "" if approved else answer}


def _yes(question: str) -> bool:
    return (_line(f"{question} [y/N]> ") or "n").lower().startswith("y")


def _line(prompt: str) -> str:
    console.print(prompt, end="", markup=False)
    return sys.stdin.readline().strip()


# Print


def _print_step(event: Values, as_json: bool) -> None:
    if as_json:
        print_json(event)
    elif event["step"] == "turn":
        _print_turn(Turn.model_validate({name: each for name, each in event.items() if name != "step"}))
    elif event["step"] == "open":
        console.print(f"[bold]discussion[/] {event['discussion']} [dim]({escape(event['team'])})[/]")


def _print_turn(turn: Turn) -> None:
    marks = " [green]accepts[/]" * turn.accept + " [green]finalises[/]" * turn.finalize
    console.print(f"\n[cyan]{turn.number}. {escape(turn.title)}[/]{marks} [dim]{escape(turn.answered_by)}[/]")
    console.print(escape(turn.message), soft_wrap=True)
    if turn.complaint:
        console.print(f"[yellow]{escape(turn.complaint)}[/]", soft_wrap=True)


def _say_waiting(known: str, as_json: bool) -> int:
    if as_json:
        print_json({"discussion": known, "waits": True})
    else:
        console.print(f"\nThe discussion waits for you: mneme discuss --id {known}")
    return WAITING


def _print_end(ended: Discussion, asked: Asked | None, files: Sequence[Path], as_json: bool) -> None:
    if as_json:
        print_json(
            {
                **ended.model_dump(mode="json", exclude={"team", "task"}),
                "asked": asked,
                "files": [str(each) for each in files],
            }
        )
        return
    cost = f" [dim]{in_words(asked)}[/]" if asked else ""
    console.print(f"\n[bold]{escape(ending(ended))}[/] {ended.turns} turns, {ended.tokens} tokens.{cost}")
    if ended.complaints:
        console.print(f"[yellow]{len(ended.complaints)} answers could be used only in part:[/]")
    for complaint in ended.complaints:
        console.print(f"  {escape(complaint)}", soft_wrap=True)
    for file in files:
        console.print(str(file), soft_wrap=True)


async def _write(done: TeamDiscussions, about: Discussion, out: Path | None) -> list[Path]:
    """Write a discussion's report into its folder."""
    turns = await done.turns(about.id)
    memories = []
    if about.memory == GRAPH.removesuffix("_memory"):
        memories = [await done.memory_now(about.id, role["name"]) for role in about.team["roles"]]
    return await asyncio.to_thread(write_report, out or FOLDER / about.id, about, turns, memories)


# Show discussions


def one_of(discussion: str, named: str) -> str:
    """Return the id that was given as an argument or as `--id`. Raises BadInput where the two differ."""
    if discussion and named and discussion != named:
        raise BadInput(f"Two discussions are named: {discussion} and {named}.", "Name one.")
    return discussion or named


async def list_(owner: str, limit: int, as_json: bool) -> None:
    """List discussions."""
    async with open_operations(TeamDiscussions, owner, reading=True) as done:
        found = await done.list(limit)
    if as_json:
        for each in found:
            print_json(each)
        return
    rows = (
        [each.id, each.team["name"], each.ended or "not ended", str(each.turns), _title(each)]
        for each in found
    )
    print_table("", ("id", "team", "ended", "turns", "task"), rows) if found else console.print(
        "[dim]nothing[/]"
    )


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
        print_json(turn) if as_json else _print_turn(turn)
    if not as_json:
        console.print(f"\n[bold]{escape(ending(about))}[/]")
        console.print(Syntax(json.dumps(about.document, indent=1, ensure_ascii=False), "json"))


async def report(owner: str, discussion: str, out: Path | None, as_json: bool) -> None:
    """Write a discussion's report again."""
    async with open_operations(TeamDiscussions, owner, reading=True) as done:
        about = await done.starting(discussion)
        files = await _write(done, about, out)
    _print_end(about, None, files, as_json)


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
    """List the teams that come with Mneme, with their roles."""
    loaded = [load_team(name) for name in shipped()]
    if as_json:
        for team in loaded:
            print_json(team)
        return
    rows = ([team.name, f"{team.purpose}\nRoles: {', '.join(team.names)}."] for team in loaded)
    print_table("", ("team", "what it is for"), rows)
