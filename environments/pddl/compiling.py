"""PDDL texts, parsed by unified-planning, turned into plain tuples that a simulator runs fast.

Typed STRIPS: preconditions and goals are conjunctions of positive literals, effects add or delete. What
is more than that (numbers, quantifiers, conditions, negation) is refused by name. PDDL tells no capitals
from small letters, so all names are small here.
"""

import re
import warnings
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock
from typing import Any

from pyparsing import ParseBaseException
from pyparsing.warnings import PyparsingDeprecationWarning
from unified_planning.exceptions import UPException
from unified_planning.io import PDDLReader

from mneme.errors import BadInput

Literal = tuple[str, ...]
"""A predicate's name and its arguments: objects or, in an action, parameters with their `?`."""
STRIPS = "Give a typed STRIPS problem: conjunctions of positive literals, plain adding and deleting effects."
COMMENT = re.compile(r";[^\n]*")
DEFINED, WANTED = re.compile(r"\(\s*domain\s+([^\s()]+)"), re.compile(r"\(\s*:domain\s+([^\s()]+)")
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


@dataclass(frozen=True)
class Compiled:
    """A problem as tuples: each object's own type, all objects of a type, actions by name, start and goal."""

    domain: str
    kinds: dict[str, str] = field(hash=False)
    objects: dict[str, frozenset[str]] = field(hash=False)
    schemas: dict[str, Schema] = field(hash=False)
    initial: frozenset[Literal]
    goal: tuple[Literal, ...]


@lru_cache(maxsize=512)
def compile_problem(domain_pddl: str, problem_pddl: str) -> Compiled:
    """Parse and check two texts. Raises BadInput naming the domain or the problem, and the place."""
    domain, problem = domain_pddl.lower(), problem_pddl.lower()
    return _compiled(_domain_name(domain, problem), _parse(domain, problem))


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


def _parse(domain: str, problem: str) -> Any:
    try:
        return _read(domain, problem)
    except UnreadableError as error:
        raise BadInput(f"{_culprit(domain)}: {error}", STRIPS) from error


class UnreadableError(ValueError):
    """What unified-planning found, in words, with the place where it says one."""


def _read(domain: str, problem: str | None) -> Any:
    with _parsing, warnings.catch_warnings():
        warnings.simplefilter("ignore", PyparsingDeprecationWarning)
        try:
            return PDDLReader().parse_problem_string(domain, problem)
        except ParseBaseException as error:
            raise UnreadableError(f"line {error.lineno}, column {error.column}: {error.msg}.") from error
        except KeyError as error:
            raise UnreadableError(f"{error} is used and not declared.") from error
        except (SyntaxError, UPException, ValueError, TypeError, AttributeError, IndexError) as error:
            raise UnreadableError(f"{' '.join(str(error).split())}") from error
        except AssertionError as error:
            raise UnreadableError(f"{' '.join(str(error).split()) or 'it is no well-formed PDDL'}") from error


def _culprit(domain: str) -> str:
    """Say which of two texts cannot be read: the domain where it fails alone."""
    try:
        _read(domain, None)
    except UnreadableError:
        return "The domain"
    return "The problem"


def _compiled(domain: str, parsed: Any) -> Compiled:
    schemas = [_schema(action) for action in parsed.actions]
    goal = [literal for wanted in parsed.goals for literal in _conjunction(wanted, "the goal")]
    if not goal:
        raise BadInput("The problem: it has no goal.", "Say what is wanted: (:goal (and …)).")
    if not schemas:
        raise BadInput("The domain: it has no actions.", STRIPS)
    kinds = {thing.name: thing.type.name for thing in parsed.all_objects}
    objects = {kind.name: _names(parsed.objects(kind)) for kind in parsed.user_types}
    return Compiled(
        domain=domain,
        kinds=kinds,
        objects=objects,
        schemas={schema.name: schema for schema in schemas},
        initial=frozenset(_initial(parsed)),
        goal=tuple(dict.fromkeys(goal)),
    )


def _names(things: Any) -> frozenset[str]:
    return frozenset(thing.name for thing in things)


def _initial(parsed: Any) -> list[Literal]:
    explicit = parsed.explicit_initial_values
    return [_literal(fluent, "the initial state") for fluent, value in explicit.items() if value.is_true()]


def _schema(action: Any) -> Schema:
    where = f"the action {action.name}"
    if not hasattr(action, "preconditions") or not hasattr(action, "effects") or hasattr(action, "duration"):
        raise BadInput(f"The domain: {where} is no plain action.", STRIPS)
    changes = [(_literal(effect.fluent, where), _truth(effect, where)) for effect in action.effects]
    return Schema(
        name=action.name,
        parameters=tuple(f"?{parameter.name}" for parameter in action.parameters),
        types=tuple(parameter.type.name for parameter in action.parameters),
        requires=tuple(
            literal for condition in action.preconditions for literal in _conjunction(condition, where)
        ),
        adds=tuple(literal for literal, truth in changes if truth),
        deletes=tuple(literal for literal, truth in changes if not truth),
    )


def _truth(effect: Any, where: str) -> bool:
    plain = effect.is_assignment() and not effect.is_conditional() and not effect.is_forall()
    if not plain or not effect.value.is_bool_constant():
        raise BadInput(f"The domain: {where} has the effect {effect}.", STRIPS)
    return bool(effect.value.is_true())


def _conjunction(formula: Any, where: str) -> list[Literal]:
    if formula.is_true():
        return []
    if formula.is_and():
        return [literal for part in formula.args for literal in _conjunction(part, where)]
    return [_literal(formula, where)]


def _literal(formula: Any, where: str) -> Literal:
    if not formula.is_fluent_exp() or not formula.type.is_bool_type():
        raise BadInput(f"In {where}: {formula} is no positive literal.", STRIPS)
    return (str(formula.fluent().name), *(_argument(part, where) for part in formula.args))


def _argument(part: Any, where: str) -> str:
    if part.is_parameter_exp():
        return f"?{part.parameter().name}"
    if part.is_object_exp():
        return str(part.object().name)
    raise BadInput(f"In {where}: {part} is neither an object nor a parameter.", STRIPS)
