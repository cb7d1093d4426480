"""Hidden profiles, drawn by seed: each role rules one site out by what it alone knows; one site is left.

Stasser and Titus' paradigm: who knows the shared part alone is led to a wrong site. Every role says its fact
in its first turn, with one figure of another site that decides nothing; from then on all talk of other
matters, with numbers too, as the middle of a long discussion does.
"""

from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

from mneme.environments.turns import Turn
from mneme.evals.discussion.puzzle import Fact, Puzzle, Question, around
from mneme.nodes.task_memories.interface import Role, Task

SITES = ("Harbour", "Mill", "Quarry", "Meadow", "Orchard", "Tannery", "Brickyard", "Foundry", "Dairy")


class Expert(NamedTuple):
    """A role: what it judges, why it rules a site out, a figure that it knows, and what else it speaks of."""

    title: str
    duties: str
    out: str
    figure: str
    talk: tuple[str, ...]


EXPERTS = (
    Expert(
        "transport planner",
        "Judges how heavy goods reach a site by road and quay.",
        "the road bears only {n} kilograms",
        "the motorway is {n} metres away",
        ("Last week {n} lorries crossed the old bridge.", "The new timetable has {n} trips."),
    ),
    Expert(
        "power engineer",
        "Judges the electricity that a site can draw.",
        "the grid gives only {n} kilowatts",
        "the substation stands {n} metres off",
        ("The spare transformer weighs {n} kilograms.", "In March the meters were read {n} times."),
    ),
    Expert(
        "hydrologist",
        "Judges floods, wells and drains of a site.",
        "the flood line stands {n} millimetres above the floor",
        "the well yields {n} litres an hour",
        ("The gauge at the weir has {n} marks.", "In the wet year {n} cellars were pumped out."),
    ),
    Expert(
        "lawyer",
        "Judges permits, leases and duties that come with a site.",
        "its permit lapses after {n} days",
        "the lease runs for {n} months",
        ("The register lists {n} owners in this district.", "The last appeal took {n} pages."),
    ),
    Expert(
        "geologist",
        "Judges soil and rock under a site.",
        "peat lies {n} centimetres deep",
        "rock begins {n} centimetres down",
        ("The drill made {n} turns a minute.", "We have {n} samples in the shed."),
    ),
    Expert(
        "personnel officer",
        "Judges whether a site finds the people that it needs.",
        "only {n} welders live within an hour",
        "{n} people look for work nearby",
        ("The course for crane drivers had {n} guests.", "The canteen served {n} soups."),
    ),
    Expert(
        "fire officer",
        "Judges water for fighting fires and ways of escape.",
        "the hydrant gives only {n} litres a minute",
        "the fire station is {n} seconds away",
        ("We tested {n} hoses this spring.", "The old siren can be heard for {n} metres."),
    ),
    Expert(
        "conservator",
        "Judges what of a site is listed as a monument.",
        "{n} square metres of it are listed",
        "its oldest wall is {n} years old",
        ("The archive holds {n} drawings of the town.", "The tower clock has {n} teeth."),
    ),
)
ALIGNED: dict[str, Any] = {
    "other_matters": ["What else was said, in brief"],
    "sites_ruled_out": ["Sites that are ruled out, each with the reason"],
    "figures_of_sites": ["What is known of sites that stay possible, with the figures"],
    "position": "Which site I favour now",
}
"""A template for this task, as the paper's are (§3); rules put what fits none into the first slot."""
MOST_ROLES = len(EXPERTS)


def hidden_profile(seed: int, roles: int, turns: int, template: dict[str, Any] | None = None) -> Puzzle:
    """Return the puzzle of a seed: so many roles, one site more, and so many turns."""
    drawn = Random(f"profile {seed} {roles}")  # noqa: S311  (no secret)
    experts = drawn.sample(EXPERTS, roles)
    sites = drawn.sample(SITES, roles + 1)
    left, out = sites[0], sites[1:]
    favoured = drawn.choice(out)
    numbers = iter(drawn.sample(range(103, 9990), 3 * turns + 2 * roles))
    names = [each.title.replace(" ", "_") for each in experts]
    said, facts = _first_round(experts, names, out, left, numbers)
    for number, name in list(around(names, turns))[roles:]:
        talk = [each.format(n=next(numbers)) for each in experts[names.index(name)].talk]
        said.append(Turn(number=number, agent=name, output=" ".join(drawn.sample(talk, len(talk)))))
    options = tuple(drawn.sample(sites, len(sites)))
    question = Question("Which site can the depot be built on?", options, options.index(left), needs(facts))
    specifications = [f"{each.title}: {each.duties}" for each in experts]
    known = {name: Role(spec, template or ALIGNED) for name, spec in zip(names, specifications, strict=True)}
    text = (
        f"Choose the one site that a depot can be built on: {', '.join(sorted(sites))}. Each of you knows "
        f"what no other knows; put together, all but one site is ruled out. Most people favour {favoured}."
    )
    task = Task(id=f"profile-{seed}-{roles}", goal="Choose the site.", text=text, domain="hidden_profile")
    return Puzzle("hidden profile", task, known, said, facts, [question])


def needs(facts: Sequence[Fact]) -> tuple[int, ...]:
    """Return the places of the facts that rule a site out; figures of other sites decide nothing."""
    return tuple(range(0, len(facts), 2))


def _first_round(
    experts: Sequence[Expert], names: Sequence[str], out: Sequence[str], left: str, numbers: Any
) -> tuple[list[Turn], list[Fact]]:
    """Let every role say what it alone knows: the site that it rules out, and a figure of the next."""
    said: list[Turn] = []
    facts: list[Fact] = []
    for number, (expert, name, site) in enumerate(zip(experts, names, out, strict=True), start=1):
        other = [*out, left][number]
        reason, figure = next(numbers), next(numbers)
        output = f"{site} is ruled out: {expert.out.format(n=reason)}. "
        output += f"At {other}, {expert.figure.format(n=figure)}."
        said.append(Turn(number=number, agent=name, output=output))
        facts += [Fact(name, number, (site, str(reason))), Fact(name, number, (other, str(figure)))]
    return said, facts
