"""Generate problems from a seed, for the four domains that AgentBoard uses.

The shapes are AgentBoard's (two rooms and 4 to 12 balls; 3 to 6 blocks; one to three drinks; one to four
hubs), the instances are not: none of its files is copied. Every problem can be solved, though not always
within 30 steps: a gripper with 12 balls cannot.
"""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Literal, get_args

import yaml

from mneme.core.errors import BadInput
from mneme.environments.pddl.loading import make
from mneme.environments.pddl.world import PddlWorld, Problem
from mneme.environments.turns import Turn

Domain = Literal["gripper", "blockworld", "barman", "tyreworld"]
DOMAINS: tuple[Domain, ...] = get_args(Domain)
SIZES: dict[Domain, tuple[int, int]] = {
    "gripper": (4, 12),
    "blockworld": (3, 6),
    "barman": (1, 3),
    "tyreworld": (1, 4),
}
"""Minimum and maximum number of balls, blocks, drinks or hubs that is drawn; a given size may be larger."""
DOMAIN_SHARES: dict[Domain, int] = {"gripper": 2, "blockworld": 1, "barman": 2, "tyreworld": 1}
"""Problems of each domain in a suite, as in AgentBoard: 20, 10, 20 and 10."""
DOMAINS_FOLDER = Path(__file__).resolve().parent / "domains"


def generate(domain: Domain, seed: int, size: int | None = None) -> Problem:
    """Draw a problem; the same seed and size give the same one. Raises BadInput for an unknown domain."""
    if domain not in DOMAINS:
        raise BadInput(f"There is no domain {domain!r}.", f"There are: {', '.join(DOMAINS)}.")
    random = Random(f"{domain} {seed}")  # noqa: S311 - a task, no secret
    least, most = SIZES[domain]
    drawn = random.randint(least, most)  # also where a size is given, so that the rest is drawn alike
    chosen = drawn if size is None else size
    if chosen < least or chosen > 99:
        raise BadInput(f"There is no {domain} problem of size {chosen}.", f"Give {least} to 99.")
    return problem_of(domain, f"seed{seed}-size{chosen}", PROBLEM_GENERATORS[domain](random, chosen))


def problem_of(domain: Domain, name: str, drawn: "Drawn") -> Problem:
    """Return a problem of one of our domains as PDDL texts."""
    objects, initial, goal = drawn
    declared = (DOMAINS_FOLDER / f"{domain}.pddl").read_text(encoding="utf-8")
    start, wanted = ("\n    ".join(f"({literal})" for literal in literals) for literals in (initial, goal))
    # The name inside a file may be another than the file's, such as gripper-strips.
    title = declared.split("(domain ", 1)[1].split(")", 1)[0]
    text = (
        f"(define (problem {domain}-{name})\n  (:domain {title})\n  (:objects {objects})\n"
        f"  (:init\n    {start})\n  (:goal (and\n    {wanted})))\n"
    )
    return make(declared, text, name, (f"{domain}.pddl", f"{domain} {name}"))


def generate_suite(problems: int, seed: int) -> list[Problem]:
    """Draw a suite with AgentBoard's shares of the domains: 60 are 20 gripper, 10 blockworld and so on."""
    order = [domain for domain, share in DOMAIN_SHARES.items() for _ in range(share)]
    drawn = [order[number % len(order)] for number in range(problems)]
    counts = {domain: drawn.count(domain) for domain in DOMAINS}
    # A thousand problems of a domain before two seeds share one.
    return [generate(each, seed * 1000 + number) for each, count in counts.items() for number in range(count)]


Drawn = tuple[str, list[str], list[str]]
"""Objects with their types, literals of the start, literals of the goal."""


def _gripper(random: Random, size: int) -> Drawn:
    """Put balls into two rooms; the goal is each ball in the other room."""
    balls = [f"ball{number}" for number in range(1, size + 1)]
    rooms, grippers = ["rooma", "roomb"], ["left", "right"]
    main = random.choice(rooms)
    # In half of AgentBoard's problems all balls start in one room.
    strays = set(random.sample(balls, random.choice([0, 0, 1, size // 4])))
    at = {ball: _other(rooms, main) if ball in strays else main for ball in balls}
    initial = [f"room {room}" for room in rooms] + [f"ball {ball}" for ball in balls]
    initial += [f"gripper {hand}" for hand in grippers] + [f"free {hand}" for hand in grippers]
    initial += [f"at {ball} {room}" for ball, room in at.items()] + [f"at-robby {random.choice(rooms)}"]
    goal = [f"at {ball} {_other(rooms, room)}" for ball, room in at.items()]
    return " ".join([*rooms, *balls, *grippers]), initial, goal


def _other(pair: Sequence[str], one: str) -> str:
    return pair[1] if one == pair[0] else pair[0]


def _towers(random: Random, blocks: Sequence[str]) -> list[list[str]]:
    """Pile blocks at random: each begins a tower or goes onto one."""
    towers: list[list[str]] = []
    for block in random.sample(blocks, len(blocks)):
        at = random.randint(0, len(towers))
        towers[at : at + 1] = [[*towers[at], block]] if at < len(towers) else [[block]]
    return towers


def _upon(towers: Sequence[Sequence[str]]) -> list[str]:
    return [f"on {upper} {lower}" for tower in towers for lower, upper in pairwise(tower)]


def _blockworld(random: Random, size: int) -> Drawn:
    """Draw two arrangements; the goal is the `on` literals that only the second one has."""
    blocks = [f"b{number}" for number in range(1, size + 1)]
    start = _towers(random, blocks)
    wanted: list[str] = []
    while len(wanted) < 2:  # two arrangements may be nearly the same
        wanted = [literal for literal in _upon(_towers(random, blocks)) if literal not in _upon(start)]
    initial = ["arm-empty", *_upon(start)]
    initial += [f"on-table {tower[0]}" for tower in start] + [f"clear {tower[-1]}" for tower in start]
    return " ".join(blocks), initial, random.sample(wanted, min(len(wanted), random.choice([2, 3])))


def _barman(random: Random, size: int) -> Drawn:
    """Draw recipes of two ingredients; shots are wanted with a drink each, a cocktail among them."""
    ingredients, dispensers = _numbered("ingredient", 3), _numbered("dispenser", 3)
    cocktails = _numbered("cocktail", random.randint(max(3, size), max(3, size) + 2))
    shots = _numbered("shot", size + random.randint(1, 3))
    levels = ["l0", "l1", "l2"]
    initial = ["ontable shaker1", "clean shaker1", "empty shaker1", "handempty left", "handempty right"]
    initial += [f"{fact} {shot}" for fact in ("ontable", "clean", "empty") for shot in shots]
    initial += ["shaker-empty-level shaker1 l0", "shaker-level shaker1 l0", "next l0 l1", "next l1 l2"]
    initial += [f"dispenses {d} {i}" for d, i in zip(dispensers, ingredients, strict=True)]
    for cocktail in cocktails:
        first, second = random.sample(ingredients, 2)
        initial += [f"cocktail-part1 {cocktail} {first}", f"cocktail-part2 {cocktail} {second}"]
    drinks = [random.choice(cocktails), *random.choices([*cocktails, *ingredients], k=size - 1)]
    wanted = zip(shots, random.sample(drinks, size), strict=False)  # there are spare shots
    goal = [f"contains {shot} {drink}" for shot, drink in wanted]
    objects = (
        f"shaker1 - shaker left right - hand {' '.join(shots)} - shot {' '.join(ingredients)} - ingredient "
        f"{' '.join(cocktails)} - cocktail {' '.join(dispensers)} - dispenser {' '.join(levels)} - level"
    )
    return objects, initial, goal


def _numbered(name: str, count: int) -> list[str]:
    return [f"{name}{number}" for number in range(1, count + 1)]


def _tyreworld(random: Random, size: int) -> Drawn:
    """Put a flat wheel on every hub and a sound one into the boot; the goal is part of the change."""
    numbers = range(1, size + 1)
    initial = ["in jack boot", "in pump boot", "in wrench boot", "unlocked boot", "closed boot"]
    for n in numbers:
        initial += [f"intact r{n}", f"in r{n} boot", f"not-inflated r{n}", f"on w{n} the-hub{n}"]
        initial += [f"on-ground the-hub{n}", f"tight nuts{n} the-hub{n}", f"fastened the-hub{n}"]
    whole = [
        literal for n in numbers for literal in (f"on r{n} the-hub{n}", f"inflated r{n}", f"in w{n} boot")
    ]
    goal = random.sample(whole, random.choice([2, 3, len(whole)]))
    wheels = [f"{kind}{n}" for n in numbers for kind in "rw"]
    objects = (
        f"{' '.join(_numbered('the-hub', size))} - hub {' '.join(_numbered('nuts', size))} - nut "
        f"boot - container {' '.join(wheels)} - wheel"
    )
    return objects, initial, goal


@cache
def example_of(domain: str) -> str:
    """Return a worked example of one of AgentBoard's domains, turn by turn; "" for any other domain.

    Its harness shows one before a task. The problems are ours, the smallest of seeds that no suite draws,
    with a shortest plan; the observations come from playing it in the world, so that they are exact.
    """
    known = next((each for each in DOMAINS if each == domain), None)
    if known is None:
        return ""
    example = yaml.safe_load((DOMAINS_FOLDER / "examples.yaml").read_text(encoding="utf-8"))[known]
    world = PddlWorld(generate(known, example["seed"], SIZES[known][0]))
    told = [world.problem.goal, f"At the start: {world.first_observation}"]
    for number, action in enumerate(example["plan"].split(";"), start=1):
        plain = " ".join(action.split())
        seen = world.step(plain).text
        told.append(str(Turn(number=number, agent="solver", output=plain, outcome=seen)))
    return "\n".join(told)


PROBLEM_GENERATORS: dict[Domain, Callable[[Random, int], Drawn]] = {
    "gripper": _gripper,
    "blockworld": _blockworld,
    "barman": _barman,
    "tyreworld": _tyreworld,
}
