"""`mneme learn …` and `mneme cards intake`: solve tasks as a team that learns, and resolve new disputes."""

import hashlib
import json
from collections.abc import Iterator, Set
from functools import partial
from itertools import count as numbers
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from rich.markup import escape

from mneme.api.cards import Cards
from mneme.api.rendering import count_of
from mneme.cli.chat.responders import Context, show_notice
from mneme.cli.derived import Fields
from mneme.cli.learning.disputes import LEARNING_GRAPHS, Session, print_dispute, run_dispute
from mneme.cli.options import Agents, Team
from mneme.cli.show import console, emit, print_beside, print_result, read_file, resumable
from mneme.client.workflows import GraphRun, open_team
from mneme.core.errors import BadInput, first_fault
from mneme.environments.sql_tuning.tasks import story, tasks
from mneme.environments.worlds import SHIPPED_WORLDS, find_world, stated
from mneme.models.asking.counting import in_words
from mneme.models.asking.responders import resolve
from mneme.nodes.learning.context import LearningContext
from mneme.nodes.learning.worlds import Problem

SUITES = ("story", "sql_tuning", *SHIPPED_WORLDS)
EVENT_SIGNS = {
    "created": "[green]+ card[/]",
    "reinforced": "[green]+ success[/]",
    "success": "[green]+ success[/]",
    "failure": "[red]- failure[/]",
    "promoted": "[green]^ verified[/]",
    "dispute": "[yellow]? dispute[/]",
    "dead end": "[red]x dead end[/]",
}
LEARNING_ROLES = ("researcher", "devils_advocate", "leader", "monitor")
DDL = ".sql"
"""Suffix of a schema file; a schema that comes with Mneme has a name without it."""
GOES_ON = "What is solved, and each step of the task under way, is kept: the same command goes on."
TASKS_PER_PAGE = 1000
"""Number of finished tasks that are read at once."""


class Place(BaseModel):
    """Options of a task that stay on the command line, beside the graph's input."""

    model_config = ConfigDict(extra="forbid")

    id: str = Field(
        "",
        description="The task's name; one that is done is not run again. Default: file name and number.",
    )
    world: str = Field("", description="The world that tries solutions: a name, or a YAML file.")
    schema_name: str = Field(
        "", alias="schema", description="The schema: one that comes with Mneme, or a file FILE.sql."
    )

    @property
    def told(self) -> Context:
        """Return the graph's input: the options that were given."""
        return self.model_dump(exclude={*Place.model_fields}, exclude_defaults=True)

    @property
    def environment(self) -> str:
        """Return the world that the task names, or the one that its options belong to."""
        if self.world.endswith((".yaml", ".yml")):
            return str(Path(self.world).resolve())
        if self.world:
            return self.world
        if {"query", "database"} & {*self.told}:
            return "sql_tuning"
        return "workspace" if {"workspace", "check"} & {*self.told} else ""


OTHERWISE = ("task", "example", "messages", "task_id", "ddl")
"""Fields of the graph's input that are not options: the argument, and values computed from options."""
PROBLEM_FIELDS: Context = {
    name: hint for name, hint in get_type_hints(Problem, include_extras=True).items() if name not in OTHERWISE
}
Where = create_model("Where", __base__=Place, **PROBLEM_FIELDS)
Given = create_model(
    "Given",
    __base__=Where,
    __doc__="One task: its text, its world, and what the world reads of it.",
    task=(str, Field(description="The task in words.")),
)


LEARN_OPTIONS = Fields(LearningContext, without="environment schema_name database_seed successes_to_verify")


async def learn(
    where: Annotated[Context, Fields(Where)],
    context: Annotated[Context, LEARN_OPTIONS],
    task: Annotated[str, typer.Argument(help="The task in words.")] = "",
    file: Annotated[Path | None, "A YAML list of tasks."] = None,
    suite: Annotated[
        str, "Tasks of Mneme: story, sql_tuning (generated), python_functions, shell_pipelines."
    ] = "",
    count: Annotated[int, "Number of generated tasks."] = 8,
    seed: Annotated[int, "Seed of the generated tasks."] = 1,
) -> int:
    """Solve a task as a team that learns: draft, challenge, patch, verify, decide, compile."""
    if count < 1:
        raise BadInput(f"--count {count}: a suite needs at least one task.", "Give --count 1 or more.")
    given = tasks_of(task, file, suite, (count, seed), where)
    await show_notice(*(context[role] for role in LEARNING_ROLES))
    async with open_team(Cards, context["team"], *LEARNING_GRAPHS) as session:
        done = await finished(session)  # a task counts once for a card: one that is done is not run again
        given = [numbered(each, done) for each in given]
        with resumable(GOES_ON):
            failed = [not await solve(session, each, context) for each in given if each.id not in done]
    skipped = len(given) - len(failed)
    if len(given) > 1 or skipped:
        console.print(f"{len(failed) - sum(failed)} solved, {sum(failed)} not solved, {skipped} done before.")
    return int(any(failed))


def numbered(given: Place, done: Set[str]) -> Place:
    """Name an unnamed task by its content, and by how often it was completed."""
    if given.id:
        return given
    # the same command continues a killed task, whose number is free, and begins again after a completed one
    said = given.model_dump_json(exclude={"id"}, by_alias=True)
    name = hashlib.sha256(said.encode()).hexdigest()[:16]
    number = next(n for n in numbers(1) if f"{name}-{n}" not in done)
    return given.model_copy(update={"id": f"{name}-{number}"})


async def finished(session: Session) -> set[str]:
    """Return the ids of all finished tasks."""
    done = set[str]()
    while page := await session.on.list_tasks(TASKS_PER_PAGE, len(done)):
        done |= {record.id for record in page}
    return done


def tasks_of(words: str, file: Path | None, suite: str, size: tuple[int, int], where: Context) -> list[Place]:
    """Return the tasks that the options name. Raises BadInput."""
    where = stated(where)
    if (case := where.get("case")) and not words:  # a world's own task
        if not (world := where.get("world", "")):
            raise BadInput(f"The task {case} names no world.", "Name its world with --world.")
        cases = {each.id: each.text for each in find_world(world).cases()}
        if case not in cases:
            has = f"It has: {', '.join(cases) or 'none'}."
            raise BadInput(f"The world {world} has no task {case!r}.", has)
        words = cases[case]
    if sum([bool(words), file is not None, bool(suite)]) != 1:
        raise BadInput("The task is missing.", 'Give one of: "TASK", --file FILE, --suite NAME.')
    if suite:
        return _of_suite(suite, *size)
    if file is not None:
        return _of_file(file, where)
    if not words.strip():
        raise BadInput("The task is empty.", "Describe the task in words.")
    return [Given.model_validate({"task": words, **where})]


def _of_suite(suite: str, size: int, seed: int) -> list[Place]:
    if suite not in SUITES:
        raise BadInput(f"There is no suite {suite!r}.", f"There are: {', '.join(SUITES)}.")
    if suite in SHIPPED_WORLDS:
        cases = find_world(suite).cases()
        named = [{"task": each.text, "id": each.id, "world": suite, "case": each.id} for each in cases]
    else:
        named = [
            {"id": each.id, "task": each.description, "schema": each.schema_name, **each.posed}
            for each in (story() if suite == "story" else tasks(seed, size))
        ]
    return [Given.model_validate(each) for each in named]


def _of_file(file: Path, where: Context) -> list[Place]:
    """Read a YAML or JSON list of tasks: texts, or objects with task, query, schema, id."""
    text = read_file(file, "Give a YAML list of tasks.")
    try:
        read = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BadInput(
            f"{file} is not valid YAML: {' '.join(str(error).split())}", "Fix that line."
        ) from error
    if not isinstance(read, list) or not read:
        raise BadInput(f"{file} has no list of tasks.", "Begin each task with a hyphen.")
    given: list[Place] = []
    for number, row in enumerate(read, start=1):
        told = row if isinstance(row, dict) else {"task": row}
        try:
            given.append(Given.model_validate({**where, "id": f"{file.name}-{number}", **told}))
        except ValidationError as error:
            raise BadInput(
                f"{file}, task {number}: {first_fault(error)}",
                "A task has the fields task, id, world, query, schema, …; see `mneme learn --help`.",
            ) from error
        if given[-1].id in {each.id for each in given[:-1]}:
            fault = f"{file}, task {number}: an earlier one has the id {given[-1].id}, too."
            raise BadInput(fault, "Give each its own: a task that is done is not run again.")
    return given


async def solve(session: Session, given: Place, context: Context) -> bool:
    """Solve one task, or continue one that was killed; then resolve the disputes that it opened."""
    config = await session.thread("compound_learning", given.id)
    schema = given.schema_name if not given.schema_name.endswith(DDL) else ""
    # the default schema where none is named, or a file, whose text is in the graph's input
    own = context | {"environment": given.environment, "schema_name": schema or "events"}
    left, _ = await session.flows.left_at("compound_learning", config)
    posed = None if left else problem_of(given)
    run, is_begun = GraphRun(session.flows, "compound_learning", posed, config, own), False
    async for event in run:
        if not is_begun:  # not before: the first step refuses a task that its world cannot lay out
            print_beside("\n[bold]task[/] ", escape(given.told["task"]))
            is_begun = True
        _print_step(event)
    values = run.values
    emit({key: values[key] for key in ("task_id", "packet", "learned", "iterations", "answered_by", "asked")})
    _print_result(values)
    for dispute in [each["dispute"] for each in values["learned"] if each["dispute"]]:
        resolved = await run_dispute(session, dispute, own)
        rests_on = await session.on.evidence(dispute)
        print_result(resolved, partial(print_dispute, rests_on=rests_on))
    return bool(values["packet"]["solved"])


def problem_of(given: Place) -> Context:
    """Return the graph's input, with absolute paths. Raises BadInput."""
    named = {**given.told, "task_id": given.id}
    if given.schema_name.endswith(DDL):
        named["ddl"] = read_file(Path(given.schema_name), "Give a file of CREATE TABLE statements.")
    for name in {"workspace", "database"} & {*named}:  # a server's working directory is another
        if "://" not in named[name]:
            named[name] = str(Path(named[name]).resolve())
    return named


MAX_LINE_CHARS = 110
"""Maximum characters of a line."""


def _print_step(event: dict[str, Any]) -> None:
    step, details = event["step"], {name: value for name, value in event.items() if name != "step" and value}
    if step in {"decide", "keep"}:  # the result says it
        return
    shown = [value for value in details.values() if isinstance(value, list | str)]
    lines = [line for value in shown for line in (value if isinstance(value, list) else [value])]
    print_beside(f"  [cyan]{step:<10}[/]", escape("\n".join(_short(line) for line in lines) or "nothing"))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) < MAX_LINE_CHARS else f"{line[: MAX_LINE_CHARS - 1]}…"


def _print_result(values: dict[str, Any]) -> None:
    packet, metrics = values["packet"], values["packet"]["metrics"]
    solved = "[green]solved[/]" if packet["solved"] else "[red]not solved[/]"
    judged = "measured" if packet["judged_by"] == "environment" else "judged by the leader, not run"
    print_beside(
        "  ",
        f"{solved} after {count_of(values['iterations'], 'draft')}, confidence {packet['confidence']:.2f} "
        f"({judged}; {metrics['latency_seconds']:.2f} s, {metrics['model_calls']} calls, "
        f"{metrics['tokens']} tokens)",
    )
    print_beside("    ", escape(packet["answer"]))
    for each in metrics.get("measured", ()):
        if each["name"] == "index_share" and each["value"] > each["limit"]:
            print_beside("    ", "--index-budget SHARE allows larger indexes.")
    for each in values["learned"]:
        sign = EVENT_SIGNS.get(each["event"], each["event"])
        print_beside(
            f"  {sign} ", f"{each['card']} v{each['version']} ({each['status']}): {escape(each['claim'])}"
        )
        print_beside("    [dim]why:[/] ", f"[dim]{escape(_short(each['why']))}[/]")
    console.print(f"  [dim]{in_words(values['asked'])}[/]")


MAX_PART_CHARS = 6_000
"""Maximum characters of one part: as much as a small model reads reliably."""
SOURCE_FILE_HINT = "Give a log, tickets or a conversation as text."
LESSON_TASK = """What does this record of past work teach that would help with other tasks? It is {name}, part
{number} of {of}. Say what the problem was, what helped, what was tried and failed, and under which condition
that holds; claim nothing that the record does not show. Where it teaches nothing, say so."""


async def intake(
    files: Annotated[list[Path], "Logs, tickets or conversations; `-` reads stdin."],
    scope: Annotated[str, "The domain that the lessons hold in."] = "",
    agents: Agents = "auto",
    team: Team = "local",
) -> None:
    """Learn from what was written before: each part is drafted, challenged and compiled into cards."""
    parts = [given for file in files for given in parts_of(file, scope)]
    context = dict.fromkeys(LEARNING_ROLES, agents) | {"team": team}
    await show_notice(agents)
    if await resolve(agents) == "rules":
        raise BadInput("Rules learn nothing from texts.", "Give a model that reads: --agents ollama:MODEL.")
    async with open_team(Cards, team, *LEARNING_GRAPHS) as session:
        done = await finished(session)
        new = [each for each in parts if each.id not in done]
        with resumable(GOES_ON):
            for each in new:
                await solve(session, each, context)
    console.print(f"{len(new)} read, {len(parts) - len(new)} read before.")


def parts_of(file: Path, scope: str) -> list[Place]:
    """Return a file's parts as tasks to learn from like any other. Raises BadInput if it has no text."""
    text = read_file(file, SOURCE_FILE_HINT)
    items: list[object] = [text]
    try:
        if file.suffix == ".jsonl":
            items = [json.loads(line) for line in text.splitlines() if line.strip()]
        elif file.suffix == ".json":
            read = json.loads(text)
            items = read if isinstance(read, list) else [read]
    except json.JSONDecodeError as error:
        raise BadInput(f"This is no JSON: {error}.", "Give it as .txt where it is plain text.") from error
    said = (
        each if isinstance(each, str) else json.dumps(each, ensure_ascii=False, indent=1) for each in items
    )
    texts = [piece for each in said for piece in _pieces(each)]
    if not texts:
        raise BadInput(f"{file} has no words.", SOURCE_FILE_HINT)
    return [
        Given.model_validate(
            {
                # by its content, so that a part is read once, also where it has moved within the file
                "id": f"intake-{hashlib.sha256(f'{scope} {text}'.encode()).hexdigest()[:24]}",
                "task": " ".join(LESSON_TASK.format(name=file.name, number=number, of=len(texts)).split()),
                "material": text,
                "scope": scope,
            }
        )
        for number, text in enumerate(texts, start=1)
    ]


def _pieces(text: str) -> Iterator[str]:
    """Yield as many whole lines as fit into a part; a longer line is cut."""
    gathered, size = list[str](), 0
    for whole in text.splitlines():
        for line in (whole[n : n + MAX_PART_CHARS] for n in range(0, len(whole) or 1, MAX_PART_CHARS)):
            if size + len(line) > MAX_PART_CHARS:
                yield "\n".join(gathered)
                gathered, size = [], 0
            gathered.append(line)
            size += len(line) + 1
    if "".join(gathered).strip():
        yield "\n".join(gathered)
