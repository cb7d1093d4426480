"""A PDDL problem to act in: an action in one sentence in, an observation out.

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
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from pydantic import BaseModel

from mneme.environments.pddl.compiling import Compiled, Literal, Schema, compile_problem
from mneme.environments.pddl.wording import (
    ILLEGAL,
    PARTIAL,
    SATISFIED,
    THOUGHT,
    UNPARSED,
    clause,
    manual,
    sentences,
)

STEPS = 30
"""Steps that a task may take."""
CHECK, LOOK = "check valid actions", "look around"
WORD = re.compile(r"[a-z0-9_][a-z0-9_-]*")
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
    def compiled(self) -> Compiled:
        """Return the problem as tuples; parsed once a process."""
        return compile_problem(self.domain_pddl, self.problem_pddl)


class Observed(BaseModel, frozen=True):
    """What a step led to: its text, whether it was valid and understood, and the score so far."""

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
        self._literals = set(self._compiled.initial)
        self.steps = self.valid_steps = 0
        self.progress = 0.0
        if state is not None:
            self._literals = {tuple(literal) for literal in state["literals"]}
            self.progress, self.steps = float(state["progress"]), int(state["steps"])
            self.valid_steps = int(state["valid_steps"])

    def state(self) -> dict[str, Any]:
        """Return where the world stands, as plain JSON."""
        return {
            "literals": sorted(map(list, self._literals)),
            "progress": self.progress,
            "steps": self.steps,
            "valid_steps": self.valid_steps,
        }

    @property
    def success(self) -> bool:
        """Say whether all goal literals hold."""
        return self._goal <= self._literals

    @property
    def goal_text(self) -> str:
        return self.problem.goal

    @cached_property
    def goals(self) -> list[str]:
        """Return the goal literals' wording, one each, as observations say them."""
        return [clause(self.problem.domain, literal) for literal in self._compiled.goal]

    @property
    def first_observation(self) -> str:
        """Return what is seen at step 0: every literal that holds at the start."""
        return sentences(self.problem.domain, self._compiled.initial)

    def step(self, action: str) -> Observed:
        """Carry out a sentence; it always costs a step."""
        text = " ".join(action.lower().split())
        self.steps += 1
        words = WORD.findall(text)
        if words[:1] in (["think"], ["thought"]):
            return self._observed(THOUGHT, valid=False)
        if "check" in words:
            return self._observed(f"Valid actions: {'; '.join(self.valid_actions())}", valid=True)
        if LOOK in text:
            return self._observed(sentences(self.problem.domain, self._literals), valid=True)
        return self._act(self.parse(text))

    def parse(self, text: str) -> Action | None:
        """Return the action that a sentence names, or None where it names none with its objects."""
        words = WORD.findall(text.lower())
        name = next((word for word in words if word in self._compiled.schemas), "")
        if not name:
            return None
        wanted = len(self._compiled.schemas[name].parameters)
        objects = [word for word in words if word in self._compiled.kinds]
        return (name, *objects[:wanted]) if len(objects) >= wanted else None

    def valid_actions(self) -> list[str]:
        """Return every action that would change something now, then the questions that are always allowed."""
        found = {" ".join(action) for action in self._applicable() if self._changes(action)}
        return [*sorted(found), CHECK, LOOK]

    def _act(self, action: Action | None) -> Observed:
        if action is None:
            return self._observed(UNPARSED, valid=False, parsed=False)
        if not self._allows(action) or not self._changes(action):
            return self._observed(ILLEGAL, valid=False)
        before = frozenset(self._literals)
        adds, deletes = self._effects(action)
        self._literals -= deletes
        self._literals |= adds
        self.progress = max(self.progress, self._share())
        shown = self._literals - before if self.problem.domain in PARTIAL else self._literals
        text = sentences(self.problem.domain, shown)
        return self._observed(f"{text} {SATISFIED}" if self.success else text, valid=True)

    def _observed(self, text: str, *, valid: bool, parsed: bool = True) -> Observed:
        self.valid_steps += valid
        return Observed(
            text=text,
            valid=valid,
            parsed=parsed,
            progress=self.progress,
            success=self.success,
            steps=self.steps,
        )

    def _share(self) -> float:
        return len(self._goal & self._literals) / len(self._goal)

    def _allows(self, action: Action) -> bool:
        schema = self._compiled.schemas[action[0]]
        kinds = zip(action[1:], schema.types, strict=True)
        if not all(thing in self._compiled.objects[kind] for thing, kind in kinds):
            return False
        binding = dict(zip(schema.parameters, action[1:], strict=True))
        return all(_bound(literal, binding) in self._literals for literal in schema.requires)

    def _effects(self, action: Action) -> tuple[set[Literal], set[Literal]]:
        schema = self._compiled.schemas[action[0]]
        binding = dict(zip(schema.parameters, action[1:], strict=True))
        adds = {_bound(literal, binding) for literal in schema.adds}
        return adds, {_bound(literal, binding) for literal in schema.deletes} - adds

    def _changes(self, action: Action) -> bool:
        adds, deletes = self._effects(action)
        return not adds <= self._literals or bool(deletes & self._literals)

    def _applicable(self) -> Iterator[Action]:
        holding: dict[str, list[Literal]] = {}
        for literal in self._literals:
            holding.setdefault(literal[0], []).append(literal)
        for schema in self._compiled.schemas.values():
            for binding in self._matches(schema, schema.requires, {}, holding):
                yield (schema.name, *(binding[name] for name in schema.parameters))

    def _matches(
        self,
        schema: Schema,
        requires: tuple[Literal, ...],
        binding: dict[str, str],
        holding: dict[str, list[Literal]],
    ) -> Iterator[dict[str, str]]:
        """Bind parameters to what makes the required literals hold: those with fewest candidates first."""
        if not requires:
            yield from self._free(schema, binding)
            return
        chosen, rest = _narrowest(requires, binding, holding)
        for literal in holding.get(chosen[0], []):
            bound = self._unified(schema, chosen, literal, binding)
            if bound is not None:
                yield from self._matches(schema, rest, bound, holding)

    def _free(self, schema: Schema, binding: dict[str, str]) -> Iterator[dict[str, str]]:
        """Bind the parameters that no required literal names to every object of their type."""
        free = [
            (name, kind)
            for name, kind in zip(schema.parameters, schema.types, strict=True)
            if name not in binding
        ]
        if not free:
            yield binding
            return
        name, kind = free[0]
        for thing in self._compiled.objects[kind]:
            yield from self._free(schema, {**binding, name: thing})

    def _unified(
        self, schema: Schema, pattern: Literal, literal: Literal, binding: dict[str, str]
    ) -> dict[str, str] | None:
        bound = dict(binding)
        for word, thing in zip(pattern[1:], literal[1:], strict=True):
            if not word.startswith("?"):
                if word != thing:
                    return None
            elif bound.setdefault(word, thing) != thing or thing not in self._kind(schema, word):
                return None
        return bound

    def _kind(self, schema: Schema, parameter: str) -> frozenset[str]:
        return self._compiled.objects[schema.types[schema.parameters.index(parameter)]]


def _bound(literal: Literal, binding: dict[str, str]) -> Literal:
    return (literal[0], *(binding.get(word, word) for word in literal[1:]))


def _narrowest(
    requires: tuple[Literal, ...], binding: dict[str, str], holding: dict[str, list[Literal]]
) -> tuple[Literal, tuple[Literal, ...]]:
    """Choose the literal with the fewest unbound parameters, then the fewest candidates."""

    def width(literal: Literal) -> tuple[int, int]:
        unbound = sum(word.startswith("?") and word not in binding for word in literal[1:])
        return unbound, len(holding.get(literal[0], []))

    chosen = min(requires, key=width)
    at = requires.index(chosen)
    return chosen, requires[:at] + requires[at + 1 :]
