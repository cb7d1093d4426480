"""A hand-made model that sees: it knows frames of the household by their colours, and answers over the wire.

It reads nothing but the request, the picture in it included. Each class is drawn in its own hue, whatever the
light; two classes of one hue it mixes up, and whether a container is open it guesses from how much of its box
has the colour, and whether something is seen in it. It stands in for no vision model: it tells that pictures
arrive, and what errors of sight cost.
"""

import math
import re
from base64 import b64decode
from io import BytesIO
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from mneme.environments.household.acting import AGENT_NAMES
from mneme.environments.household.visual.solids import colour_of
from mneme.prompts.household.sight import OTHER, recognise_frame
from tests.doubles.ollama_streams import Answer
from tests.doubles.stand_in import Json

BOX = re.compile(r"^\[\d+\] left (\d+), top (\d+), right (\d+), bottom (\d+)$", re.MULTILINE)
CLASS = re.compile(r"^(\S+) \((\w+), drawn as .*\)$", re.MULTILINE)
NEAR = 0.025
"""How far the colour of a pixel may be from that of its class; colours have the length 1."""
LEAST = 0.08
"""The part of a box that a class must fill to be in it."""
FILLED = 0.55
"""The part of its box that a shut container fills."""


class Thing(NamedTuple):
    """What stands in a box: its class, and the part of the box that has its colour."""

    what: str
    share: float


def sees(body: Json) -> Answer:
    """Answer what the boxes of a picture show; the last message has the question."""
    question = next(each for each in body["messages"] if each.get("images"))
    image = Image.open(BytesIO(b64decode(question["images"][0]))).convert("RGB")
    pixels = np.asarray(image, np.float32)
    boxes = [tuple(map(int, found)) for found in BOX.findall(question["content"])]
    kinds = dict(CLASS.findall(question["content"]))
    things = [_thing(pixels[top:bottom, left:right], kinds) for left, top, right, bottom in boxes]
    marked = [_marked(number, things, boxes, kinds) for number in range(len(boxes))]
    return {"scene": f"{recognise_frame.name}: by colour.", "things": marked}


def _thing(pixels: NDArray[np.float32], kinds: dict[str, str]) -> Thing:
    """Return the class whose colour fills most of a box, by some 200 of its pixels."""
    stride = max(1, math.isqrt(pixels.shape[0] * pixels.shape[1] // 200))
    pixels = pixels[::stride, ::stride]
    unit = pixels / np.maximum(np.linalg.norm(pixels, axis=2, keepdims=True), 1)
    shares = [Thing(name, _share(unit, name, kind)) for name, kind in kinds.items()]
    best = max(shares, key=lambda each: each.share)
    return best if best.share >= LEAST else Thing(OTHER, 0.0)


def _share(unit: NDArray[np.float32], name: str, kind: str) -> float:
    if kind == "person":
        colours = [colour_of(f"person {number}", kind) for number in range(len(AGENT_NAMES))]
    else:
        colours = [colour_of(name, kind)]
    wanted = np.array(colours, np.float32)
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    apart = np.linalg.norm(unit[:, :, None, :] - wanted, axis=3).min(axis=2)
    return float((apart < NEAR).mean())


def _marked(number: int, things: list[Thing], boxes: list[tuple[int, ...]], kinds: dict[str, str]) -> Json:
    what, share = things[number]
    state, relation, holder = "-", "-", -1
    if kinds.get(what) == "container":
        is_open = share < FILLED or any(
            kinds.get(each.what) == "object" and _is_within(boxes[n], boxes[number])
            for n, each in enumerate(things)
        )
        state = "open" if is_open else "closed"
    if kinds.get(what) == "object":
        relation, holder = _held(number, things, boxes, kinds)
    return {"box": number, "what": what, "state": state, "relation": relation, "holder": holder}


def _is_within(inner: tuple[int, ...], outer: tuple[int, ...]) -> bool:
    starts, ends = zip(inner[:2], outer[:2], strict=True), zip(inner[2:], outer[2:], strict=True)
    return all(here > there for here, there in starts) and all(here < there for here, there in ends)


def _held(
    number: int, things: list[Thing], boxes: list[tuple[int, ...]], kinds: dict[str, str]
) -> tuple[str, int]:
    """Return what is behind the foot of a thing, the smallest that is known or else the largest box."""
    left, _, right, bottom = boxes[number]
    x, y = (left + right) / 2, bottom - 1
    behind = [
        ((each[2] - each[0]) * (each[3] - each[1]), n)
        for n, each in enumerate(boxes)
        if kinds.get(things[n].what) != "object" and each[0] <= x < each[2] and each[1] <= y < each[3]
    ]
    if not behind:
        return "-", -1
    known = [each for each in behind if things[each[1]].what != OTHER]
    _, holder = min(known) if known else max(behind)
    kind = kinds.get(things[holder].what, OTHER)
    return {"container": "inside", "person": "held by"}.get(kind, "on"), holder
