"""Work that repeats, on code: functions under tests, and pipelines whose output has to stay the same.

A task is slow Python code of one shape, with one known fact about its data (`code.yaml`). A remedy is applied
where it fits the shape, and changes nothing elsewhere. Comparisons of values are counted, which are the same
in every run; where the output is not the original's, the test fails. A remedy that helped helps the next task
of that shape, and misleads where the data differs: a list cannot be a dictionary key.
"""

import heapq
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache, partial
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import yaml
from pydantic import BaseModel

from mneme.evals.compare.memory import Family, drawing
from mneme.evals.compare.work import AGENT, TABLE_NAMES, Job, repeated

ROWS, COSTLY = 300, 20
"""Length of a list, and number of comparisons that a costly call counts."""


class Shape(BaseModel):
    """Slow code, the two kinds of data that it runs on, and as code the remedies that fit it."""

    data: tuple[str, str]
    code: str
    remedies: Mapping[str, str]


class Kind(BaseModel):
    """Shapes of functions, or of pipelines, and remedies that fit none of them."""

    noun: str
    idle: list[str]
    shapes: Mapping[str, Shape]

    @property
    def remedies(self) -> tuple[str, ...]:
        known = [each for shape in self.shapes.values() for each in shape.remedies]
        return tuple(dict.fromkeys([*known, *self.idle]))


class Code(BaseModel):
    """Content of `code.yaml`."""

    data: Mapping[str, Mapping[str, int]]
    families: Mapping[str, Kind]


CODE = Code.model_validate(yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")))


class Value:
    """A number that counts its comparisons; one that is a list cannot be a key."""

    compared = 0

    def __init__(self, number: int, is_list: int) -> None:
        self.number, self.is_list = number, is_list

    def __eq__(self, other: object) -> bool:
        Value.compared += 1
        return isinstance(other, Value) and self.number == other.number

    def __lt__(self, other: "Value") -> bool:
        Value.compared += 1
        return self.number < other.number

    def __hash__(self) -> int:
        if self.is_list:
            raise TypeError("unhashable type: 'list'")
        Value.compared += 1
        return self.number


def costly(value: Value) -> int:
    """Count as COSTLY comparisons."""
    Value.compared += COSTLY
    return value.number % 7


@cache
def ran(code: str, data: str, seed: str) -> tuple[Any, int]:
    """Return the result of code on the data of a seed, and its number of comparisons."""
    chance, told = drawing(seed), {"is_list": 0, "spread": 0, "passing": ROWS, "read": ROWS}
    told |= CODE.data.get(data, {})
    few = range(told["spread"] or ROWS)
    numbers = chance.choices(few, k=ROWS) if told["spread"] else chance.sample(few, ROWS)
    a, b = (
        [Value(number, told["is_list"]) for number in each]
        for each in (numbers, chance.sample(range(ROWS), ROWS))
    )
    tools = (bisect_left, bisect_right, cache, costly, Counter, heapq.heapify, heapq.heappop, heapq.nsmallest)
    names: dict[str, Any] = {each.__name__: each for each in tools} | told
    exec(f"def solve(a, b): {code}", names)  # noqa: S102  (code of this package)
    Value.compared = 0  # the counter is the class's: it has the last run's comparisons
    return names["solve"](a, b), Value.compared


def cost(shape: Shape, data: str, seed: str, remedy: str = "") -> float:
    """Return the comparisons after a remedy; infinite if the test fails."""
    right, _ = ran(shape.code, data, seed)
    try:
        made, compared = ran(shape.remedies.get(remedy, shape.code), data, seed)
    except TypeError:  # a list cannot be a key: the remedy does not fit this data
        return inf
    return compared if made == right else inf


def _jobs(kind: Kind, seed: int, chance: Random) -> Iterator[Job]:
    """Draw tasks; one shape on one name has the same data throughout a course."""
    while True:
        name, said = chance.choice(TABLE_NAMES), chance.choice([*kind.shapes])
        shape, key = kind.shapes[said], f"{kind.noun} {seed} {name} {said}"
        data = drawing(key).choice(shape.data)  # drawn by name, so the same in the whole course
        task = f"A {kind.noun} of the {name} is slow. It has {said} ({data}): def solve(a, b): {shape.code}"
        yield Job(task, said, data, name, partial(cost, shape, data, key))


ON_CODE = [
    Family(name, partial(repeated, name, partial(_jobs, kind), kind.remedies), (AGENT,))
    for name, kind in CODE.families.items()
]
