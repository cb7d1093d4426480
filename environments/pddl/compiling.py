"""PDDL texts, parsed by unified-planning, turned into plain tuples that a simulator runs fast.

Typed STRIPS: preconditions and goals are conjunctions of positive literals, effects add or delete. Anything
else (numbers, quantifiers, conditions, negation) is refused by name. PDDL ignores case, so all names are in
lower case here.
"""

import re
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from threading import Lock
from typing import Any

from mneme.core.errors import BadInput, needs

Literal = tuple[str, ...]
"""A predicate's name and its arguments: objects or, in an action, parameters with their `?`."""
STRIPS = "Give a typed STRIPS problem: conjunctions of positive literals, plain adding and deleting effects."
COMMENT = re.compile(r";[^\n]*")
DEFINED, WANTED = re.compile(r"\(\s*domain\s+([^\s()]+)"), re.compile(r"\(\s*:domain\s+([^\s()]+)")
PREDICATES = re.compile(r"\(\s*:predicates\b(?:[^()]|\([^()]*\))*\)")
ACTION_BLOCK, FUNCTIONS = re.compile(r"\(\s*:action\b"), re.compile(r"\(\s*:functions\b")
CONSTANTS = re.compile(r"\(\s*:constants\b[^()]*\)")
TYPE = re.compile(r"\s-\s+[^\s()]+")
OBJECTS_BLOCK = re.compile(r"(\(\s*:objects\b)([^()]*)\)")
TYPED_OBJECTS = re.compile(r"([^()]*?)-\s+([^\s()]+)")
EXCEPTION = re.compile(r"UP\w+\((['\"])(.*?)\1\)")
RAISED = SyntaxError, ValueError, TypeError, AttributeError, IndexError, AssertionError, RecursionError
"""Exceptions of unified-planning for unusable texts, beside its own exceptions and pyparsing's."""
_parsing = Lock()
"""unified-planning's grammar is one object of the process; `catch_warnings` is not thread-safe either."""


@dataclass(frozen=True)
class Schema:
    """An action before its parameters are bound."""

    name: str
    parameters: tuple[str, ...]
    types: tuple[str, ...]
    requires: tuple[Literal, ...]
    adds: tuple[Literal, ...]
    deletes: tuple[Literal, ...]

    def ground(self, things: Sequence[str]) -> "GroundAction":
        """Return the action with objects in place of its parameters."""
        binding = dict(zip(self.parameters, things, strict=True))
        requires, adds, deletes = (
            frozenset(_bound(each, binding) for each in part)
            for part in (self.requires, self.adds, self.deletes)
        )
        # PDDL deletes before it adds.
        return GroundAction((self.name, *things), requires, adds, deletes - adds)

    @cached_property
    def decided(self) -> list[list[Literal]]:
        """Return the preconditions by the last parameter they use; first those without parameters."""
        place = {name: number for number, name in enumerate(self.parameters, start=1)}
        last = [max(place.get(word, 0) for word in literal) for literal in self.requires]
        return [
            [each for each, at in zip(self.requires, last, strict=True) if at == number]
            for number in range(len(self.parameters) + 1)
        ]

    def instances(
        self, objects: Mapping[str, Collection[str]], literals: Set[Literal], things: tuple[str, ...] = ()
    ) -> "Iterator[GroundAction]":
        """Yield the applicable actions: parameters are bound one after another while preconditions hold."""
        binding = dict(zip(self.parameters, things, strict=False))  # of the parameters bound so far
        if not all(_bound(each, binding) in literals for each in self.decided[len(things)]):
            return
        if len(things) == len(self.parameters):
            yield self.ground(things)
            return
        for thing in objects[self.types[len(things)]]:
            yield from self.instances(objects, literals, (*things, thing))


@dataclass(frozen=True)
class GroundAction:
    """An action on objects: what it requires, makes true and makes untrue."""

    words: tuple[str, ...]
    requires: frozenset[Literal]
    adds: frozenset[Literal]
    deletes: frozenset[Literal]

    def after(self, literals: Set[Literal]) -> frozenset[Literal]:
        """Return the literals that hold after the action."""
        return frozenset((literals - self.deletes) | self.adds)

    def __str__(self) -> str:
        return " ".join(self.words)


def _bound(literal: Literal, binding: Mapping[str, str]) -> Literal:
    return tuple(binding.get(word, word) for word in literal)


@dataclass(frozen=True)
class CompiledProblem:
    """A problem as tuples: each object's own type, all objects of a type, actions by name, start and goal."""

    domain: str
    kinds: dict[str, str] = field(hash=False)
    objects: dict[str, frozenset[str]] = field(hash=False)
    schemas: dict[str, Schema] = field(hash=False)
    initial: frozenset[Literal]
    goal: tuple[Literal, ...]


@lru_cache(maxsize=512)  # a problem is text in a checkpoint, and its tuples are asked for at every step
def compile_problem(domain_pddl: str, problem_pddl: str) -> CompiledProblem:
    """Parse and check two texts. Raises BadInput naming the domain or the problem, and the place."""
    domain, problem = domain_pddl.lower(), problem_pddl.lower()
    name = _domain_name(domain, problem)
    declared, constants, actions = _domain(domain)
    try:
        parsed = _read(declared, _without_constants(problem, constants))
    except UnreadableError as error:
        raise BadInput(f"The problem: {error}", STRIPS) from error
    return _compiled(name, parsed, actions or [_schema(action) for action in parsed.actions])


def _domain_name(domain: str, problem: str) -> str:
    defined, wanted = DEFINED.search(COMMENT.sub("", domain)), WANTED.search(COMMENT.sub("", problem))
    if defined is None:
        raise BadInput("The domain: it has no (define (domain NAME) …).", STRIPS)
    if wanted is None:
        raise BadInput("The problem: it names no (:domain NAME).", STRIPS)
    if defined[1] != wanted[1]:
        raise BadInput(
            f"The problem: it is of the domain {wanted[1]}, and the domain file defines {defined[1]}.",
            "Give the problem with its own domain file.",
        )
    return defined[1]


@lru_cache(maxsize=64)
def _domain(domain: str) -> tuple[str, dict[str, str], list[Schema]]:
    """Return the header for reading problems, the constants' types, and the actions of a domain.

    Parsing actions takes most of the time, so problems are read with the part before them. If there are
    functions, a problem decides which effects are costs: it is read with the whole domain.
    """
    mended, parsed = _readable(domain)
    constants = {thing.name: thing.type.name for thing in parsed.all_objects}
    if FUNCTIONS.search(mended) or not parsed.actions:
        return mended, constants, []
    # The closing parenthesis of `define` is cut off with the actions.
    declared = ACTION_BLOCK.split(COMMENT.sub("", mended), maxsplit=1)[0]
    return f"{declared})", constants, [_schema(action) for action in parsed.actions]


def _readable(domain: str) -> tuple[str, Any]:
    """Return a domain that parses, and what it was parsed to.

    AgentBoard's tyreworld, as published, declares constants after predicates, and a predicate with other
    types than its own actions use; its parser does not mind. So where a domain does not parse, constants
    are moved to their place and the predicates' types left out; the actions' own types still bind.
    """
    try:
        return domain, _read(domain, None)
    except UnreadableError as error:
        constants, predicates = CONSTANTS.search(domain), PREDICATES.search(domain)
        mended = domain
        if constants is not None and predicates is not None and predicates.start() < constants.start():
            without = domain.replace(constants[0], "", 1)
            mended = f"{without[: predicates.start()]}{constants[0]}{without[predicates.start() :]}"
        mended = PREDICATES.sub(lambda each: TYPE.sub(lambda kind: " " * len(kind[0]), each[0]), mended)
        try:
            return mended, _read(mended, None)
        except UnreadableError:
            raise BadInput(f"The domain: {error}", STRIPS) from error


def _without_constants(problem: str, constants: dict[str, str]) -> str:
    """Blank out objects that repeat constants of the domain, as in AgentBoard's tyreworld."""

    def blanked(group: re.Match[str]) -> str:
        names, kind = group[1], group[2]
        again = [name for name in names.split() if constants.get(name) == kind]
        # Blanked, not cut out: what follows keeps its column for errors.
        left = re.sub(r"[^\s()]+", lambda name: " " * len(name[0]) if name[0] in again else name[0], names)
        return f"{left}- {kind}" if left.strip() else " " * len(group[0])

    return OBJECTS_BLOCK.sub(lambda block: block[1] + TYPED_OBJECTS.sub(blanked, block[2]) + ")", problem)


class UnreadableError(ValueError):
    """An error of unified-planning in words, with the position if it gives one."""


@cache
def _reader() -> Any:
    """Return unified-planning's reader, made once: its grammar takes as long as a small problem."""
    from unified_planning.io import PDDLReader  # noqa: PLC0415  (an extra)

    return PDDLReader()


def _read(domain: str, problem: str | None) -> Any:
    with needs("Planning in PDDL", "pddl"):
        from pyparsing import ParseBaseException  # noqa: PLC0415  (an extra)
        from pyparsing.warnings import PyparsingDeprecationWarning  # noqa: PLC0415
        from unified_planning.exceptions import UPException  # noqa: PLC0415

    with _parsing, warnings.catch_warnings():
        warnings.simplefilter("ignore", PyparsingDeprecationWarning)
        try:
            return _reader().parse_problem_string(domain, problem)
        except ParseBaseException as error:
            raise UnreadableError(f"line {error.lineno}, column {error.column}: {error.msg}.") from error
        except KeyError as error:
            raise UnreadableError(f"{error} is used and not declared.") from error
        except (UPException, *RAISED) as error:
            # without the names of unified-planning's own exceptions and its advice to programmers
            said = EXCEPTION.sub(r"\2", " ".join(str(error).split()))
            plain = said.split(" Different elements of a problem", 1)[0]
            raise UnreadableError(plain or "it is not well-formed PDDL.") from error


def _compiled(domain: str, parsed: Any, schemas: Sequence[Schema]) -> CompiledProblem:
    goal = [literal for wanted in parsed.goals for literal in _conjunction(wanted, "The problem: the goal")]
    if not goal:
        raise BadInput("The problem: it has no goal.", "Say what is wanted: (:goal (and …)).")
    if not schemas:
        raise BadInput("The domain: it has no actions.", STRIPS)
    kinds = {thing.name: thing.type.name for thing in parsed.all_objects}
    known = parsed.user_types
    objects = {kind.name: frozenset(each.name for each in parsed.objects(kind)) for kind in known}
    initial = [fluent for fluent, value in parsed.explicit_initial_values.items() if value.is_true()]
    return CompiledProblem(
        domain=domain,
        kinds=kinds,
        objects=objects,
        schemas={schema.name: schema for schema in schemas},
        initial=frozenset(_literal(fluent, "The problem: the start") for fluent in initial),
        goal=tuple(dict.fromkeys(goal)),
    )


def _schema(action: Any) -> Schema:
    where = f"The domain: the action {action.name}"
    if not hasattr(action, "preconditions") or not hasattr(action, "effects") or hasattr(action, "duration"):
        raise BadInput(f"{where} is not a plain action.", STRIPS)
    changes = []
    for effect in action.effects:
        plain = effect.is_assignment() and not effect.is_conditional() and not effect.is_forall()
        if not plain or not effect.value.is_bool_constant():
            raise BadInput(f"{where} has the effect {effect}.", STRIPS)
        changes.append((_literal(effect.fluent, where), effect.value.is_true()))
    needed = [literal for condition in action.preconditions for literal in _conjunction(condition, where)]
    # unified-planning's parameters have no question mark, which tells them from objects here.
    return Schema(
        name=action.name,
        parameters=tuple(f"?{parameter.name}" for parameter in action.parameters),
        types=tuple(parameter.type.name for parameter in action.parameters),
        requires=tuple(needed),
        adds=tuple(literal for literal, truth in changes if truth),
        deletes=tuple(literal for literal, truth in changes if not truth),
    )


def _conjunction(formula: Any, where: str) -> list[Literal]:
    if formula.is_true():
        return []
    if formula.is_and():
        return [literal for part in formula.args for literal in _conjunction(part, where)]
    return [_literal(formula, where)]


def _literal(formula: Any, where: str) -> Literal:
    if not formula.is_fluent_exp() or not formula.type.is_bool_type():
        raise BadInput(f"{where} has {formula}, which is not a positive literal.", STRIPS)
    words = [str(formula.fluent().name)]
    for part in formula.args:
        if not part.is_parameter_exp() and not part.is_object_exp():
            raise BadInput(f"{where} has {part}, which is neither an object nor a parameter.", STRIPS)
        words.append(f"?{part.parameter().name}" if part.is_parameter_exp() else str(part.object().name))
    return tuple(words)
