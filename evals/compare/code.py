"""Work that repeats, on code: functions under tests, and pipelines whose output has to stay the same.

A task is slow Python code of one shape, on data of which one thing is told. A remedy is carried out where it
fits the shape, and changes nothing elsewhere. Comparisons of values are counted, which are the same in every
run; where the output is not the original's, the test fails. What helped helps the next of its shape, and
misleads where the data is not alike: a list is no key of a table.
"""

import heapq
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from math import inf
from random import Random
from typing import Any, NamedTuple

from mneme.evals.compare.course import Family, drawing
from mneme.evals.compare.work import AGENT, TABLES, Job, repeated

ROWS, COSTLY = 300, 20
"""Values of a list, and comparisons that a costly call takes."""
SET, COUNTS, HALVES = "a table for look-ups", "a table of counts", "a sort, then halving"
HEAP, CACHE, ONCE, LOCAL = "a heap", "a cache of the calls", "one sort", "local names"
FILTER, LEAST, CHUNKS, THREADS = "the filter first", "the least alone", "reading in chunks", "two threads"
KINDS, SPREAD = ("the values are numbers", "the values are lists"), ("values repeat", "all values differ")
DATA: Mapping[str, Mapping[str, int]] = {
    "the values are lists": {"is_list": True},
    "values repeat": {"spread": 6},
    "few rows pass the filter": {"passing": 3},
    "three rows are read": {"read": 3},
}
"""What is told of the data, and how it then differs from different numbers, all of which count."""


class Shape(NamedTuple):
    """Slow code, the two kinds of data that it runs on, and as code the remedies that fit it."""

    data: tuple[str, str]
    code: str
    remedies: Mapping[str, str]


FUNCTIONS = {
    "a look-up in a list": Shape(
        KINDS,
        "return [x for x in a if x in b]",
        {
            SET: "s = {*b}; return [x for x in a if x in s]",
            HALVES: "s = sorted(b); return [x for x in a if s[bisect_left(s, x, 0, len(s) - 1)] == x]",
        },
    ),
    "a count of each value": Shape(
        KINDS,
        "return [x for x in a if a.count(x) > 1]",
        {
            COUNTS: "s = Counter(a); return [x for x in a if s[x] > 1]",
            HALVES: "s = sorted(a); return [x for x in a if bisect_right(s, x) - bisect_left(s, x) > 1]",
        },
    ),
    "a costly call for each value": Shape(
        SPREAD,
        "return [costly(x) for x in a]",
        {CACHE: "known = cache(costly); return [known(x) for x in a]"},
    ),
    "the least value, taken out again and again": Shape(
        KINDS,
        "s = [*a]; return [s.pop(s.index(min(s))) for _ in a]",
        {HEAP: "s = [*a]; heapify(s); return [heappop(s) for _ in a]", ONCE: "return sorted(a)"},
    ),
}
PIPELINES = {
    "a join, then a filter": Shape(
        ("few rows pass the filter", "all rows pass the filter"),
        "joined = [x for x in a for y in b if x == y]; return [x for x in joined if x.number < passing]",
        {
            FILTER: "s = [x for x in a if x.number < passing]; return [x for x in s for y in b if x == y]",
            SET: "s = {*b}; return [x for x in a if x in s and x.number < passing]",
        },
    ),
    "a costly stage, then a filter": Shape(
        ("few rows pass the filter", "all rows pass the filter"),
        "made = [(x, costly(x)) for x in a]; return [each for each in made if each[0].number < passing]",
        {FILTER: "return [(x, costly(x)) for x in a if x.number < passing]"},
    ),
    "a sort, of which the first rows are read": Shape(
        ("three rows are read", "all rows are read"),
        "return sorted(a)[:read]",
        {LEAST: "return nsmallest(read, a)"},
    ),
    "a search of the whole file for each key": Shape(
        KINDS,
        "return [x for y in b for x in a if x == y]",
        {
            SET: "s = {x: x for x in a}; return [s[y] for y in b if y in s]",
            HALVES: "s = sorted(a); return [y for y in b if s[bisect_left(s, y, 0, len(s) - 1)] == y]",
        },
    ),
}


class Value:
    """A number whose comparisons are counted; one that is a list is no key."""

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
    """Take a while."""
    Value.compared += COSTLY
    return value.number % 7


@cache
def ran(code: str, data: str, seed: str) -> tuple[Any, int]:
    """Return what code returns on the data of a seed, and the comparisons that it takes."""
    chance, told = drawing(seed), {"is_list": 0, "spread": 0, "passing": ROWS, "read": ROWS}
    told |= DATA.get(data, {})
    few = range(told["spread"] or ROWS)
    numbers = chance.choices(few, k=ROWS) if told["spread"] else chance.sample(few, ROWS)
    a = [Value(number, told["is_list"]) for number in numbers]
    b = [Value(number, told["is_list"]) for number in chance.sample(range(ROWS), ROWS)]
    tools = (bisect_left, bisect_right, cache, costly, Counter, heapq.heapify, heapq.heappop)
    names: dict[str, Any] = {each.__name__: each for each in (*tools, heapq.nsmallest)} | told
    exec(f"def solve(a, b): {code}", names)  # noqa: S102  (code of this module)
    Value.compared = 0
    return names["solve"](a, b), Value.compared


def cost(shape: Shape, data: str, seed: str, remedy: str = "") -> float:
    """Count the comparisons after a remedy; where the test fails they are infinitely many."""
    right, _ = ran(shape.code, data, seed)
    try:
        made, compared = ran(shape.remedies.get(remedy, shape.code), data, seed)
    except TypeError:
        return inf
    return compared if made == right else inf


def _jobs(shapes: Mapping[str, Shape], noun: str, seed: int, chance: Random) -> Iterator[Job]:
    """Draw tasks; one shape on one name has the same data throughout a course."""
    while True:
        name, said = chance.choice(TABLES), chance.choice([*shapes])
        shape, key = shapes[said], f"{noun} {seed} {name} {said}"
        data = drawing(key).choice(shape.data)
        task = f"A {noun} of the {name} is slow. It has {said} ({data}): def solve(a, b): {shape.code}"
        yield Job(task, said, data, name, partial(cost, shape, data, key))


def _family(name: str, noun: str, shapes: Mapping[str, Shape], idle: Sequence[str]) -> Family:
    remedies = (*dict.fromkeys([*(each for shape in shapes.values() for each in shape.remedies), *idle]),)
    return Family(name, partial(repeated, name, partial(_jobs, shapes, noun), remedies), (AGENT,))


CODE = (
    _family("functions", "function", FUNCTIONS, (LOCAL, CHUNKS, THREADS)),
    _family("pipelines", "pipeline", PIPELINES, (CACHE, CHUNKS, THREADS)),
)
