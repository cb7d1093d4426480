"""`mneme learn …`: solve tasks as a team that learns, and resolve new disputes."""

from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from rich.markup import escape

from mneme.cli.chat.talk import show_notice
from mneme.cli.files import read_file
from mneme.cli.learning.disputes import print_dispute, run_dispute
from mneme.cli.show import console, print_json
from mneme.client.team import TeamSession, open_team_session
from mneme.core.errors import BadInput
from mneme.environments.sql_tuning import tasks
from mneme.library import EXAMPLES
from mneme.models.asking.counting import in_words

SUITES = ("story", "sql_tuning")
SIGNS = {
    "created": "[green]+ card[/]",
    "reinforced": "[green]+ success[/]",
    "success": "[green]+ success[/]",
    "failure": "[red]- failure[/]",
    "promoted": "[green]^ verified[/]",
    "dispute": "[yellow]? dispute[/]",
}
ROLES = ("researcher", "devils_advocate", "leader", "monitor")
Context = dict[str, Any]
PAGE = 1000
"""Finished tasks that are asked for at once."""


class Given(BaseModel):
    """One task: its text and, for query tuning, the slow query and the schema."""

    model_config = ConfigDict(extra="forbid")

    task: str = Field(description="The task in words.")
    id: str = Field(
        default_factory=lambda: uuid4().hex,
        description="Its name; a task that is done is not run again. Default: the file's name and a number.",
    )
    query: str = Field("", description="The slow query, which is run and measured.")
    schema_name: str = Field("", alias="schema", description="The schema of the query's database.")
    wanted_speed_up: float | None = Field(None, description="How many times as fast is enough; 2 if unset.")
    index_budget: float | None = Field(
        None, description="Largest size of new indexes, as a share of the tables'; 0.3 if unset."
    )


async def learn(
    words: str,
    file: Path | None,
    suite: str,
    size: tuple[int, int],
    where: Context,
    context: Context,
    as_json: bool,
) -> int:
    """Solve the given tasks one after the other; return 1 if one was not solved.

    A task counts only once for the cards that it used, so a task that is done is not run again.
    """
    given = tasks_of(words, file, suite, size, where)
    await show_notice(*(context[role] for role in ROLES))
    async with open_team_session(context["team"]) as session:
        done = await _done(session)
        failed = [not await _solve(session, each, context, as_json) for each in given if each.id not in done]
    skipped = len(given) - len(failed)
    if not as_json and (len(given) > 1 or skipped):
        console.print(f"{len(failed) - sum(failed)} solved, {sum(failed)} not solved, {skipped} done before.")
    return int(any(failed))


async def _done(session: TeamSession) -> set[str]:
    """Return the ids of all finished tasks."""
    done = set[str]()
    while page := await session.cards.list_tasks(PAGE, len(done)):
        done |= {record.id for record in page}
    return done


def tasks_of(words: str, file: Path | None, suite: str, size: tuple[int, int], where: Context) -> list[Given]:
    """Return the tasks that the options name. Raises BadInput."""
    if sum([bool(words), file is not None, bool(suite)]) != 1:
        raise BadInput("The task is missing.", 'Give one of: "TASK", --file FILE, --suite NAME.')
    if suite:
        return _of_suite(suite, *size)
    if file is not None:
        return _of_file(file, where)
    if not words.strip():
        raise BadInput("The task is empty.", "Describe the task in words.")
    given = where | {"id": where.get("id") or uuid4().hex}
    return [Given.model_validate({"task": words, **given})]


def _of_suite(suite: str, count: int, seed: int) -> list[Given]:
    if suite not in SUITES:
        raise BadInput(f"There is no suite {suite!r}.", f"There are: {', '.join(SUITES)}.")
    if suite == "story":
        return _of_file(EXAMPLES / "story.yaml", {})
    return [
        Given(
            task=task.description,
            id=task.id,
            query=task.query,
            schema=task.schema_name,
            wanted_speed_up=task.wanted_speed_up,
            index_budget=task.index_budget,
        )
        for task in tasks(seed, count)
    ]


def _of_file(file: Path, where: Context) -> list[Given]:
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
    rows = [{"task": row} if isinstance(row, str) else row for row in read]
    named = [
        {**where, "id": f"{file.name}-{number}", **row} if isinstance(row, dict) else row
        for number, row in enumerate(rows, start=1)
    ]
    try:
        return TypeAdapter(list[Given]).validate_python(named)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise BadInput(
            f"{file}: {field}: {first['msg']}.", "A task has the fields task, query, schema, id."
        ) from error


async def _solve(session: TeamSession, given: Given, context: Context, as_json: bool) -> bool:
    """Solve one task, or continue one that was killed; then resolve the disputes that it opened."""
    config = await session.task(given.id)
    own = context | _environment(given)
    left, _ = await session.flows.left_at("compound_learning", config)
    if not as_json:
        console.print(f"\n[bold]task[/] {escape(given.task)}", soft_wrap=True)
    problem = None if left else _problem(given)
    async for event in session.flows.stream("compound_learning", problem, config, own, "custom"):
        if not as_json:
            _print_step(cast(dict[str, Any], event))
    _, values = await session.flows.left_at("compound_learning", config)
    if as_json:
        print_json(
            {
                key: values[key]
                for key in ("task_id", "packet", "learned", "iterations", "answered_by", "asked")
            }
        )
    else:
        _print_result(values)
    for dispute in [each["dispute"] for each in values["learned"] if each["dispute"]]:
        resolved = await run_dispute(session, dispute, own)
        print_dispute(resolved, as_json)
    return bool(values["packet"]["solved"])


def _environment(given: Given) -> Context:
    if not given.query:
        return {"environment": ""}
    return {"environment": "sql_tuning", "schema_name": given.schema_name or "events"}


def _problem(given: Given) -> dict[str, Any]:
    named = {"task": given.task, "task_id": given.id, "query": given.query}
    limits = {"wanted_speed_up": given.wanted_speed_up, "index_budget": given.index_budget}
    return named | {name: limit for name, limit in limits.items() if limit is not None}


LONGEST = 110
"""The most characters of a line."""


def _print_step(event: dict[str, Any]) -> None:
    step, details = event["step"], {name: value for name, value in event.items() if name != "step" and value}
    if step in {"decide", "keep"}:  # the result says it
        return
    shown = [value for value in details.values() if isinstance(value, list | str)]
    lines = [line for value in shown for line in (value if isinstance(value, list) else [value])]
    text = "\n             ".join(_short(line) for line in lines) or "nothing"
    console.print(f"  [cyan]{step:<10}[/]" + escape(text), soft_wrap=True)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) < LONGEST else f"{line[: LONGEST - 1]}…"


def _print_result(values: dict[str, Any]) -> None:
    packet, metrics = values["packet"], values["packet"]["metrics"]
    solved = "[green]solved[/]" if packet["solved"] else "[red]not solved[/]"
    judged = "measured" if packet["judged_by"] == "environment" else "judged by the leader, not run"
    console.print(
        f"  {solved} after {values['iterations']} drafts, confidence {packet['confidence']:.2f} ({judged}; "
        f"{metrics['latency_seconds']:.2f} s, {metrics['model_calls']} calls, {metrics['tokens']} tokens)"
    )
    console.print(f"    {escape(packet['answer'])}", soft_wrap=True)
    for each in values["learned"]:
        sign = SIGNS.get(each["event"], each["event"])
        console.print(
            f"  {sign} {each['card']} v{each['version']} ({each['status']}): {escape(each['claim'])}"
        )
        console.print(f"    [dim]why: {escape(_short(each['why']))}[/]")
    console.print(f"  [dim]{in_words(values['asked'])}[/]")


def size_of(count: int, seed: int) -> tuple[int, int]:
    """Return the number of tasks of a suite, and their seed. Raises BadInput."""
    if count < 1:
        raise BadInput(f"--count {count}: a suite needs at least one task.", "Give --count 1 or more.")
    return count, seed
