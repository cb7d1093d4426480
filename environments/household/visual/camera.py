"""A pinhole camera: colour, depth and segments in one pass, by ray casting; it needs no display."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mneme.core.errors import needs
from mneme.environments.household.visual.solids import Solid

with needs("The visual setting", "visual"):
    from embreex.mesh_construction import TriangleMesh
    from embreex.rtcore_scene import EmbreeScene

FIELD = 90.0
"""Horizontal and vertical field of view, in degrees."""
EYES = 1.6
"""Height of the eyes above the floor, in metres."""
DOWN = 20.0
"""Degrees by which the eyes look down."""
NO_OBJECT = -(2**31)
"""Owner of a pixel whose ray hits nothing."""
LIGHT_DIRECTION = np.array((0.35, 0.85, 0.4), np.float32)


class Pose(NamedTuple):
    """Position of eyes (x, z), their direction (degrees from x towards z), and the height of the floor."""

    position: tuple[float, float]
    heading: float
    floor: float = 0.0

    def axes(self) -> NDArray[np.float32]:
        """Return the unit vectors right, up and forward as rows."""
        turn, down = math.radians(self.heading), math.radians(-DOWN)
        # Spherical coordinates of the line of sight; right is horizontal, and up is at right angles to both.
        forward = (math.cos(down) * math.cos(turn), math.sin(down), math.cos(down) * math.sin(turn))
        right = (math.sin(turn), 0.0, -math.cos(turn))
        return np.array((right, np.cross(forward, right), forward), np.float32)

    def eye(self) -> NDArray[np.float32]:
        """Return the point from which rays start."""
        return np.array((self.position[0], self.floor + EYES, self.position[1]), np.float32)


@dataclass(frozen=True)
class View:
    """A frame: colour (n, n, 3); for each pixel metres along the ray, owner, and whether a door, (n, n)."""

    pose: Pose
    colour: NDArray[np.uint8]
    depth: NDArray[np.float32]
    segments: NDArray[np.int32]
    doors: NDArray[np.bool_]

    @property
    def bytes(self) -> int:
        """Return the bytes of all passes."""
        return sum(each.nbytes for each in (self.colour, self.depth, self.segments, self.doors))

    def points(self) -> dict[int, NDArray[np.float32]]:
        """Return the points in space (k, 3) that show each owner."""
        owners, depth = self.segments.ravel(), self.depth.ravel()
        rays = directions(self.pose, len(self.depth)).reshape(-1, 3)
        order = np.argsort(owners, kind="stable")  # one sort instead of a mask for each owner
        order = order[np.isfinite(depth[order])]
        points = self.pose.eye() + rays[order] * depth[order][:, None]
        found, starts = np.unique(owners[order], return_index=True)
        return dict(zip(found.tolist(), np.split(points, starts[1:]), strict=True))

    def pixel_of(self, point: Sequence[float]) -> tuple[int, int, float] | None:
        """Return the row, column and distance of a point in the frame; None if it is outside."""
        offset = np.array(point, np.float32) - self.pose.eye()
        across, up, ahead = self.pose.axes() @ offset
        if ahead <= 0:
            return None
        # Pinhole: at a distance `ahead`, half a frame is `wide` metres; rows count downwards.
        size, wide = len(self.depth), ahead * math.tan(math.radians(FIELD / 2))
        column, row = int((across / wide + 1) / 2 * size), int((1 - up / wide) / 2 * size)
        inside = 0 <= row < size and 0 <= column < size
        return (row, column, float(np.linalg.norm(offset))) if inside else None


def render(solids: Sequence[Solid], pose: Pose, size: int) -> View:
    """Render the surroundings from a pose, size × size pixels."""
    sizes = [len(solid.faces) for solid in solids]
    starts = np.cumsum([0, *(len(solid.vertices) for solid in solids)])[:-1]
    vertices = np.concatenate([solid.vertices for solid in solids])
    faces = np.concatenate([solid.faces + start for solid, start in zip(solids, starts, strict=True)])
    scene = EmbreeScene()  # of one mesh: the number of a hit triangle tells whose it is
    TriangleMesh(scene, vertices.astype(np.float32), faces.astype(np.int32))
    rays = directions(pose, size).reshape(-1, 3)
    origins = np.broadcast_to(pose.eye(), rays.shape).copy()
    hits = scene.run(origins, np.ascontiguousarray(rays), output=True)
    struck = hits["primID"] >= 0  # -1: the ray meets nothing
    solid = np.where(struck, np.repeat(np.arange(len(solids)), sizes)[hits["primID"]], len(solids))
    owners = np.array([*(each.owner for each in solids), NO_OBJECT], np.int32)
    doors = np.array([*(each.door for each in solids), False], np.bool_)
    colours = np.array([*(each.colour for each in solids), (0, 0, 0)], np.float32)
    shape = (size, size)
    return View(
        pose=pose,
        colour=_shaded(colours[solid], hits["Ng"]).reshape(*shape, 3),
        depth=np.where(struck, hits["tfar"], np.inf).astype(np.float32).reshape(shape),
        segments=owners[solid].reshape(shape),
        doors=doors[solid].reshape(shape),
    )


def _shaded(colours: NDArray[np.float32], normals: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Darken by the angle to the light; either side of a triangle is lit alike."""
    # Lambert's cosine between normal and light, without a sign, over an ambient share of 0.45.
    lengths = np.maximum(np.linalg.norm(normals, axis=1), 1e-9) * np.linalg.norm(LIGHT_DIRECTION)
    lit = 0.45 + 0.55 * np.abs(normals @ LIGHT_DIRECTION) / lengths
    shaded: NDArray[np.uint8] = np.clip(255 * colours * lit[:, None], 0, 255).astype(np.uint8)
    return shaded


def directions(pose: Pose, size: int) -> NDArray[np.float32]:
    """Return the unit direction of each pixel's ray, (size, size, 3)."""
    return _rays(size) @ pose.axes()


@lru_cache(8)
def _rays(size: int) -> NDArray[np.float32]:
    # Through the centres of pixels on a plane one metre ahead.
    steps = ((np.arange(size) + 0.5) / size * 2 - 1) * math.tan(math.radians(FIELD / 2))
    across, up = np.meshgrid(steps, -steps)
    rays = np.stack([across, up, np.ones_like(across)], axis=-1)
    unit: NDArray[np.float32] = (rays / np.linalg.norm(rays, axis=-1, keepdims=True)).astype(np.float32)
    return unit
