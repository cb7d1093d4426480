"""MiTa's graph run once, and what its questions are given, for tests of the household."""

from collections.abc import Sequence
from typing import Any

from mneme.environments.household.beliefs import Sighting
from mneme.environments.household.episode import Episode
from mneme.nodes.household.context import HouseholdContext
from mneme.prompts.household.household import Container, Door, Item, Need, Option, Room, Worker
from mneme.prompts.household.mita import CrossContext, Report, Situation
from mneme.prompts.household.synopsis import Passage

RULES = {"member": "rules", "manager": "rules"}


def context(**more: Any) -> HouseholdContext:
    return HouseholdContext(**{**RULES, **more})


def given(episode: Episode) -> Any:
    return {"episode": episode.model_dump(mode="json")}


def flat(**more: Any) -> dict[str, Any]:
    """Describe two rooms side by side, a table in the first, and what more is given."""
    rooms = [
        Room(id=1, name="kitchen", room=1, x=2, z=2, seen=0),
        Room(id=2, name="bedroom", room=2, x=8, z=2, seen=0),
    ]
    need = Need(id=9, name="kitchentable", room=1, x=1, z=1, relation="on", thing="wine", wanted=1)
    told: dict[str, Any] = {"step": 3, "needs": [need], "rooms": rooms}
    return told | {"doors": [Door(rooms=(1, 2), x=5, z=2)], **more}


def worker(number: int, room: int, x: float, z: float, hands: Sequence[int] = ()) -> Worker:
    return Worker(number=number, name=f"M{number}", room=room, x=x, z=z, hands=list(hands))


def item(number: int, room: int, x: float, z: float, name: str = "wine") -> Item:
    return Item(id=number, name=name, room=room, x=x, z=z)


def options_for(*chosen: tuple[str, int]) -> list[Option]:
    made = [Option(kind=kind, target=target, name="x") for kind, target in chosen]
    return [*made, Option(kind="wait")]


def situation(**more: Any) -> Situation:
    words = {"name": "Alice", "task": "t", "progress": "p", "observation": "o", "belief": "b"}
    told = flat(workers=[worker(0, 1, 2, 2)], items=[item(61, 2, 8, 3)])
    return Situation(**told, **words, options=options_for(("gograb", 61)), **more)


def cross_context() -> CrossContext:
    choices = options_for(("gograb", 61), ("goexplore", 2))
    reports = [Report(worker=worker(n, 1, 2, 2), proposal=0, options=choices) for n in range(2)]
    return CrossContext(**flat(items=[item(61, 2, 8, 3)]), task="t", progress="p", members=reports)


def passage() -> Passage:
    wine = item(61, 1, 2, 3).model_copy(update={"holder": "inside <fridge> (40)"})
    fridge = Container(id=40, name="fridge", room=1, x=2, z=3, is_open=True, checked=2)
    stove = Container(id=41, name="stove", room=1, x=3, z=3)
    return Passage(
        task="t",
        actions="a",
        beliefs="b",
        change="found: +1 wine",
        progress="p",
        items=[wine],
        places={61: 40},
        containers=[fridge, stove],
        rooms=[Room(id=1, name="kitchen", room=1, x=2, z=2, seen=2)],
        workers=[worker(0, 1, 2, 2).model_copy(update={"doing": "gograb <wine> (61)"})],
        searched={1: ["M0"]},
    )


def seen(thing: int, name: str, step: int, **more: Any) -> Sighting:
    box = {"center": (0, 0, 0), "size": (1, 1, 1), "is_open": None, "room": 1, "holder": None}
    return Sighting.model_validate(
        {
            "id": thing,
            "name": name,
            "category": "object",
            "relation": "inside",
            "step": step,
            **box,
            **more,
        }
    )
