"""The picture of a household: names cover neither one another nor a door, and what was opened is named."""

from itertools import combinations
from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from mneme.environments.household import Episode, generate
from mneme.environments.household.labels import Labels, name_containers, name_rooms


def written(episode: Episode, opened: set[int]) -> tuple[list[Text], list[Text]]:
    """Write rooms and containers on a bare plan; the renderer stays with their figure."""
    figure = Figure(figsize=(12, 6.4), dpi=130)
    canvas: Any = FigureCanvasAgg(figure)  # its methods carry no types
    axes = figure.add_axes((0.01, 0.02, 0.68, 0.96))
    rooms = episode.rooms()
    ends = [
        (room.center[i] - room.size[i] / 2, room.center[i] + room.size[i] / 2)
        for room in rooms
        for i in (0, 2)
    ]
    axes.set(
        xlim=(min(low for low, _ in ends[::2]), max(high for _, high in ends[::2])),
        ylim=(min(low for low, _ in ends[1::2]), max(high for _, high in ends[1::2])),
        aspect="equal",
    )
    labels = Labels(axes, canvas.get_renderer())
    return name_rooms(labels, episode, fontsize=9), name_containers(labels, episode, opened, fontsize=5.5)


@pytest.mark.parametrize("seed", range(8))
def test_no_name_covers_another(seed: int) -> None:
    episode = generate(seed)
    every = {thing.id for thing in episode.things if thing.category == "container"}
    rooms, containers = written(episode, every)
    extents = [text.get_window_extent() for text in [*rooms, *containers]]
    assert not any(one.overlaps(other) for one, other in combinations(extents, 2))
    assert [text.get_text() for text in rooms] == [room.name for room in episode.rooms()]


def test_what_nobody_opened_is_named_once_in_a_room() -> None:
    episode = generate(5, "Prepare Tea")
    cabinets = [thing.id for thing in episode.things if thing.name == "kitchencabinet"]
    assert len(cabinets) > 3
    for opened in (set(), {*cabinets[:1]}, {*cabinets[:3]}):
        names = [text.get_text() for text in written(episode, opened)[1]]
        assert names.count("kitchencabinet") == max(1, len(opened))


def test_a_target_has_its_name_elsewhere() -> None:
    episode = generate(6, "Put Groceries")
    fridges = {thing.id for thing in episode.things if thing.name == "fridge"}
    assert fridges == {goal.target for goal in episode.goals}
    assert "fridge" not in [text.get_text() for text in written(episode, fridges)[1]]
