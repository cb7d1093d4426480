"""A task in its world, for the steps of learning: its input, its patterns and its trials."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, cast

from langgraph.channels import EphemeralValue
from pydantic import Field

from mneme.core.errors import BadInput, Forbidden
from mneme.core.settings import settings
from mneme.environments.fields import described
from mneme.environments.sql_tuning.tasks import story
from mneme.environments.trial import Trial, failed
from mneme.environments.worlds import (
    SQL_TUNING,
    InWords,
    Solution,
    Task,
    TaskInput,
    World,
    WorldKind,
    find_world,
    runs_commands,
    stated,
)
from mneme.nodes.learning.context import TeamContext
from mneme.nodes.messages import ChatMessages
from mneme.prompts.learning.compound_learning.task import NO_LANGUAGE, Advice
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.sharing import Abstraction

STORY = {each.id: each for each in story()}
"""The tasks that come with Mneme, by their ids."""
OUTSIDE_FIELDS = ("workspace", "check", "database")
"""Fields that reach files, programs or servers outside Mneme: only for a person on their own machine."""


class Problem(TaskInput, total=False):
    """A task as input of the graph; its world reads the fields that it needs."""

    task: Annotated[str, described("What is to be solved, in words.", "Speed up the report of sales.")]
    example: Annotated[
        str,
        Field(
            "",
            description="Instead of task and query: a task that comes with Mneme, run and measured.",
            examples=[next(iter(STORY))],
            json_schema_extra={"enum": ["", *STORY]},
        ),
        EphemeralValue,  # else the next task on this thread would be the same example again
    ]
    messages: Annotated[ChatMessages, EphemeralValue]
    task_id: Annotated[str, described("Its id: a task counts once for a card. Else one is made.", "report-1")]
    material: Annotated[
        str,
        described(
            "Without a world: what the task is about, such as a log or a conversation.",
            "12:01 pool exhausted; 12:05 raised pool_size to 20; 12:06 well again",
        ),
    ]
    scope: Annotated[str, described("Without a world: the domain that lessons hold in.", "billing")]


class UnmeasuredWorld(World):
    """A task without a world: nothing is run, and the leader judges."""

    measures = False

    def __init__(self, problem: Problem) -> None:
        self.scope, self._material = problem.get("scope", ""), problem.get("material", "")

    def material(self) -> str:
        """Return the task's material, as it was given."""
        return self._material

    def wanted(self) -> str:
        """Return nothing: the task's text says it."""
        return ""

    def attempt(self, solution: Solution, *, quick: bool = False) -> Trial:
        """Return a failed trial."""
        return failed("Nothing is run here.")


def refuse_outside(name: str, given: Mapping[str, Any]) -> None:
    """Refuse what a task may not name on a server for several people: programs, folders and databases."""
    if settings().auth and (runs_commands(name) or any(given.get(each) for each in OUTSIDE_FIELDS)):
        raise Forbidden(
            f"This server is for several people: it opens no database or folder of a task ({name}).",
            "Run `mneme learn` on your own machine, or ask the server's administrator to install the world.",
        )


def posed(problem: Problem, context: TeamContext) -> tuple[str, dict[str, Any]]:
    """Return the name of a task's world, empty if it has none, and the world's input from the task."""
    schema = cast(Mapping[str, Any], problem).get("schema_name")  # not of the input but of the state
    name = SQL_TUNING if schema else context.environment  # an example is measured in any context
    given = stated({each: problem.get(each) for each in TaskInput.__annotations__})
    return name, given | context.drawn | stated({"schema_name": schema})


async def open_world(problem: Problem, context: TeamContext, snapshot: str = "") -> World:
    """Open the world of a task; without a name, nothing is measured.

    Raises BadInput if an input is missing, Forbidden as `refuse_outside` does.
    """
    name, given = posed(problem, context)
    if not name:
        return UnmeasuredWorld(problem)
    refuse_outside(name, given)
    given |= stated({"snapshot": snapshot})
    task = Task(id=problem.get("task_id") or "task", text=problem.get("task", ""), given=given)
    return await asyncio.to_thread(opened, name, task)


def opened(name: str, task: Task) -> World:
    """Open a world and compute its features. Blocks."""
    world = find_world(name).open(task)
    _ = world.features  # may read files, and is cached: computed here, and not on the event loop later
    return world


def advice_of(world: World, condition: str, pattern: str) -> Advice:
    """Return a pattern instantiated for the task, or why it cannot be, and whether its condition holds."""
    made = Advice(
        condition=condition,
        pattern=pattern,
        applies=world.applies(condition),
        specificity=world.specificity(condition),
        is_text=world.language is None,
    )
    try:
        return made if made.is_text else made.model_copy(update=dict(world.carry_out(pattern)))
    except InWords:  # a world may have both kinds of patterns
        return made.model_copy(update={"is_text": True})
    except BadInput as not_here:
        return made.model_copy(update={"why_not": str(not_here)})


def made_out(world: World, patterns: Sequence[str]) -> list[Advice]:
    """Return the patterns that can be carried out on this task, instantiated."""
    return [each for pattern in patterns if (each := advice_of(world, "", pattern)).feasible]


def told_of(world: World, task: str) -> dict[str, Any]:
    """Return the description of a task in its world that every agent is given."""
    return {
        "task": task,
        "language": world.language.definition if world.language else NO_LANGUAGE,
        "features": "; ".join(world.features),
        "material": world.material(),
        "wanted": world.wanted(),
        "noun": world.noun,
        "form": world.form,
        "parts": list(world.parts),
    }


def known_pattern(world: World, pattern: str) -> str:
    """Return a pattern as the world's language writes it; empty if it is not in that language."""
    try:
        return world.language.check(pattern) if world.language and pattern else pattern
    except BadInput:
        return ""


async def attempt(world: World, solution: Solution, *, quick: bool = False) -> Trial | None:
    """Try a solution in a thread; None if nothing is run."""
    return await asyncio.to_thread(world.attempt, solution, quick=quick) if world.measures else None


async def abstraction_of(cards: KnowledgeCards, private: Sequence[str] = ()) -> Abstraction:
    """Return the abstraction of a team's cards; `private` are further names to hide."""
    tasks = await cards.tasks.all()
    scopes = {card.scope for card in await cards.records.list()} | {task.domain for task in tasks}
    kinds = await asyncio.to_thread(lambda: {scope: kind for scope in scopes if (kind := _kind(scope))})
    names = {
        name for task in tasks if task.domain in kinds for name in kinds[task.domain].names(task.material)
    }
    public = [*kinds, *(kind.vocabulary for kind in kinds.values())]  # words of a world reveal no owner
    return Abstraction(public, {*names, *private})


def _kind(scope: str) -> WorldKind | None:
    """Return the world that a scope names; None for a scope in free words."""
    try:
        return find_world(scope) if scope else None
    except BadInput:
        return None
