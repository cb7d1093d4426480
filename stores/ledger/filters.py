"""Filters on a record's value, in the operators that LangGraph's stores use.

`{"kind": "episodic", "score": {"$gte": 3}, "entities": {"$in": ["Max"]}}`: every field must pass. A
list-valued field passes `$eq` and `$in` when one of its items does; text in a range is a time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
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
    return tuple(_condition(path, cast(Operator, name[1:]), operand) for path, name, operand in tests)


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


def _condition(path: Path, operator: Operator, operand: Any) -> Condition:
    if operator in RANGES:
        return Condition(path, operator, _bound(operand))
    if operator == "in":
        return Condition(path, operator, _choices(operand))
    if operand is not None and not isinstance(operand, (str, int, float)):
        raise BadInput(f"A filter compares with text, a number, true, false or null, not {operand!r}.")
    return Condition(path, operator, filterable(operand))


def _choices(operand: Any) -> list[str] | list[int]:
    if isinstance(operand, (list, tuple)) and operand:
        for kind in (str, int):
            if all(type(choice) is kind for choice in operand):
                return list(operand)
    raise BadInput(f"$in takes a list of texts, or of whole numbers, not {operand!r}.")


def _bound(operand: Any) -> float | datetime:
    if isinstance(operand, (int, float)) and not isinstance(operand, bool):
        return operand
    try:
        return datetime.fromisoformat(operand)
    except (TypeError, ValueError) as invalid:
        raise BadInput(f"A range compares with a number or an ISO 8601 time, not {operand!r}.") from invalid


def passes(value: Mapping[str, Any], wanted: Sequence[Condition]) -> bool:
    """Test a record's value as the engines do."""
    return all(_passes(_at(value, condition.path), condition) for condition in wanted)


def _at(value: Any, path: Path) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return filterable(value)


def _passes(found: Any, condition: Condition) -> bool:
    operator, wanted = condition.operator, condition.value
    if operator == "ne":
        return not _passes(found, condition._replace(operator="eq"))
    if wanted is None:
        return found is None or found == []
    items = found if isinstance(found, list) else [found]
    return any(_holds(item, operator, wanted) for item in items)


def _holds(item: Any, operator: Operator, wanted: Any) -> bool:
    if operator == "in":
        return any(_holds(item, "eq", each) for each in wanted)
    if isinstance(wanted, datetime):
        moment = _moment(item)
        return moment is not None and COMPARED[operator](moment, _zoned(wanted))
    if isinstance(wanted, str) or isinstance(item, str):
        return bool(operator == "eq" and item == wanted)
    return isinstance(item, int | float) and COMPARED[operator](item, wanted)


def _moment(item: Any) -> datetime | None:
    try:
        return _zoned(datetime.fromisoformat(item)) if isinstance(item, str) else None
    except ValueError:
        return None


def _zoned(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
