"""Knowledge of one agent: what it saw, where and when."""

from collections.abc import Iterable, Mapping

from pydantic import BaseModel

from mneme.environments.household.acting import AGENT_NAMES, Action, Observation, Seen
from mneme.environments.household.episode import Goal

LASTING_FIELDS = ("name", "holder", "relation", "is_open", "room")
"""Fields whose change makes an object count as new knowledge; its exact position does not."""


class Sighting(Seen):
    """A thing as last seen, and at which step."""

    step: int


class Met(BaseModel):
    """Another agent as last seen."""

    room: int
    hands: list[int]
    step: int


class Beliefs(BaseModel):
    """One agent's knowledge; plain JSON by `model_dump`, and back by `model_validate`."""

    agent: int
    step: int = 0
    room: int = 0
    position: tuple[float, float] = (0.0, 0.0)
    hands: list[int] = []
    rooms: dict[int, str] = {}
    room_seen: dict[int, int] = {}
    things: dict[int, Sighting] = {}
    checked: dict[int, int] = {}
    others: dict[int, Met] = {}
    lost: dict[int, int] = {}
    """Objects that were not at their believed place, and the step at which that was noticed."""

    def update(self, observation: Observation) -> None:
        """Add what is visible, and remove what should be visible here but is not."""
        step = self.step = observation.step
        self.room, self.position, self.hands = observation.room, observation.position, observation.hands
        self.rooms = observation.rooms
        if observation.looked:
            self.room_seen[observation.room] = step
        self._give_up(observation)
        for seen in observation.seen:
            self._learn(seen, step)
        for other, room, hands in observation.others:
            self.others[other] = Met(room=room, hands=hands, step=step)

    def did(self, action: Action, step: int) -> None:
        """Record where the agent has put an object: inside a closed container it cannot be seen."""
        holder = None if action.target is None else self.things.get(action.target)
        known = None if action.object is None else self.things.get(action.object)
        if not action.kind.startswith("put") or holder is None or known is None:
            return
        relation = "on" if action.kind == "put_on" else "inside"
        placed = {"relation": relation, "holder": holder.id, "center": holder.center, "step": step}
        self.things[known.id] = known.model_copy(update=placed)

    def _give_up(self, observation: Observation) -> None:
        """Forget what should be visible here and is not; in a container that is shut it may still be."""
        present = {seen.id for seen in observation.seen}
        shut = {known.id for known in self.things.values() if known.is_open is False}
        for known in list(self.things.values()):
            if observation.missing is None:  # in the symbolic setting an agent sees all of its room
                is_gone = known.room == observation.room
            else:
                is_gone = known.id in observation.missing
            is_hidden = known.relation == "inside" and known.holder in shut
            if is_gone and not is_hidden and known.id not in present:
                del self.things[known.id]
                self.lost[known.id] = observation.step

    def _learn(self, seen: Seen, step: int) -> None:
        known = self.things.get(seen.id)
        if known is not None and all(getattr(known, name) == getattr(seen, name) for name in LASTING_FIELDS):
            known.step = step
            if seen.relation == "held by":  # it moves with its holder: a new position alone is no news
                known.center = seen.center
        else:
            self.things[seen.id] = Sighting(**seen.__dict__, step=step)
            self.lost.pop(seen.id, None)
        if seen.is_open:
            self.checked[seen.id] = step

    def merge(self, other: "Beliefs") -> None:
        """Copy what another agent saw more recently."""
        for known in other.things.values():
            mine = self.things.get(known.id)
            # At the same step a sight overrules another's miss, or what a member holds would count as lost.
            if mine.step < known.step if mine else self.lost.get(known.id, -1) <= known.step:
                self.things[known.id] = known.model_copy()
                self.lost.pop(known.id, None)
        for thing, step in other.lost.items():
            if thing in self.things and self.things[thing].step < step:
                del self.things[thing]
                self.lost[thing] = step
        _later(self.checked, other.checked)
        _later(self.room_seen, other.room_seen)

    def containers(self) -> list[Sighting]:
        """List the containers known, in the order of their ids."""
        return self._kind("container")

    def surfaces(self) -> list[Sighting]:
        """List the furniture known on which things of the task belong, in the order of their ids."""
        return self._kind("surface")

    def objects(self) -> list[Sighting]:
        """List the goal objects known, in the order of their ids."""
        return self._kind("object")

    def _kind(self, category: str) -> list[Sighting]:
        return sorted(
            (known for known in self.things.values() if known.category == category), key=lambda k: k.id
        )

    def placed(self, goals: Iterable[Goal]) -> dict[str, int]:
        """Return the number of objects that are believed to satisfy each goal."""
        return {
            goal.key: min(goal.count, sum(satisfies(known, goal) for known in self.things.values()))
            for goal in goals
        }

    def words(self) -> str:
        """Return all knowledge as text for a prompt: the agent, what it saw, and where it has been."""
        lines = [self.position_in_words(), *self.sights(), self.explored(), self.unexplored()]
        return "\n".join(line for line in lines if line)

    def position_in_words(self) -> str:
        """Return the agent's position and the objects it holds, as text."""
        held = [f"<{self.things[thing].name}> ({thing})" for thing in self.hands if thing in self.things]
        where = self.rooms.get(self.room, "house")
        return f"I am in the {where}, holding {' and '.join(held) or 'nothing'}."

    def sights(self, first: int = 0, last: int | None = None, *, with_shut: bool = True) -> list[str]:
        """Return the latest sights between two steps, inclusive, except objects in the agent's hands.

        Without `with_shut`, closed containers are left out.
        """
        last = self.step if last is None else last
        containers = (each for each in self.containers() if with_shut or each.is_open)
        known = (*containers, *self.surfaces(), *self.objects())
        return [
            self._sentence(each)
            for each in known
            if first <= each.step <= last and not (each.relation == "held by" and each.holder == self.agent)
        ]

    def explored(self, first: int = 0) -> str:
        """Return the rooms where the agent was since a step, and when last; "" if there are none."""
        seen = [(room, step) for room, step in self.room_seen.items() if step >= first]
        named = [f"<{self.rooms[room]}> ({room}) (step {step})" for room, step in seen]
        return f"Explored by me: {', '.join(named)}." if named else ""

    def unexplored(self) -> str:
        """Return the rooms where the agent has never been; this needs beliefs with all of its knowledge."""
        return unexplored(self.rooms, self.room_seen, "Not yet explored by me")

    def _sentence(self, known: Sighting) -> str:
        where = f"in the {self.rooms.get(known.room, 'house')}"
        if known.category == "container":
            state = "open" if known.is_open else "closed, unchecked"
            return f"<{known.name}> ({known.id}) is {state}, {where} (step {known.step})."
        holder = self.things.get(known.holder) if known.holder is not None else None
        if known.relation == "held by":
            who = AGENT_NAMES[known.holder or 0]
            return f"<{known.name}> ({known.id}) is held by {who} (step {known.step})."
        at = f"{known.relation} <{holder.name}> ({holder.id}) {where}" if holder else where
        # what is in a container that was never opened was put there, not seen
        is_hidden = known.relation == "inside" and holder is not None and holder.is_open is False
        verb = "was put" if is_hidden else "is"
        return f"<{known.name}> ({known.id}) {verb} {at} (step {known.step})."


def satisfies(known: Seen, goal: Goal) -> bool:
    """Return whether an object at its place counts for a goal."""
    return known.name == goal.name and known.relation == goal.relation and known.holder == goal.target


def unexplored(rooms: Mapping[int, str], seen: Iterable[int], words: str) -> str:
    """Name the rooms that are not among those seen; nothing where all are."""
    left = [f"<{name}> ({room})" for room, name in rooms.items() if room not in {*seen}]
    return f"{words}: {', '.join(left)}." if left else ""


def _later(mine: dict[int, int], theirs: Mapping[int, int]) -> None:
    for key, step in theirs.items():
        mine[key] = max(step, mine.get(key, step))
