"""Render the scene of a vision question's case: the case has a scene in numbers, and no image file.

A scene is an episode's `things`, `places`, `open` and `goals`, where the `eyes` are and look (x, z, degrees),
and the other `people`, each as x, z and what it holds.
"""

from collections.abc import Mapping
from typing import Any

from mneme.core.errors import BadInput
from mneme.environments.household.acting import SUCCESS, WAIT, Action
from mneme.environments.household.episode import parse_episode
from mneme.environments.household.play import Frame
from mneme.environments.household.visual.recognition import PICTURE
from mneme.environments.household.visual.world import SeeingWorld
from mneme.nodes.household.eyes import frame_of

SCENE = "scene"


def rendered(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input with its scene drawn: the picture, its boxes, and the possible classes.

    Raises BadInput for an impossible scene.
    """
    scene = dict(given[SCENE])
    (x, z, heading), people = scene.pop("eyes"), scene.pop("people", [])
    room = next(thing[0] for thing in scene["things"] if thing[2] == "room")
    starts = [(x, z), *(tuple(each[:2]) for each in people)]
    about: dict[str, Any] = {"source": "case", "doors": [], "seed": 0}
    about |= dict.fromkeys(("id", "apartment", "category"), SCENE)
    about["starts"] = [{"room": room, "position": each, "placed": "recorded"} for each in starts]
    episode = parse_episode({"open": [], **about, **scene}, SCENE)
    world = SeeingWorld(episode, size=PICTURE)
    world.eyes[0].heading = heading
    for number, (_, _, held) in enumerate(people, 1):
        for thing in held:
            world.follow(_taken(world, number, thing))
    frame = frame_of(world.picture(world.look(0)))
    return frame.model_dump() | {name: each for name, each in given.items() if name != SCENE}


def _taken(world: SeeingWorld, agent: int, thing: int) -> Frame:
    """Return the step in which an agent takes a thing, wherever it is."""
    if thing not in world.places:
        raise BadInput(f"{SCENE}: somebody holds {thing}, which is nowhere.", "Give it a place first.")
    return Frame(
        step=world.steps + 1,
        rooms=[body.room for body in world.agents],
        positions=[body.position for body in world.agents],
        hands=[[*body.hands, thing] if n == agent else body.hands for n, body in enumerate(world.agents)],
        actions=[Action(kind="grab", object=thing) if n == agent else WAIT for n in range(len(world.agents))],
        outcomes=[SUCCESS] * len(world.agents),
        progress=world.progress,
    )
