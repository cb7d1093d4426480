"""Filters on a record's value, in the operators that LangGraph's stores use.

`{"kind": "episodic", "score": {"$gte": 3}, "entities": {"$in": ["Max"]}}`: every field must pass. A
list-valued field passes `$eq` and `$in` when one of its items does; text in a range is a time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from operator import eq, ge, gt, le, lt
from typing import Any, cast, get_args

from mneme.core.errors import BadInput
from mneme.stores.ledger.query import Condition, Operator, filterable

OPERATORS = tuple(f"${name}" for name in get_args(Operator))
Path = tuple[str, ...]
Test = tuple[Path, str, Any]
RANGES = ("gt", "gte", "lt", "lte")
COMPARED: dict[str, Callable[[Any, Any], bool]] = {"eq": eq, "gt": gt, "gte": ge, "lt": lt, "lte": le}


def conditions(filter: Mapping[str, Any] | None) -> tuple[Condition, ...]:
    """Translate a filter, or say what the engine cannot test."""
    tests = tests_of(filter or {}, OPERATORS)
    return tuple(
        Condition(path, cast(Operator, name[1:]), _operand(name, given)) for path, name, given in tests
    )


def tests_of(filter: Mapping[str, Any], operators: Sequence[str], path: Path = ()) -> Iterator[Test]:
    """Yield the path, the operator and the operand of each test in a filter. Raises BadInput."""
    for name, wanted in filter.items():
        if not isinstance(name, str) or '"' in name or not name or name.startswith("$"):
            raise BadInput(f"A filter cannot name the field {name!r}.")
        if not isinstance(wanted, Mapping):
            yield (*path, name), "$eq", wanted
        elif not any(str(each).startswith("$") for each in wanted):
            yield from tests_of(wanted, operators, (*path, name))
        else:
            for operator, operand in wanted.items():
                if operator not in operators:
                    raise BadInput(f"Unknown operator {operator!r}; there are {', '.join(operators)}.")
                yield (*path, name), operator, operand


def _operand(operator: str, given: Any) -> Any:
    """Return what values are compared with, as the engines take it."""
    if operator == "$in":
        expected = "$in takes a list of texts, or of whole numbers"
        if isinstance(given, list | tuple) and {*map(type, given)} in ({str}, {int}):
            return [*given]
    elif operator[1:] in RANGES:
        expected = "A range compares with a number or an ISO 8601 time"
        if isinstance(given, int | float) and not isinstance(given, bool):
            return given
        with suppress(TypeError, ValueError):
            return datetime.fromisoformat(given)
    else:
        expected = "A filter compares with text, a number, true, false or null"
        if given is None or isinstance(given, str | int | float):
            return filterable(given)
    raise BadInput(f"{expected}, not {given!r}.")


def passes(value: Mapping[str, Any], wanted: Sequence[Condition]) -> bool:
    """Test a record's value as the engines do."""
    return all(_passes(value, condition) for condition in wanted)


def _passes(value: Any, condition: Condition) -> bool:
    path, operator, wanted = condition
    if operator == "ne":
        return not _passes(value, condition._replace(operator="eq"))
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    found = filterable(value)
    if wanted is None:
        return found is None or found == []
    return any(_holds(item, operator, wanted) for item in (found if isinstance(found, list) else [found]))


def _holds(item: Any, operator: Operator, wanted: Any) -> bool:
    if operator == "in":
        return any(_holds(item, "eq", each) for each in wanted)
    if isinstance(wanted, datetime):
        try:
            times = [datetime.fromisoformat(item), wanted]
        except (TypeError, ValueError):
            return False
        return COMPARED[operator](*(each if each.tzinfo else each.replace(tzinfo=UTC) for each in times))
    if isinstance(wanted, str) or isinstance(item, str):
        return bool(operator == "eq" and item == wanted)
    return isinstance(item, int | float) and COMPARED[operator](item, wanted)
