"""Generate episodes from a seed that resemble C-WAH's.

What five recorded episodes of C-WAH showed, and what is drawn here: goals ask for 3 to 5 things in all (3 of
tableware, 5 of food); one and a half times as many of these classes lie in the apartment; three quarters of
them in closed containers, most in the fridge, the dishwasher and a bedroom's cabinet, the others on the
kitchen table and the coffee table; none on or in the goal's own target.
"""

from collections.abc import Sequence
from random import Random

from mneme.core.errors import BadInput
from mneme.environments.household.episode import (
    GOAL_CATEGORIES,
    Episode,
    Goal,
    Kind,
    Relation,
    Thing,
    check_agents,
)
from mneme.environments.household.floorplan import MAX_ROOMS, MIN_ROOMS, draw_plan
from mneme.environments.household.furnishing import Extent, GoalTemplate, apartments, furnish
from mneme.environments.household.loading import seeded_starts

HIDDEN_SHARE = 0.75
"""Share of goal things that lie in closed containers."""
SPARE_SHARE = 0.5
"""Mean number of spare objects of the goal's classes, as a share of the wanted ones."""
OBJECT_COUNT = (255, 285)
"""Objects in an apartment, including goal things; with furniture there are about 300 things."""


def generate(
    seed: int,
    category: str | None = None,
    agents: int = 2,
    rooms: int | None = None,
    apartment: int | None = None,
) -> Episode:
    """Generate an episode; the same arguments give the same one. More agents only add starts.

    `apartment` is the seed of the floor plan and furniture, so that episodes can share one; by default each
    has its own. Raises `BadInput` naming the argument that is not possible.
    """
    check_agents(agents)
    if category is not None and category not in GOAL_CATEGORIES:
        raise BadInput(
            f"category: there is no category {category}.", f"One of: {', '.join(GOAL_CATEGORIES)}."
        )
    if rooms is not None and not MIN_ROOMS <= rooms <= MAX_ROOMS:
        raise BadInput(f"rooms: {rooms} is not possible.", f"Give {MIN_ROOMS} to {MAX_ROOMS} rooms.")
    chance = Random(f"episode:{seed}")  # noqa: S311
    category = category or GOAL_CATEGORIES[seed % len(GOAL_CATEGORIES)]  # seeds in a row have all in turn
    home = Home(seed if apartment is None else apartment, rooms)
    goals = _goals(apartments().goals[category], home, chance)
    needed = [goal.name for goal in goals for _ in range(goal.count)]
    wanted = needed + [name for name in needed if chance.random() < SPARE_SHARE]
    for name in wanted:
        home.put(name, _goal_things()[name], *_spot(home, goals[0].target, chance), chance)
    for _ in range(chance.randint(*OBJECT_COUNT) - len(wanted)):
        _strew(home, wanted, chance)
    name = f"{category.lower().replace(' ', '-')}-{seed}-in-{home.name}"
    return Episode(
        id=name,
        source="generated",
        apartment=home.name,
        category=category,
        goals=goals,
        starts=seeded_starts(home.rooms, name)[:agents],
        things=home.things,
        places=home.places,
        doors=home.doors,
        open=[],
        seed=seed,
    )


class Home:
    """An apartment while it is filled: rooms and furniture from its own seed, then objects."""

    def __init__(self, seed: int, rooms: int | None) -> None:
        # A stream of its own, so that episodes with other goals can share the apartment.
        chance = Random(f"apartment:{seed}:{rooms}")  # noqa: S311
        plan, doors = draw_plan(rooms or chance.randint(MIN_ROOMS, MAX_ROOMS), chance)
        self.name = f"home-{seed}" if rooms is None else f"home-{seed}-of-{rooms}"
        self.things: list[Thing] = []
        self.places: dict[int, tuple[Relation, int]] = {}
        ids = [
            self._add(
                r.name, "room", (round(r.center[0], 3), 1.25, round(r.center[1], 3)), (r.width, 2.5, r.depth)
            )
            for r in plan
        ]
        self.doors = [(ids[door.first], ids[door.second], door.center) for door in doors]
        for number, room in enumerate(plan):
            for box in furnish(room, doors, chance):
                piece = self._add(box.piece.name, box.piece.category, box.center, box.size)
                self.places[piece] = ("inside", ids[number])

    def _add(self, name: str, category: Kind, center: Extent, size: Extent) -> int:
        number = len(self.things) + 1
        self.things.append(Thing(id=number, name=name, category=category, center=center, size=size))
        return number

    @property
    def rooms(self) -> list[Thing]:
        """List the rooms."""
        return [thing for thing in self.things if thing.category == "room"]

    def named(self, name: str) -> list[Thing]:
        """List the things with this name."""
        return [thing for thing in self.things if thing.name == name]

    def furniture(self, room: str) -> list[Thing]:
        """List the containers and surfaces in the room of this name."""
        within = self.named(room)[0].id
        return [
            t
            for t in self.things
            if t.category in ("surface", "container") and self.places[t.id][1] == within
        ]

    def put(self, name: str, size: Extent, relation: Relation, holder: Thing, chance: Random) -> None:
        """Put an object on or in a piece of furniture, within its outline."""
        x, z = (
            round(
                holder.center[axis] + chance.uniform(-0.5, 0.5) * max(0.0, holder.size[axis] - size[axis]), 2
            )
            for axis in (0, 2)
        )
        top = holder.center[1] + holder.size[1] / 2 if relation == "on" else holder.center[1]
        self.places[self._add(name, "object", (x, round(top + size[1] / 2, 2), z), size)] = (
            relation,
            holder.id,
        )


def _goal_things() -> dict[str, Extent]:
    return apartments().food | apartments().tableware


def _goals(template: GoalTemplate, home: Home, chance: Random) -> list[Goal]:
    target = home.named(template.target)[0].id
    classes = chance.sample(
        template.classes,
        chance.randint(max(1, template.things - 2), min(template.things, len(template.classes))),
    )
    counts = dict.fromkeys(classes, 1)
    for _ in range(template.things - len(classes)):
        counts[chance.choice(classes)] += 1
    return [
        Goal(relation=template.relation, name=name, target=target, count=count, target_name=template.target)
        for name, count in counts.items()
    ]


def _spot(home: Home, target: int, chance: Random) -> tuple[Relation, Thing]:
    """Draw the place of a goal thing: hidden or visible, never at the target."""
    hidden = chance.random() < HIDDEN_SHARE
    weights = apartments().hiding if hidden else apartments().showing
    # A class's weight is shared by its pieces: four cabinets are not four times as likely as one.
    spots = [(thing, weights[name] / len(home.named(name))) for name in weights for thing in home.named(name)]
    spots = [(thing, weight) for thing, weight in spots if thing.id != target]
    [holder] = chance.choices([thing for thing, _ in spots], [weight for _, weight in spots])
    return ("inside" if hidden else "on"), holder


def _strew(home: Home, wanted: Sequence[str], chance: Random) -> None:
    """Place one thing that no goal asks for."""
    room = chance.choice(home.rooms).name
    choices = {**apartments().clutter[room], **(_goal_things() if room == "kitchen" else {})}
    name = chance.choice([name for name in choices if name not in wanted])
    holder = chance.choice(home.furniture(room))
    home.put(name, choices[name], "on" if holder.category == "surface" else "inside", holder, chance)
