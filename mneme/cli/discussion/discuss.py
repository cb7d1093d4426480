"""`mneme discuss TASK`: run a discussion, or continue one, with a person at the terminal."""

import json
import os
import re
import sys
from asyncio import CancelledError
from collections.abc import Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from os.path import isdir, isfile
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command
from rich.markup import escape

from mneme.api.discussions import TeamDiscussions
from mneme.cli.chat.responders import show_notice
from mneme.cli.derived import Fields
from mneme.cli.discussion.show import WAITING_STATUS, print_end, print_step, write_files
from mneme.cli.options import by_role
from mneme.cli.show import console, emit, errors, from_person, print_code, prints_json, read_file, say
from mneme.client.workflows import GraphRun, Workflows, open_workflows
from mneme.core.errors import BadAnswer, BadInput, MnemeError, ModelUnavailable, NotFound
from mneme.library.teams.team import load_team, shipped
from mneme.nodes.discussion.context import DiscussionContext
from mneme.stores.discussions.discussions import check_id
from mneme.stores.ledger.records import LOCAL

DISCUSSION_GRAPH = "intrinsic_memory"
TASK_FILES, MAX_NAME_CHARS = {".md", ".txt"}, 255
Values = dict[str, Any]


DISCUSS_OPTIONS = Fields(DiscussionContext, {"person": "--as"}, "agents")


async def run(
    context: Annotated[Values, DISCUSS_OPTIONS],
    task: Annotated[
        str, typer.Argument(help="A file with the task, the task's words, or `-` for stdin.")
    ] = "",
    discussing: Annotated[
        str, "The team that discusses: data_pipeline, design_review, pddl, or a YAML file.", "--experts -e"
    ] = "data_pipeline",
    agents: Annotated[
        list[str],
        typer.Option(
            "--agents",
            envvar="MNEME_AGENTS",
            help="Who answers: auto, rules, ollama:MODEL, …; ROLE=MODEL: for one role. Repeatable.",
        ),
    ] = ["auto"],  # noqa: B006  (typer makes a new list of it)
    discussion_id: Annotated[
        str, "Id of a new discussion (letters, digits, - and _), or of the one to continue.", "--id"
    ] = "",
    out: Annotated[Path | None, "Folder for document and report; default: discussions/ID."] = None,
) -> int:
    """Discuss a task until all accept, and write the document (the word `run` may be left out)."""
    context["agents"], models = by_role(agents, os.environ.get("MNEME_AGENTS", "auto"))
    if context["team"] in shipped():  # `--team` named the experts in earlier versions
        experts = f"--team {context['team']}: it names the team whose data is used."
        raise BadInput(experts, f"Who discusses is given with --experts {context['team']}.")
    given: Values | None = None  # an id alone goes on with the task and the team that are kept
    if task or not discussion_id:
        given = {"task": task_of(task), "team": team_of(discussing, models)}
        if discussion_id:
            check_id(discussion_id)
    roles = given["team"]["roles"] if given else []
    await show_notice(context["agents"], *(each["model"] for each in roles if each["model"]))
    async with open_workflows(DISCUSSION_GRAPH) as flows:
        return await _discuss(flows, discussion_id, given, context, out)


async def _discuss(
    flows: Workflows, known: str, given: Values | None, context: Values, out: Path | None
) -> int:
    """Begin a discussion of a task, or continue one that was killed or waits; write the results."""
    done = flows.operations(TeamDiscussions, context["team"])
    if given is None:
        about = await done.starting(known)
        for name in START_OPTIONS:
            begun, wanted = getattr(about, name), context[name]
            if wanted and wanted != begun:  # an option that is not given says nothing
                option = DISCUSS_OPTIONS.declared(name)[0]
                raise BadInput(
                    f"{option} {wanted}: the discussion {about.id} was begun with {begun or 'none'}.",
                    "Leave it out to continue, or start another discussion.",
                )
        known, given = about.id, {"task": about.task, "team": about.team}
    elif known:
        with suppress(NotFound):  # a new one
            (await done.get(known)).must_be_of(given["task"].strip(), given["team"])
    known = known or uuid4().hex[:12]
    whose = "" if context["team"] == LOCAL else f" --team {context['team']}"
    goes_on = f"mneme discuss --id {known}{whose}"
    config = await flows.thread(f"discuss/{await done.whose()}/{known}", DISCUSSION_GRAPH)
    try:
        values = await _run(flows, config, {**given, "discussion_id": known}, context)
    except (BadAnswer, ModelUnavailable) as error:
        error.hint = f"{error.hint} What was said is kept: `{goes_on}` goes on.".strip()
        raise
    except CancelledError:  # Ctrl-C
        with suppress(MnemeError):  # not kept before its first step; or the server has gone, too
            await done.get(known)
            say(f"\nStopped. What was said is kept: `{escape(goes_on)}` goes on.", errors)
        raise
    if values is None:
        emit({"discussion": known, "waits": True})
        console.print(f"\nThe discussion waits for you: {goes_on}", markup=False)
        return WAITING_STATUS
    ended = await done.get(known)
    files = await write_files(done, ended, out)
    print_end(ended, values["asked"], files)
    return 0


START_OPTIONS = ("person", "approve", "max_turns", "context_tokens", "carry")
"""Options that cannot change after a discussion has begun."""


def task_of(task: str) -> str:
    """Return the task: the text of a file or of stdin, or the words themselves. Raises BadInput."""
    path, hint = Path(task), "Give a text file, or the task in words."
    if task == "-":
        return read_file(path, hint)
    # the methods of Path raise where words are too long for a name
    if isdir(task):  # noqa: PTH112
        raise BadInput(f"The task {path} is a folder.", hint)
    # a file that is not there is mistyped; but a long text is a task, also if its last word is a file's name
    is_name = path.suffix in TASK_FILES and "\n" not in task and len(task) <= MAX_NAME_CHARS
    if is_name or isfile(task):  # noqa: PTH113
        return read_file(path, hint)
    if any(each.isspace() for each in task.strip()):
        return task  # several words are a task; one is more often a command or a file that was mistyped
    if re.search(r"[/\\~]|\.\w", task):  # a single word that looks like a file's path, or a command
        raise BadInput(f"There is no file {task}.", hint)
    if near := get_close_matches(task.lower(), SUBCOMMANDS, 1):
        raise BadInput(
            f"{task!r} is not a command: did you mean {near[0]}?", "A task needs more than one word."
        )
    return task


SUBCOMMANDS = ("run", "list", "show", "report", "memory", "carried", "forget-carried", "teams", "new-team")


def team_of(team: str, models: Sequence[str]) -> Values:
    """Return the team as plain JSON, with the models chosen for single roles. Raises BadInput."""
    loaded, wanted = load_team(team), dict[str, str]()
    for given in models:
        name, _, who = given.partition("=")
        if not who:
            example = f"For example: {loaded.names[0]}=ollama:llama3.1:8b"
            raise BadInput(f"--agents {given}: write ROLE=MODEL.", example)
        wanted[loaded.role(name).name] = who
    roles = [role.model_copy(update={"model": wanted.get(role.name, role.model)}) for role in loaded.roles]
    return loaded.model_copy(update={"roles": roles}).model_dump(mode="json")


async def _run(flows: Workflows, config: RunnableConfig, given: Values, context: Values) -> Values | None:
    """Run the graph; return its final state, None if it waits for a person who is not here."""
    _, values = await flows.left_at(DISCUSSION_GRAPH, config)
    # whoever has begun goes on without input, also with no step left: a kill between a step's writes and its
    # checkpoint leaves a thread in that state
    step: Any = None if values else given
    while True:
        run = GraphRun(flows, DISCUSSION_GRAPH, step, config, context)
        async for event in run:
            print_step(event)
        if not run.questions:
            return run.values
        answer = await from_person(partial(answer_of, run.questions[0].value))
        if answer is None:
            return None
        step = Command(resume=answer)


LATEST_TURNS = 3


def answer_of(question: Values) -> Values | None:
    """Read a person's answer from the terminal or as a line of JSON; None at the end of the input."""
    if not prints_json():
        _print_question(question)
        if "document" not in question:
            return _words(question)
        if not (said := _line("Approve? (yes, or what must still be discussed; empty: stop here)> ")):
            return None
        approved = said.lower() in {"y", "yes"}
        return {"approve": approved, "remarks": "" if approved else said}
    emit({"waits": question})  # the program that reads the events answers in a line
    line = sys.stdin.readline()
    try:
        answer: Values | None = json.loads(line) if line.strip() else None
    except json.JSONDecodeError as error:
        example = 'For example: {"message": "…", "accept": false}'
        raise BadInput(f"This line is not JSON: {error}.", example) from error
    return answer


def _print_question(question: Values) -> None:
    if "document" in question:
        print_code(json.dumps(question["document"], indent=1, ensure_ascii=False), "json")
        return
    console.print(f"\n[bold]You speak as {escape(question['role'])}.[/] Your memory:")
    say(escape(question["memory"] or "nothing"))
    for turn in question["turns"][-LATEST_TURNS:]:
        say(escape(turn))
    if question["wrong"]:
        console.print(f"[red]{escape(question['wrong'])}[/]")


def _words(question: Values) -> Values | None:
    message = _line("your message (empty: stop here)> ")
    if not message:
        return None  # the run keeps waiting, and `--id` goes on with it
    said = {"message": message, "accept": agrees("Do you accept the solution?")}
    said["finalize"] = bool(question["may_finalize"]) and agrees("Shall the document be written now?")
    answers = list[int]()
    if issues := question.get("issues"):
        for number, about in issues.items():
            say(f"  {number}. {escape(about)}")
        named = _line("Which of these issues does it answer (numbers; empty: none)> ")
        answers = [int(number) for number in re.findall(r"\d+", named)]
    return said | {"answers": answers}


def agrees(question: str) -> bool:
    """Ask a person at the terminal a question that a `y` answers with yes."""
    return (_line(f"{question} [y/N]> ") or "n").lower().startswith("y")


def _line(prompt: str) -> str:
    console.print(prompt, end="", markup=False)
    return sys.stdin.readline().strip()
