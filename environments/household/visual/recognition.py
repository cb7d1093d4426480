"""Pictures for a vision model, and the conversion of its answers to what an agent sees.

The model is shown the colours with a numbered box around each segment, and says
what each is, whether it is open, and what it is on, inside of or held by. Which segment it is, and where that
is in the apartment, comes from segments and depth, as it does without a model: RGB-D with instance segments.
"""

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from colorsys import rgb_to_hsv
from io import BytesIO
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mneme.core.errors import needs
from mneme.environments.household.acting import Seen
from mneme.environments.household.episode import Episode, Kind, Thing
from mneme.environments.household.visual.camera import View
from mneme.environments.household.visual.perception import (
    Held,
    Memory,
    Percept,
    Perception,
    RecognisedBox,
)
from mneme.environments.household.visual.solids import colour_of, is_round, person

with needs("The visual setting", "visual"):
    from PIL import Image, ImageDraw

PICTURE = 448
"""Pixels of a picture for a model, each way: a multiple of the patches that vision models cut it into."""
MIN_BOX_PIXELS = 40
"""Minimum number of pixels of a segment that gets a box."""
MAX_BOXES = 24
"""Maximum number of boxes in a picture; the largest segments get one."""
PERSON_KIND = "person"
SHADE_WORDS = {"object": "bright", "container": "pale", "surface": "dull"}
"""Words for the shade of each kind (`solids.SHADES`)."""

HUES = (
    *("red", "vermilion", "orange", "amber", "yellow", "lime", "yellow-green", "leaf green"),
    *("green", "emerald", "sea green", "aquamarine", "turquoise", "cerulean", "sky blue", "cobalt blue"),
    *("blue", "indigo", "violet", "purple", "magenta", "orchid", "pink", "crimson"),
)
"""Names of equal parts of the hue circle: so many that two classes of a task differ in words."""

Box = tuple[int, int, int, int]
"""Left, top, right and bottom, in pixels; the last two are outside."""


class Picture(NamedTuple):
    """The question about a frame: a PNG, boxes by number, their segments, and the possible classes."""

    png: bytes
    boxes: list[Box]
    owners: list[int]
    classes: dict[str, str]

    @property
    def base64(self) -> str:
        """The PNG as text."""
        return b64encode(self.png).decode()


Recognise = Callable[[Sequence[Picture]], Sequence[Sequence[RecognisedBox] | None]]
"""A function that returns the content of each picture's boxes, in their order; none without an answer."""


def look_of(name: str, kind: str) -> str:
    """Return the shape and colour of a class: a box alone does not show that it is a fridge."""
    if kind == PERSON_KIND:
        return "tall dark pillar"
    hue, _, _ = rgb_to_hsv(*colour_of(name, kind))
    shape = "round piece" if kind == "object" and is_round(name) else "box"
    return f"{SHADE_WORDS[kind]} {HUES[round(hue * len(HUES)) % len(HUES)]} {shape}"


def classes_of(episode: Episode) -> dict[str, str]:
    """Name the classes that an agent looks for, each with what it is: containers, goals, targets, people."""
    targets, wanted = {goal.target for goal in episode.goals}, episode.goal_names()
    named: dict[str, str] = {
        thing.name: thing.category
        for thing in sorted(episode.things, key=lambda each: each.name)
        if thing.category == "container" or thing.id in targets or thing.name in wanted
    }
    return {**named, PERSON_KIND: PERSON_KIND}


def picture_of(view: View, things: Mapping[int, Thing], people: int, classes: dict[str, str]) -> Picture:
    """Draw a numbered box around each piece of furniture, thing and person in a frame, from left to right."""
    visible = {*things, *(person(number) for number in range(people))}
    owners, counts = np.unique(view.segments, return_counts=True)
    large = [
        (-count, owner)
        for owner, count in zip(owners.tolist(), counts.tolist(), strict=True)
        if owner in visible and count >= MIN_BOX_PIXELS  # walls and rooms get no box
    ]
    boxes = sorted((_box(view.segments == owner), owner) for _, owner in sorted(large)[:MAX_BOXES])
    png = _marked(view.colour, [box for box, _ in boxes])
    return Picture(png, [box for box, _ in boxes], [owner for _, owner in boxes], classes)


def _box(pixels: NDArray[np.bool_]) -> Box:
    rows, columns = np.nonzero(pixels.any(axis=1))[0], np.nonzero(pixels.any(axis=0))[0]
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def _marked(colour: NDArray[np.uint8], boxes: Sequence[Box]) -> bytes:
    """Draw a line around each box, which hides nothing inside of it, and its number beside its corner."""
    image = Image.fromarray(colour)
    draw = ImageDraw.Draw(image)
    for number, (left, top, right, bottom) in enumerate(boxes):
        draw.rectangle((left - 1, top - 1, right, bottom), outline="white")
        at = draw.textbbox((left, max(0, top - 12)), str(number))
        draw.rectangle(at, fill="black")
        draw.text((left, max(0, top - 12)), str(number), fill="white")
    written = BytesIO()
    image.save(written, "PNG")
    return written.getvalue()


class Recognition(Perception):
    """A frame with recognised segments; places and sizes come from depth as before."""

    def __init__(
        self, view: View, memory: Memory, things: Mapping[int, Thing], rooms: Sequence[Thing]
    ) -> None:
        super().__init__(view, memory, things, rooms)
        self._said: dict[int, RecognisedBox] = {}
        self._owners: Sequence[int] = ()
        self._kinds: Mapping[str, str] = {}

    def of_picture(self, picture: Picture, said: Sequence[RecognisedBox] | None, agents: int) -> Percept:
        """Return the recognised objects; without any, only the missing ones, which depth alone shows."""
        self._owners, self._kinds = picture.owners, picture.classes
        self._said = dict(zip(picture.owners, said or (), strict=False))
        visible = {*map(person, range(agents))}
        people = [
            owner for owner, each in self._said.items() if each.what == PERSON_KIND and owner in visible
        ]
        held: dict[int, list[int]] = {-1 - owner: [] for owner in people}
        present = [owner for owner in self._owners if owner in self._things and owner in self._points]
        seen = [each for owner in present if (each := self._seen_as(owner)) is not None]
        for each in seen:
            if each.relation == "held by" and each.holder in held:
                held[each.holder].append(each.id)
        undone = self._memory.undone()
        return Percept(seen=seen, people=held, missing=[*self._missing(), *undone], blind=said is None)

    def _seen_as(self, owner: int) -> Seen | None:
        """Return an object as it was recognised; if hands have touched it, as what it is."""
        thing, said = self._things[owner], self._said.get(owner)
        name, kind = (said.what, self._kinds.get(said.what)) if said is not None else ("", None)
        is_open = said.is_open if said is not None else None
        if owner in self._memory.felt:
            name, kind = thing.name, thing.category if thing.name in self._kinds else None
            is_open = owner not in self._shut if kind == "container" else None
        if kind is None or kind == PERSON_KIND:
            return None
        self._remember(owner)
        self._memory.names[owner] = name
        category: Kind = "container" if kind == "container" else "surface" if kind == "surface" else "object"
        held: Held | None = None
        if category == "object" and said is not None and said.holder is not None and said.relation:
            holder = self._owners[said.holder]  # by the number of its box
            if said.relation == "held by":
                held = (said.relation, -1 - holder) if holder < 0 else None
            elif holder in self._things and self._things[holder].category != "object":
                held = (said.relation, holder)
        return self._as_seen(owner, name, category, held, is_open)
