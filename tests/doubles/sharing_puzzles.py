"""Solve the shipped puzzles by trying everything: each function gives all solutions, worded as answers."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from heapq import heappop, heappush
from itertools import combinations, count, permutations, product
from typing import TypeVar

S = TypeVar("S")
Side = tuple[frozenset[int], bool]
"""Who is on the near bank, and whether the boat or the lamp is there."""
Solver = Callable[[], set[str]]
SOLVERS: dict[str, Solver] = {}


def solves(puzzle: str) -> Callable[[Solver], Solver]:
    """Name the puzzle, by its id, that a function solves."""

    def keep(solver: Solver) -> Solver:
        SOLVERS[puzzle] = solver
        return solver

    return keep


@solves("puzzle-01")
def vase() -> set[str]:
    said = {who: [who == "Bea", who == "Cleo", who != "Cleo"] for who in ("Ada", "Bea", "Cleo")}
    return {f"{who}." for who, truths in said.items() if sum(truths) == 2}


@solves("puzzle-02")
def trades() -> set[str]:
    found = set()
    for pia, quinn, rolf in product((True, False), repeat=3):  # True: a cook, who tells the truth
        said = ([pia, quinn, rolf].count(False) == 1, not pia, pia == quinn)
        if said == (pia, quinn, rolf):
            trade = {True: "cook", False: "gardener"}
            found.add(f"Pia is a {trade[pia]}, Quinn a {trade[quinn]}, Rolf a {trade[rolf]}.")
    return found


@solves("puzzle-03")
def house_number() -> set[str]:
    digits = [tuple(map(int, str(number))) for number in range(100, 1000)]
    return {f"{a}{b}{c}." for a, b, c in digits if a + b + c == 16 and b == a + c and a == 3 * c}


@solves("puzzle-04")
def ages() -> set[str]:
    pairs = [(ines, 50 - ines) for ines in range(25, 50)]
    return {f"Ines is {i} and Otto is {o}." for i, o in pairs if 3 * (o - (i - o)) == i}


@solves("puzzle-05")
def light_bag() -> set[str]:
    @cache
    def worst(bags: int) -> int:
        if bags == 1:
            return 0
        return 1 + min(max(worst(k), worst(max(1, bags - 2 * k))) for k in range(1, bags // 2 + 1))

    return {f"{worst(20)} weighings."}


def cheapest(start: S, is_goal: Callable[[S], bool], moves: Callable[[S], Iterator[tuple[S, int]]]) -> int:
    """Give the least cost of a way from the start to a goal."""
    order = count()
    waiting = [(0, next(order), start)]
    done: set[S] = set()
    while waiting:
        cost, _, state = heappop(waiting)
        if is_goal(state):
            return cost
        if state not in done:
            done.add(state)
            for after, price in moves(state):
                heappush(waiting, (cost + price, next(order), after))
    raise ValueError("no way leads to the goal")


def crossings(state: Side, people: int) -> Iterator[tuple[Side, tuple[int, ...]]]:
    near, here = state
    bank = near if here else frozenset(range(people)) - near
    for crew in (each for size in (1, 2) for each in combinations(sorted(bank), size)):
        yield (near - set(crew) if here else near | set(crew), not here), crew


@solves("puzzle-06")
def family_crossing() -> set[str]:
    weights = (80, 80, 40, 40)

    def moves(state: Side) -> Iterator[tuple[Side, int]]:
        for after, crew in crossings(state, 4):
            if sum(weights[each] for each in crew) <= 80:
                yield after, 1

    return {f"{cheapest((frozenset(range(4)), True), lambda state: not state[0], moves)} crossings."}


@solves("puzzle-07")
def tunnel() -> set[str]:
    minutes = (1, 3, 6, 8)

    def moves(state: Side) -> Iterator[tuple[Side, int]]:
        for after, crew in crossings(state, 4):
            yield after, max(minutes[each] for each in crew)

    return {f"{cheapest((frozenset(range(4)), True), lambda state: not state[0], moves)} minutes."}


@solves("puzzle-08")
def weekday() -> set[str]:
    days = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    return {f"{day}." for number, day in enumerate(days) if days[(number - 2 + 3) % 7] == "Thursday"}


@solves("puzzle-09")
def socks() -> set[str]:
    taken = product(range(7), range(9), range(11))
    unlucky = [sum(each) for each in taken if sum(number >= 2 for number in each) < 2]
    return {f"{max(unlucky) + 1} socks."}


@solves("puzzle-10")
def seats() -> set[str]:
    rows = permutations(("Anna", "Ben", "Cara", "Dov", "Eli"))
    return {
        ", ".join(row) + "."
        for row in rows
        if row.index("Cara") == row.index("Ben") + 1
        and row[2] == "Dov"
        and abs(row.index("Anna") - 2) > 1
        and row.index("Eli") > row.index("Anna")
    }


@solves("puzzle-11")
def letters() -> set[str]:
    found = set()
    for h, e, n, g, s in permutations(range(10), 5):
        hen, eggs = 100 * h + 10 * e + n, 1000 * e + 110 * g + s
        if h and e and 2 * hen == eggs:
            found.add(f"{hen} + {hen} = {eggs}.")
    return found


@solves("puzzle-12")
def jars() -> set[str]:
    def moves(state: tuple[int, int]) -> Iterator[tuple[tuple[int, int], int]]:
        large, small = state
        to_small, to_large = min(large, 4 - small), min(small, 7 - large)
        yield from (((7, small), 1), ((large, 4), 1), ((0, small), 1), ((large, 0), 1))
        yield (large - to_small, small + to_small), 1
        yield (large + to_large, small - to_large), 1

    return {f"{cheapest((0, 0), lambda state: 5 in state, moves)} steps."}


@solves("puzzle-13")
def right_angles() -> set[str]:
    apart = Fraction(11, 2)  # degrees that the minute hand gains in a minute
    times = {(90 + 180 * k) / apart for k in range(100)}
    return {f"{sum(time <= 720 for time in times)} times."}


@solves("puzzle-14")
def terrace() -> set[str]:
    stones = frozenset(product(range(6), repeat=2)) - {(0, 0), (5, 5)}

    @cache
    def covered(left: frozenset[tuple[int, int]]) -> bool:
        if not left:
            return True
        row, column = min(left)
        beside = [(row, column + 1), (row + 1, column)]
        return any(covered(left - {(row, column), other}) for other in beside if other in left)

    return {"Yes." if covered(stones) else "No."}


@solves("puzzle-15")
def handshakes() -> set[str]:
    partner = {0: 1, 1: 0, 2: 3, 3: 2, 4: 5, 5: 4}  # 0 is the host, 1 his wife
    pairs = [pair for pair in combinations(range(6), 2) if partner[pair[0]] != pair[1]]
    found = set()
    for shaken in product((0, 1), repeat=len(pairs)):
        hands = [sum(s for s, pair in zip(shaken, pairs, strict=True) if who in pair) for who in range(6)]
        if len(set(hands[1:])) == 5:
            found.add(f"{hands[1]} hands.")
    return found


@solves("puzzle-16")
def pages() -> set[str]:
    return {f"{n} pages." for n in range(1, 300) if sum(len(str(page)) for page in range(1, n + 1)) == 300}


@solves("puzzle-17")
def eggs() -> set[str]:
    return {f"{n} eggs." for n in range(1, 100) if all(n % by == 1 for by in (2, 3, 5)) and n % 7 == 0}


@solves("puzzle-18")
def houses() -> set[str]:
    return {
        f"{people[pets.index('dog')]}, in the {colours[pets.index('dog')]} house."
        for people in permutations(("Ulla", "Vito", "Wanda"))
        for colours in permutations(("blue", "red", "green"))
        for pets in permutations(("cat", "dog", "parrot"))
        if people[0] == "Ulla"
        and colours[0] == "blue"
        and colours.index("red") == pets.index("cat") + 1
        and people[pets.index("parrot")] == "Vito"
        and abs(pets.index("cat") - pets.index("dog")) > 1
    }


@solves("puzzle-19")
def helmets() -> set[str]:
    worlds = {world for world in product(("Blue", "Red"), repeat=3) if world.count("Red") <= 2}
    for speaker in (2, 1):  # each sees those before him, and says that he does not know
        worlds = {world for world in worlds if len(_colours_of(speaker, world, worlds)) > 1}
    return {f"{world[0]}." for world in worlds}


def _colours_of(who: int, world: tuple[str, ...], worlds: set[tuple[str, ...]]) -> set[str]:
    return {other[who] for other in worlds if other[:who] == world[:who]}


@solves("puzzle-20")
def window() -> set[str]:
    corners = product(range(5), range(3), range(1, 6))
    return {f"{sum(x + size <= 5 and y + size <= 3 for x, y, size in corners)} squares."}


@solves("puzzle-21")
def snail() -> set[str]:
    height = 0
    for day in ("first", "second", "third", "fourth", "fifth", "sixth"):
        height += 5
        if height >= 14:
            return {f"On the {day} day."}
        height -= 2
    return set()


@solves("puzzle-22")
def tins() -> set[str]:
    labels = ("mint", "black", "mixed")
    wrong = [held for held in permutations(labels) if all(a != b for a, b in zip(held, labels, strict=True))]
    return {
        f'From the tin labelled "{label}".' for number, label in enumerate(labels) if _tells(number, wrong)
    }


def _tells(tin: int, worlds: list[tuple[str, ...]]) -> bool:
    leaves = {"mint": {"mint"}, "black": {"black"}, "mixed": {"mint", "black"}}
    return all(sum(leaf in leaves[world[tin]] for world in worlds) <= 1 for leaf in ("mint", "black"))


@solves("puzzle-23")
def postage() -> set[str]:
    made = {4 * a + 7 * b for a in range(50) for b in range(50)}
    return {f"{max(set(range(1, 150)) - made)} ducats."}


@solves("puzzle-24")
def lamps() -> set[str]:
    return {f"{sum(sum(n % guest == 0 for guest in range(1, 31)) % 2 for n in range(1, 31))} lamps."}
