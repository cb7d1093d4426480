"""Pictures of a household: a step or an animation, of one run or several side by side."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from mneme.core.errors import BadInput
from mneme.environments.household.episode import Episode
from mneme.environments.household.play import Frame
from mneme.environments.household.scene import AGENT_NAMES, Scene, scenes
from mneme.environments.household.stage import AGENT_COLOURS, Stage

ANIMATION_DPI, PICTURE_DPI = 80, 130
"""Dots an inch of an animation, and of a single picture."""
MAX_FRAMES = 130
"""Maximum number of pictures in an animation."""
SIGHT = 0.3
"""Maximum height of an agent's view, as a share of the picture's height."""
FRAME_MS, LAST_FRAME_MS = 220, 2500
"""Milliseconds that a frame, and the last one, are shown."""


@dataclass(frozen=True)
class Film:
    """Content of a film: a run's steps, its name, the synopses and the agents' views by step."""

    episode: Episode
    frames: Sequence[Frame]
    synopses: Mapping[int, str] = field(default_factory=dict)
    name: str = ""
    strips: Callable[[int], Sequence[Image.Image]] | None = None


def draw_step(films: Sequence[Film], step: int, file: Path) -> None:
    """Draw the floor plan after a step as PNG, several runs side by side; a run that is over, at its end.

    Raises BadInput for a step that no run has.
    """
    played = [scenes(film.episode, film.frames) for film in films]
    last = max(each[-1].step for each in played)
    if not 0 <= step <= last:
        raise BadInput(f"There is no step {step}.", f"Steps 0 to {last} were played.")
    shown = [next(scene for scene in reversed(each) if scene.step <= step) for each in played]
    stages = [_stage(film, PICTURE_DPI, scene.open) for film, scene in zip(films, shown, strict=True)]
    _beside([_shot(*each) for each in zip(films, stages, shown, strict=True)]).save(file)


def animate(films: Sequence[Film], file: Path) -> None:
    """Draw whole runs as an animated GIF, side by side: a shot a step, or every so many of a long one."""
    played = [scenes(film.episode, film.frames) for film in films]
    stages = [_stage(film, ANIMATION_DPI, each[-1].open) for film, each in zip(films, played, strict=True)]
    longest = max(len(each) for each in played)
    stride = math.ceil(longest / MAX_FRAMES)
    shots = [
        _beside(
            [
                _shot(film, stage, each[min(at, len(each) - 1)])
                for film, stage, each in zip(films, stages, played, strict=True)
            ]
        )
        for at in [*range(0, longest - 1, stride), longest - 1]
    ]
    # One palette for all frames, or colours would flicker; dithering would change pixels that stay.
    palette = shots[-1].quantize()
    first, *others = [shot.quantize(palette=palette, dither=Image.Dither.NONE) for shot in shots]
    times = [FRAME_MS] * len(others) + [LAST_FRAME_MS]
    first.save(file, format="GIF", save_all=True, append_images=others, duration=times, loop=0, optimize=True)


def _stage(film: Film, dots: int, opened: Collection[int]) -> Stage:
    return Stage(film.episode, dots, opened, film.synopses, film.name)


def _shot(film: Film, stage: Stage, scene: Scene) -> Image.Image:
    """Draw a scene and, in the visual setting, the views of the agents beside it."""
    plan = stage.shot(scene)
    return _with_sights(plan, film.strips(scene.step)) if film.strips else plan


def _with_sights(shot: Image.Image, strips: Sequence[Image.Image]) -> Image.Image:
    """Add each agent's view beside the plan, in its own row: colour, depth and segments."""
    height = min(shot.height // len(strips), round(SIGHT * shot.height))
    width = 3 * height
    column = Image.new("RGB", (width, shot.height), "white")
    for number, strip in enumerate(strips):
        at = number * shot.height // len(strips)
        column.paste(strip.resize((width, height), Image.Resampling.NEAREST), (0, at))
        draw = ImageDraw.Draw(column)
        draw.rectangle((0, at, width - 1, at + height - 1), outline=AGENT_COLOURS[number], width=3)
        draw.text((8, at + 6), AGENT_NAMES[number], fill="black", stroke_width=2, stroke_fill="white")
    return _beside([shot, column])


def _beside(shots: Sequence[Image.Image]) -> Image.Image:
    """Join pictures of the same height side by side."""
    return Image.fromarray(np.hstack([np.asarray(shot) for shot in shots]))
