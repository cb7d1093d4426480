"""A playable PDDL problem: it takes an action as a sentence and returns an observation.

Scoring as AgentBoard's: progress is 0 at the start, then the largest share of goal literals that has held
after an action so far; an action is valid where it changes something, and every call costs a step, `check
valid actions`, `look around` and thinking aloud included (the first two count as valid, a thought does not:
it acts on nothing).
An action is read from free words: the first word that names an action, then the problem's objects in
the order in which they are named, as many as the action takes. Two deviations: a word that names an
action is understood even where that action has no valid instance at the moment, and actions that would
change nothing are not listed as valid, since they are answered as not valid.
"""

import re
from functools import cached_property
from typing import Any

from pydantic import BaseModel

from mneme.environments.pddl.compiling import CompiledProblem, compile_problem
from mneme.environments.pddl.wording import (
    ILLEGAL,
    PARTIAL,
    SATISFIED,
    THINKING_STEP,
    UNPARSED,
    clause,
    manual,
    sentences,
)

MAX_STEPS = 30
"""Steps that a task may take."""
CHECK, LOOK = "check valid actions", "look around"
PDDL_WORD = re.compile(r"[a-z0-9_][a-z0-9_-]*")
Action = tuple[str, ...]
"""An action's name and its objects."""


class Problem(BaseModel, frozen=True):
    """A task: PDDL texts and what to call it; plain JSON, so that a checkpoint can hold it."""

    name: str
    domain: str
    difficulty: str
    goal: str
    domain_pddl: str
    problem_pddl: str

    @property
    def manual(self) -> str:
        """Return the objects and actions, described in the words of the observations."""
        return manual(self.domain, self.compiled)

    @property
    def compiled(self) -> CompiledProblem:
        """Return the problem as tuples, parsed once in a process."""
        return compile_problem(self.domain_pddl, self.problem_pddl)


class StepResult(BaseModel, frozen=True):
    """The result of a step: its observation, whether it was valid and understood, and the score so far."""

    text: str
    valid: bool
    parsed: bool
    progress: float
    success: bool
    steps: int


class PddlWorld:
    """A problem that an agent acts in; `state()` is plain JSON, from which a world continues."""

    def __init__(self, problem: Problem, state: dict[str, Any] | None = None) -> None:
        self.problem = problem
        self._compiled = problem.compiled
        self._goal = frozenset(self._compiled.goal)
        self._literals = self._compiled.initial
        self.steps = self.valid_steps = 0
        self.progress = 0.0
        if state is not None:
            self._literals = frozenset(tuple(literal) for literal in state["literals"])
            self.progress, self.steps = float(state["progress"]), int(state["steps"])
            self.valid_steps = int(state["valid_steps"])

    def state(self) -> dict[str, Any]:
        """Return the state of the world, as plain JSON."""
        return {
            "literals": sorted(map(list, self._literals)),
            "progress": self.progress,
            "steps": self.steps,
            "valid_steps": self.valid_steps,
        }

    @property
    def success(self) -> bool:
        """Return whether all goal literals hold."""
        return self._goal <= self._literals

    @cached_property
    def goals(self) -> list[str]:
        """Return the goal literals' wording, one each, as observations say them."""
        return [clause(self.problem.domain, literal) for literal in self._compiled.goal]

    @property
    def first_observation(self) -> str:
        """Return the observation at step 0: every literal that holds at the start."""
        return sentences(self.problem.domain, self._compiled.initial)

    def step(self, action: str) -> StepResult:
        """Carry out a sentence; it always costs a step."""
        text = " ".join(action.lower().split())
        self.steps += 1
        words = PDDL_WORD.findall(text)
        if words[:1] in (["think"], ["thought"]):
            return self._observed(THINKING_STEP, valid=False)
        if "check" in words:  # AgentBoard's `check valid actions`, in whatever words
            return self._observed(f"Valid actions: {'; '.join(self.valid_actions())}", valid=True)
        if LOOK in text:
            return self._observed(sentences(self.problem.domain, self._literals), valid=True)
        return self._act(self.parse(text))

    def parse(self, text: str) -> Action | None:
        """Return the action that a sentence names, or None if it names none with its objects."""
        words = PDDL_WORD.findall(text.lower())
        name = next((word for word in words if word in self._compiled.schemas), "")
        if not name:
            return None
        wanted = len(self._compiled.schemas[name].parameters)
        objects = [word for word in words if word in self._compiled.kinds]
        return (name, *objects[:wanted]) if len(objects) >= wanted else None

    def valid_actions(self) -> list[str]:
        """Return every action that would change something now, then the questions that are always allowed."""
        found = (
            action
            for schema in self._compiled.schemas.values()
            for action in schema.instances(self._compiled.objects, self._literals)
        )
        # The preconditions of a move from a room to itself hold, but it changes nothing: it is not valid.
        changing = {str(each) for each in found if each.after(self._literals) != self._literals}
        return [*sorted(changing), CHECK, LOOK]

    def _act(self, action: Action | None) -> StepResult:
        if action is None:
            return self._observed(UNPARSED, valid=False, parsed=False)
        schema, before = self._compiled.schemas[action[0]], self._literals
        typed = zip(action[1:], schema.types, strict=True)
        fits = all(thing in self._compiled.objects[kind] for thing, kind in typed)
        if not fits:
            return self._observed(ILLEGAL, valid=False)
        ground = schema.ground(action[1:])
        self._literals = ground.after(before) if ground.requires <= before else before
        if self._literals == before:  # its conditions do not hold, or it changes nothing
            return self._observed(ILLEGAL, valid=False)
        # r_t = max(r_(t-1), share of goal literals): what is undone later was reached once.
        self.progress = max(self.progress, len(self._goal & self._literals) / len(self._goal))
        shown = self._literals - before if self.problem.domain in PARTIAL else self._literals
        text = sentences(self.problem.domain, shown)
        return self._observed(f"{text} {SATISFIED}" if self.success else text, valid=True)

    def _observed(self, text: str, *, valid: bool, parsed: bool = True) -> StepResult:
        self.valid_steps += valid
        return StepResult(
            text=text,
            valid=valid,
            parsed=parsed,
            progress=self.progress,
            success=self.success,
            steps=self.steps,
        )
