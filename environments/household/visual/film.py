"""Views of the agents in a played run, rendered again from its steps; no picture is stored.

A trace has all positions and actions, so a frame costs the time of rendering and no disk space.
"""

import colorsys
from base64 import b64encode
from collections.abc import Sequence
from io import BytesIO

import numpy as np

from mneme.core.errors import BadInput, needs
from mneme.environments.household.episode import Episode
from mneme.environments.household.play import Frame
from mneme.environments.household.visual.camera import NO_OBJECT, View
from mneme.environments.household.visual.world import SeeingWorld

with needs("The visual setting", "visual"):
    from PIL import Image

MAX_DEPTH_METRES = 8.0
"""Metres from which on depth is black."""
QUALITY = 80
"""WebP quality of a picture for a page."""
GOLDEN = 0.618034
"""Turns of hue between one segment's number and the next, so that neighbours differ."""


class Sights:
    """The frames of each agent after any step of a run; those of later steps are reached step by step."""

    def __init__(self, episode: Episode, frames: Sequence[Frame]) -> None:
        self._episode, self._frames = episode, frames
        self._world, self._done = SeeingWorld(episode), 0

    def at(self, step: int) -> list[View]:
        """Return each agent's view after a step, 0 for the start. Raises BadInput for lost steps."""
        if step < self._world.steps:  # a world only goes forward
            self._world, self._done = SeeingWorld(self._episode), 0
        while self._done < len(self._frames) and self._frames[self._done].step <= step:
            if (following := self._world.steps + 1) != self._frames[self._done].step:
                raise BadInput(
                    f"Step {following} is not in the trace.", "Without it nobody knows who saw what."
                )
            self._world.follow(self._frames[self._done])
            self._done += 1
        return [self._world.look(agent) for agent in range(len(self._world.agents))]


def strip(view: View) -> Image.Image:
    """Return colour, depth (near is bright) and segments, each in a colour of its own, side by side."""
    depth = np.clip(255 * (1 - view.depth / MAX_DEPTH_METRES), 0, 255).astype(np.uint8)
    owners, places = np.unique(view.segments, return_inverse=True)
    tints = [
        (each != NO_OBJECT) * np.array(colorsys.hsv_to_rgb(each * GOLDEN % 1, 0.65, 0.95))
        for each in owners.tolist()
    ]
    segments = (255 * np.array(tints))[places.reshape(view.segments.shape)].astype(np.uint8)
    return Image.fromarray(np.hstack([view.colour, np.dstack([depth] * 3), segments]))


def data_url(view: View) -> str:
    """Return the strip as a picture that a page can hold, of some 3 kB."""
    written = BytesIO()
    strip(view).save(written, "WEBP", quality=QUALITY)
    return f"data:image/webp;base64,{b64encode(written.getvalue()).decode()}"
