"""Load episodes from files, for a team of any size."""

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from mneme.core.errors import BadInput
from mneme.environments.household.cwah import read_cwah
from mneme.environments.household.episode import (
    MAX_AGENTS,
    Episode,
    Start,
    Thing,
    check_agents,
    parse_episode,
)


def load_episode(path: Path | str, agents: int = 2, seed: int = 0) -> Episode:
    """Load an episode of C-WAH, or one that `save_episode` wrote; `BadInput` names the field at fault.

    Agents beyond the recorded starts are placed by a seeded rule, which their starts say.
    """
    check_agents(agents)
    path = Path(path)
    given = _read(path)
    plain = given if "things" in given else read_cwah(given, path.name, seed)
    return with_agents(parse_episode(plain, path.name), agents, seed)


def with_agents(episode: Episode, agents: int, seed: int = 0) -> Episode:
    """Set an episode's number of agents: the first recorded starts, then seeded ones."""
    check_agents(agents)
    starts = [
        *episode.starts[:agents],
        *seeded_starts(episode.rooms(), episode.id, seed)[len(episode.starts) :],
    ]
    return parse_episode({**dict(episode), "starts": starts[:agents]}, episode.id)


def seeded_starts(rooms: Sequence[Thing], name: str, seed: int = 0) -> list[Start]:
    """Draw a start for each possible agent: a room, and a position in its inner half."""
    chance = Random(f"starts:{name}:{seed}")  # noqa: S311
    starts = []
    for _ in range(MAX_AGENTS):
        room = chance.choice(rooms)
        x, z = (room.center[axis] + room.size[axis] * chance.uniform(-0.25, 0.25) for axis in (0, 2))
        starts.append(Start(room=room.id, position=(round(x, 2), round(z, 2)), placed="seeded rule"))
    return starts


def _read(path: Path) -> dict[str, Any]:
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(
            f"episode: {path} cannot be read: {error.strerror}.", "Give the path of an episode."
        ) from error
    except ValueError as error:
        raise BadInput(f"{path.name}: not JSON: {error}.", "Give an episode file.") from error
    if not isinstance(given, dict):
        raise BadInput(f"{path.name}: the file holds no JSON object.", "Give a C-WAH episode: {...}.")
    if not ("graph" in given or "things" in given):
        raise BadInput(f"{path.name}: graph: this field is missing.", "Give a C-WAH episode.")
    return given
