"""An episode: an apartment, the places of all things, the goals, and where agents start."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_serializer, model_validator

from mneme.core.errors import BadInput, first_fault

Relation = Literal["on", "inside"]
Kind = Literal["room", "door", "container", "surface", "object"]
GOAL_CATEGORIES = ("Wash Dishes", "Put Groceries", "Prepare a Meal", "Set up Table", "Prepare Tea")
CONTAINERS = frozenset(
    ("bathroomcabinet", "kitchencabinet", "cabinet", "fridge", "stove", "dishwasher", "microwave")
)
BEARERS = ("container", "surface")
MAX_AGENTS = 4
START_MARGIN = 2.0
"""Metres outside its room's box where an agent may start, since the boxes of two rooms need not touch."""


class BoxedObject(Protocol):
    """An object with a bounding box in the apartment: centre and extent in metres, y is up."""

    @property
    def center(self) -> tuple[float, float, float]: ...

    @property
    def size(self) -> tuple[float, float, float]: ...


class Thing(BaseModel):
    """A room, a door, a piece of furniture or an object; metres, y is up; dumped as a bare list."""

    model_config = ConfigDict(frozen=True)

    id: int = Field(description="Number of the thing; no two have one.")
    name: str = Field(min_length=1, description="Its class, such as `wineglass`.")
    category: Kind = Field(description="What can be done with it.")
    center: tuple[float, float, float] = Field(description="The centre of its box (x, y, z).")
    size: tuple[float, float, float] = Field(description="The size of its box (x, y, z).")

    @model_validator(mode="before")
    @classmethod
    def _from_list(cls, given: Any) -> Any:
        # Too short a list then lacks a field, which pydantic names.
        return dict(zip(cls.model_fields, given, strict=False)) if isinstance(given, list | tuple) else given

    @model_serializer  # with its fields' names, an episode of 300 things would be half as long again
    def _as_list(self) -> list[Any]:
        return [self.id, self.name, self.category, list(self.center), list(self.size)]


class Goal(BaseModel):
    """A goal: a number of things on, or inside, a target (`on_wine_72: 1`)."""

    model_config = ConfigDict(frozen=True)

    relation: Relation = Field(description="Where the things are wanted.")
    name: str = Field(description="The class of the things.")
    target: int = Field(description="The id of the surface or container.")
    count: int = Field(ge=1, description="How many of them.")
    target_name: str = Field("target", description="What the target is called in the words of the task.")

    @property
    def key(self) -> str:
        """Return the predicate in C-WAH's form."""
        return f"{self.relation}_{self.name}_{self.target}"


class Start(BaseModel):
    """Start of an agent: the floor position (x, z) in metres, and the source of that position."""

    model_config = ConfigDict(frozen=True)

    room: int = Field(description="The id of the room.")
    position: tuple[float, float] = Field(description="Where on its floor (x, z).")
    placed: Literal["recorded", "seeded rule"] = Field(description="Whether the file says so, or a rule.")


class Episode(BaseModel):
    """All data of an episode. Raises BadInput, naming the field, if it cannot be played."""

    model_config = ConfigDict(frozen=True)

    id: str = Field(description="Name of the episode.")
    source: str = Field(description="Where it comes from; for people.")
    apartment: str = Field(description="Name of the apartment, under which a team remembers it.")
    category: str = Field(description="Name of the task, such as `Prepare Tea`.")
    goals: list[Goal] = Field(description="What is to be where at the end.")
    starts: list[Start] = Field(description="Where the members begin; others are placed by a rule.")
    things: list[Thing] = Field(description="Rooms, furniture and objects, each as a list of its fields.")
    places: dict[int, tuple[Relation, int]] = Field(description="Thing to relation and holder.")
    doors: list[tuple[int, int, tuple[float, float]]] = Field(description="Two rooms and the centre (x, z).")
    open: list[int] = Field(description="Containers that are open at the start.")
    seed: int = Field(description="The seed that it was generated from; for people.")

    @model_validator(mode="after")
    def _playable(self) -> Self:
        kinds = {thing.id: thing.category for thing in self.things}
        for check in (_check_things, _check_places, _check_ways, _check_goals):
            check(self, kinds)
        return self

    def by_id(self) -> dict[int, Thing]:
        """Index the things by id."""
        return {thing.id: thing for thing in self.things}

    def rooms(self) -> list[Thing]:
        """List the rooms in the order of the file."""
        return [thing for thing in self.things if thing.category == "room"]

    def room_of(self, thing: int) -> int:
        """Follow the holders of a thing, as placed at the start, up to its room."""
        places = self.places
        while thing in places:
            thing = places[thing][1]
        return thing

    def goal_names(self) -> frozenset[str]:
        """Name the classes that the goals ask for."""
        return frozenset(goal.name for goal in self.goals)


def parse_episode(given: Mapping[str, Any], name: str = "episode") -> Episode:
    """Validate an episode from plain values; `BadInput` names the field."""
    return read_fields(Episode, given, name)


Fields = TypeVar("Fields", bound=BaseModel)


def read_fields(kind: type[Fields], given: Mapping[str, Any], name: str) -> Fields:
    """Validate plain values; `BadInput` names the first field at fault."""
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        raise BadInput(f"{name}: {first_fault(error)}", "Fix this field.") from error


def save_episode(episode: Episode, path: Path) -> None:
    """Write an episode as JSON that `load_episode` reads."""
    path.write_text(episode.model_dump_json() + "\n", encoding="utf-8")


def require(is_so: bool, message: str, hint: str) -> None:
    """Raise BadInput if a condition does not hold."""
    if not is_so:
        raise BadInput(message, hint)


def check_agents(agents: int) -> None:
    """Raise BadInput for a team that is empty or too large."""
    possible = 1 <= agents <= MAX_AGENTS
    require(possible, f"{agents} agents are not possible.", f"Give 1 to {MAX_AGENTS}.")


def check_ids(field: str, ids: Sequence[int]) -> None:
    """Raise BadInput for an id that occurs twice."""
    twice = [key for key, times in Counter(ids).items() if times > 1]
    require(not twice, f"{field}: the id {[*twice, 0][0]} occurs twice.", "Give every thing its own id.")


def check_position(field: str, position: tuple[float, float], room: BoxedObject) -> None:
    """Raise BadInput for a start (x, z) that is not finite or over `START_MARGIN` metres outside its room."""
    require(all(map(math.isfinite, position)), f"{field}: not a finite number.", "Give metres.")
    beside = max(
        abs(value - room.center[axis]) - room.size[axis] / 2
        for value, axis in zip(position, (0, 2), strict=True)
    )
    near, hint = beside <= START_MARGIN, "Give metres in the room's own coordinates."
    require(near, f"{field}: {beside:.1f} m outside its room.", hint)


def _check_things(episode: Episode, kinds: Mapping[int, Kind]) -> None:
    hint = "Give at least one thing of the category room."
    require("room" in kinds.values(), "things: there is no room.", hint)
    check_ids("things", [thing.id for thing in episode.things])
    numbers = [number for thing in episode.things for number in (*thing.center, *thing.size)]
    finite = all(map(math.isfinite, numbers))
    require(finite, "things: a center or size is not a finite number.", "Give metres.")
    for each in episode.open:
        require(kinds.get(each) == "container", f"open: {each} is not a container.", "Name containers only.")


def _check_places(episode: Episode, kinds: Mapping[int, Kind]) -> None:
    for thing in episode.things:
        placed = thing.category in ("room", "door") or thing.id in episode.places
        require(placed, f"places: {thing.name} ({thing.id}) has no place.", "Name what holds it.")
    for held, (relation, holder) in episode.places.items():
        require(held in kinds, f"places: {held} is not in this episode.", "Remove it or add the thing.")
        missing = f"places: {held} is {relation} {holder}, which is missing."
        require(holder in kinds, missing, "Add that room or holder.")
        kind, within = kinds[held], kinds[holder]
        fits = kind != "room" and (within == "room" or (kind == "object" and within in BEARERS))
        wrong = f"places: a {kind} ({held}) cannot be {relation} a {within} ({holder})."
        require(fits, wrong, "Fix the holder.")


def _check_ways(episode: Episode, kinds: Mapping[int, Kind]) -> None:
    """Check doors and starts: agents are in rooms, and can reach all of them."""
    hint = "Name a room of this episode."
    for number, start in enumerate(episode.starts):
        there = kinds.get(start.room) == "room"
        require(there, f"starts.{number}.room: there is no room {start.room}.", hint)
        check_position(f"starts.{number}.position", start.position, episode.by_id()[start.room])
    ways = [{first, second} for first, second, _ in episode.doors]
    rooms = {room.id for room in episode.rooms()}
    for room in sorted(set[int]().union(*ways) - rooms):
        raise BadInput(f"doors: a door leads to the missing room {room}.", "Add the room or drop the door.")
    check_agents(len(episode.starts))
    reached = {episode.starts[0].room}
    for _ in ways:  # each round goes one door farther, and no way has more doors than there are
        reached.update(*(way for way in ways if way & reached))
    for room in sorted(rooms - reached):
        name = episode.by_id()[room].name
        raise BadInput(f"doors: {name} ({room}) cannot be reached.", "Add a door to that room.")


def _check_goals(episode: Episode, kinds: Mapping[int, Kind]) -> None:
    hint = "Give at least one predicate such as on_wine_72: 1."
    require(bool(episode.goals), "goals: there is no goal.", hint)
    once = len({goal.key for goal in episode.goals}) == len(episode.goals)
    require(once, "goals: a predicate occurs twice.", "Give each predicate once, with its count.")
    for goal in episode.goals:
        missing = f"goals: {goal.key}: the target {goal.target} is missing."
        require(goal.target in kinds, missing, "Name a thing of this episode.")
        needed = "surface" if goal.relation == "on" else "container"
        wrong = f"goals: {goal.key}: the target {goal.target_name} ({goal.target}) is not a {needed}."
        hint = f"What goes {goal.relation} a thing needs a {needed}: name one."
        require(kinds[goal.target] == needed, wrong, hint)
    for name in sorted(episode.goal_names()):
        wanted = sum(goal.count for goal in episode.goals if goal.name == name)
        things = [episode.places[t.id] for t in episode.things if t.name == name and t.category == "object"]
        # What is inside a surface (a drawer of a desk) stays there: `gocheck` opens only containers.
        there = sum(relation == "on" or kinds[holder] != "surface" for relation, holder in things)
        few = f"goals: {wanted} of {name} are wanted and {there} can be reached."
        require(there >= wanted, few, "Ask for fewer, or put more where an agent can take them.")
