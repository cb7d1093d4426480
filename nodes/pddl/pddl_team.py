"""A team in a PDDL world (§4), in the harness of G-Memory: recall, solve, act, observe, …, remember.

One action a step, 30 steps. The solver chooses; if its action equals the two before, a second agent is asked
instead. A reply that stays unusable after its repairs is given to the world as it is, which costs a step like
any other text that names no action. If a memory's question gets no usable answer, the memory stays as it was
(a structured one takes the usable slots). All are listed in the result's `complaints`.
"""

import asyncio
from collections.abc import Awaitable
from functools import lru_cache
from operator import add
from typing import Annotated, Any, TypeVar
from uuid import uuid4

from langgraph.channels import EphemeralValue
from pydantic import ValidationError
from typing_extensions import TypedDict

from mneme.core.errors import BadAnswer, BadInput, first_fault
from mneme.environments.fields import described
from mneme.environments.pddl import MAX_STEPS, SIZES, Domain, PddlWorld, Problem, example_of, generate
from mneme.environments.turns import Turn
from mneme.library.teams.team import load_team
from mneme.models.asking.asking import ask, resolve
from mneme.models.asking.counting import Asked, sum_counts
from mneme.models.ollama.tokenizers import counter_of
from mneme.nodes.context import ledger_of, team_of
from mneme.nodes.pddl.context import PddlRuntime
from mneme.nodes.task_memories.interface import FinishedTask, Held, MemoryServices, Role, Task, TaskMemory
from mneme.nodes.task_memories.kinds import open_memory
from mneme.nodes.workflow import Update, counted, read_input
from mneme.prompts.pddl.pddl_team import Move, choose_action, choose_otherwise
from mneme.prompts.prompt import Prompt
from mneme.stores.ledger.records import MAX_INT
from mneme.stores.task_memories.trials import Trials

MIN_SIZES = ", ".join(f"{domain} {least}" for domain, (least, _) in SIZES.items())
PROBLEM_HINT = "Load it with environments.pddl.load, and give problem.model_dump()."


PROBLEM_EXAMPLE = {
    "name": "mine/1",
    "domain": "gripper",
    "difficulty": "easy",
    "goal": "The goal is: ball1 is at roomb.",
    "domain_pddl": "(define (domain …) …)",
    "problem_pddl": "(define (problem …) …)",
}


class Given(TypedDict, total=False):
    """A problem to generate, or a whole one as plain JSON; the same `task_id` is the same trial."""

    domain: Annotated[Domain, described("The world of the problem.", "gripper", "gripper"), EphemeralValue]
    seed: Annotated[int, described("Which problem of it is drawn.", 1, 1, ge=0, le=MAX_INT), EphemeralValue]
    size: Annotated[
        int | None,
        described(f"How large; none: drawn by the seed. At least: {MIN_SIZES}.", 4, None),
        EphemeralValue,
    ]
    problem: Annotated[
        dict[str, Any],
        described(
            "Instead of a domain: a whole problem, as `problem.model_dump()` gives it.", PROBLEM_EXAMPLE, {}
        ),
    ]
    task_id: Annotated[str, described("The id of the trial. Else one is made.", "trial-1")]


def problem_given(state: Given) -> Problem:
    """Return the problem of the input: generated, or given whole. Raises BadInput."""
    given = read_input(Given, state)
    # A thread keeps its last problem in the state, so a domain that is given now goes before it.
    if given["problem"] and not state.get("domain"):
        return whole_problem(given["problem"])
    return generate(given["domain"], given["seed"], given["size"])


def whole_problem(given: Any) -> Problem:
    if not given:
        raise BadInput("problem: none is given.", PROBLEM_HINT)
    try:
        return Problem.model_validate(given)
    except ValidationError as error:
        raise BadInput(
            f"The problem cannot be used: {first_fault(error, 'problem')}", PROBLEM_HINT
        ) from error


SOLVER, SECOND = "solver", "second_agent"
TEAM = "pddl"
REPEATED_TURNS = 2
EMPTY_TURN = "(nothing)"
T = TypeVar("T")


class Step(TypedDict):
    """One step of a task."""

    number: int
    agent: str
    action: str
    observation: str
    valid: bool
    parsed: bool
    progress: float


class Chosen(TypedDict):
    """An action that is to be taken."""

    agent: str
    action: str


class Result(TypedDict):
    """The result of a task; `progress` is its reward."""

    task_id: str
    progress: float
    success: bool
    steps: int
    valid_steps: int
    asked: Annotated[Asked, sum_counts]
    answered_by: str
    transcript: Annotated[list[Step], add]
    complaints: Annotated[list[str], add]


class State(Result):
    """A task under way."""

    problem: dict[str, Any]
    world: dict[str, Any]
    held: Held
    chosen: Chosen


@counted
async def recall(state: Given, runtime: PddlRuntime) -> Update:
    """Begin: check the problem, and recall memories of other tasks. Raises BadInput, PromptTooLong."""
    problem = await asyncio.to_thread(problem_given, state)
    world = await asyncio.to_thread(PddlWorld, problem)
    task = await asyncio.to_thread(task_of, problem)
    trial = state.get("task_id") or uuid4().hex  # names the records that the memory keeps of the task
    memory = await _memory(runtime, trial)
    services = memory.services
    # Before any model is asked; later, a window that task and memory fill would show no turns.
    needed = services.count(task.text) + (services.memory_tokens if memory.name == "intrinsic" else 0)
    if needed >= services.window:
        raise BadInput(
            f"The task {task.id} and its memory take about {needed} tokens; "
            f"the window has {services.window}.",
            "Raise `context_tokens`, or lower `memory_tokens`.",
        )
    held = await _kept(memory, memory.recall(task), {})
    begun = {"problem": problem.model_dump(), "task_id": trial, "held": held}
    return begun | _standing(world) | {"complaints": services.complaints}


@counted
async def solve(state: State, runtime: PddlRuntime) -> Update:
    """Let the solver choose; if it repeats itself a second time, ask the second agent instead."""
    memory, task, turns = await _at_work(state, runtime)
    context, held, by = runtime.context, state["held"], state.get("answered_by", "")
    example = await asyncio.to_thread(example_of, task.domain) if context.example else ""

    async def action_of(agent: str, who: str, question: Prompt[Any, Move], **more: str) -> str:
        """Return an agent's action, on one line; else the text that stayed unusable."""
        nonlocal held, by
        # For each prompt anew: ChatDev counts prompts, the second agent's too.
        held = await _kept(memory, memory.prepare(task, held, turns), held)
        shown = memory.context(task, held, turns, agent)
        told = {"memory": shown.memory, "turns": "\n".join(map(str, shown.turns)), **more}
        try:
            answered = await ask(question, question.given(example=example, task=task.text, **told), who)
        except BadAnswer as bad:
            memory.services.complaints.append(str(bad))
            words = bad.raw
        else:
            by, words = answered.responder, answered.value.action
        return " ".join(words.split())[:300] or EMPTY_TURN

    chosen = Chosen(agent=SOLVER, action=await action_of(SOLVER, context.solver, choose_action))
    if [turn.output for turn in turns[-REPEATED_TURNS:]] == [chosen["action"]] * REPEATED_TURNS:
        more = {"repeated": chosen["action"]}
        action = await action_of(SECOND, context.second_agent, choose_otherwise, **more)
        chosen = Chosen(agent=SECOND, action=action)
    return {"held": held, "chosen": chosen, "answered_by": by, "complaints": memory.services.complaints}


async def act(state: State, runtime: PddlRuntime) -> Update:
    """Take the chosen action, and record the world's reply."""
    # In threads, here and below, since compiling a problem blocks.
    world = await asyncio.to_thread(PddlWorld, whole_problem(state["problem"]), state["world"])
    observed = await asyncio.to_thread(world.step, state["chosen"]["action"])
    step = Step(
        number=observed.steps,
        agent=state["chosen"]["agent"],
        action=state["chosen"]["action"],
        observation=observed.text,
        valid=observed.valid,
        parsed=observed.parsed,
        progress=observed.progress,
    )
    shown = {name: value for name, value in step.items() if name in STEP_FIELDS}
    runtime.stream_writer({"step": step["number"], **shown})
    return {"transcript": [step]} | _standing(world)


STEP_FIELDS = ("agent", "action", "observation", "progress")


@counted
async def observe(state: State, runtime: PddlRuntime) -> Update:
    """Update the memory with the step."""
    memory, task, turns = await _at_work(state, runtime)
    held = await _kept(memory, memory.observe(task, state["held"], turns), state["held"])
    return {"held": held, "complaints": memory.services.complaints}


def is_over(state: State) -> str:
    """Return `remember` if the goal is reached or the steps are used up, else `solve`."""
    return "remember" if state["success"] or state["steps"] >= MAX_STEPS else "solve"


@counted
async def remember(state: State, runtime: PddlRuntime) -> Update:
    """Store what the task teaches in the memory."""
    memory, task, turns = await _at_work(state, runtime)
    trial = FinishedTask(
        id=state["task_id"], task=task, turns=turns, reward=state["progress"], success=state["success"]
    )
    await _kept(memory, memory.remember(trial, state["held"]), None)
    return {"complaints": memory.services.complaints}


def _standing(world: PddlWorld) -> Update:
    """Return the state of a world, and its figures for the result."""
    state = world.state()
    counted = {name: value for name, value in state.items() if name != "literals"}
    return {"world": state, "success": world.success, **counted}


async def _kept(memory: TaskMemory, work: Awaitable[T], otherwise: T) -> T:
    """Return the memory's new state; without a usable answer keep the old one and note a complaint."""
    try:
        return await work
    except BadAnswer as bad:
        memory.services.complaints.append(str(bad))
        return otherwise


async def _at_work(state: State, runtime: PddlRuntime) -> tuple[TaskMemory, Task, list[Turn]]:
    task = await asyncio.to_thread(task_of, whole_problem(state["problem"]))
    turns = [
        Turn(number=each["number"], agent=each["agent"], output=each["action"], outcome=each["observation"])
        for each in state.get("transcript", [])
    ]
    return await _memory(runtime, state["task_id"]), task, turns


async def _memory(runtime: PddlRuntime, trial: str) -> TaskMemory:
    context, ledger, team = runtime.context, ledger_of(runtime), team_of(runtime)
    responders = {await resolve(who) for who in (context.solver, context.second_agent)}
    counters = [await counter_of(responder) for responder in responders]
    services = MemoryServices(
        ledger=ledger,
        trials=Trials(ledger, team, context.memory),
        who=context.memory_model,
        trial=trial,
        window=context.context_tokens,
        memory_tokens=context.memory_tokens,
        # Both agents read the same context: it must fit by the tokenizer that counts more.
        count=counters[0] if len(counters) == 1 else lambda text: max(count(text) for count in counters),
        team=team,
        roles=await asyncio.to_thread(_roles),
    )
    return open_memory(context.memory, services)


@lru_cache(maxsize=1)  # needed at each step, and the same for all teams
def _roles() -> dict[str, Role]:
    team = load_team(TEAM)
    known = [team.role(name) for name in (SOLVER, SECOND)]
    return {role.name: Role(role.specification, role.memory) for role in known}


def task_of(problem: Problem) -> Task:
    """Return a problem as agents and memories are shown it."""
    seen = PddlWorld(problem).first_observation
    text = f"{problem.goal}\n{problem.manual}\nAt the start: {seen}"
    return Task(id=problem.name, goal=problem.goal, text=text, domain=problem.domain)
