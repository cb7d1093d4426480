"""Measure what agents with eyes see: how fast frames come, and how right what is perceived is.

In each generated apartment, with every container open, one agent looks round in every room; what it then
believes is compared with the world, thing by thing. Without eyes all of it is known, and exactly.
"""

import asyncio
import math
import time
from collections.abc import Sequence

from pydantic import BaseModel, Field

from mneme.environments.household import Beliefs, Known, Macro, Plan, advance
from mneme.environments.household.generator import generate
from mneme.environments.household.visual.world import SeeingWorld
from mneme.evals.options import RUNS, Fresh, Out, Positive
from mneme.evals.report import Journal, Progress, Report, Row, open_journal, table

FRAMES = 100
"""Frames that are timed."""


class Options(BaseModel):
    """In how many apartments, and how large frames are."""

    episodes: int = Field(10, ge=1, description="Generated apartments.")
    sizes: list[Positive] = Field([128, 256], min_length=1, description="Pixels of a frame, each way.")
    seed: int = Field(9000, ge=0, description="The first apartment's seed.")
    out: Out = RUNS
    fresh: Fresh = False


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Look round in each apartment at each size, and report."""
    journal = open_journal(options.out, "household_sight", {}, fresh=options.fresh)
    seeds = range(options.seed, options.seed + options.episodes)
    cases = [(size, seed) for size in options.sizes for seed in seeds]
    for number, (size, seed) in enumerate(cases, 1):
        if _name(size, seed) not in journal:
            journal.add(_name(size, seed), await asyncio.to_thread(look_round, size, seed))
        progress(number, len(cases), _name(size, seed))
    return report([journal[_name(*case)] for case in cases], journal)


def _name(size: int, seed: int) -> str:
    return f"{size} pixels, apartment {seed}"


def look_round(size: int, seed: int) -> Row:
    """Let an agent look round in each room; count what it knows, and what of that is right."""
    episode = generate(seed, agents=1)
    episode = episode.model_copy(update={"open": [t.id for t in episode.things if t.category == "container"]})
    world, beliefs = SeeingWorld(episode, size=size), [Beliefs(agent=0)]
    for room in episode.rooms():
        advance(world, [Plan.of(Macro(kind="goexplore", target=room.id), episode.goals)], beliefs)
    there = {*world.shown(), *(thing for thing in world.wanted() if not world.hidden(thing))}
    known = [each for thing, each in beliefs[0].things.items() if thing in there]
    objects = [each for each in known if each.category == "object"]
    return {
        "size": size,
        "steps": world.steps,
        "there": len(there),
        "seen": len(known),
        "in_its_room": sum(each.room == world.room_of(each.id) for each in known),
        "objects": len(objects),
        "in_its_place": sum(world.places[each.id] == (each.relation, each.holder) for each in objects),
        "errors": [round(_error(world, each), 3) for each in known],
        **_speed(world),
    }


def _error(world: SeeingWorld, known: Known) -> float:
    """Return how many metres lie between where something seems to be and where it is drawn, on the floor."""
    drawn = world.drawn(known.id)
    return math.hypot(known.center[0] - drawn.center[0], known.center[2] - drawn.center[2])


def _speed(world: SeeingWorld) -> Row:
    """Time frames in the furnished room, by the clock and by the processor."""
    wall, processor = time.perf_counter(), time.thread_time()
    for _ in range(FRAMES):
        view = world.look(0)
    return {
        "ms": 1000 * (time.perf_counter() - wall) / FRAMES,
        "cpu_ms": 1000 * (time.thread_time() - processor) / FRAMES,
        "bytes": view.bytes,
        "bytes_of_colour": view.colour.nbytes,
    }


def report(rows: Sequence[Row], journal: Journal) -> Report:
    """Show a line for each size of a frame."""
    sizes = list(dict.fromkeys(row["size"] for row in rows))
    summaries = [_summary(size, [row for row in rows if row["size"] == size]) for size in sizes]
    lines = [list(each.values()) for each in summaries]
    return Report(
        name="household_sight",
        answered_by="nobody: frames are rendered and measured",
        raw=journal.path,
        rows=list(rows),
        summary={"sizes": summaries},
        tables=[table("What agents see, of what there is to see", list(summaries[0]), lines)],
        notes=[
            "A frame has colour, depth and segments, in one pass; `frames/s` is by processor time.",
            "Every container was open. `in place`: on or inside the right thing, of what can be carried.",
        ],
    )


def _summary(size: int, rows: Sequence[Row]) -> Row:
    errors = sorted(error for row in rows for error in row["errors"])
    seen, objects = sum(row["seen"] for row in rows), sum(row["objects"] for row in rows)
    cpu = sum(row["cpu_ms"] for row in rows) / len(rows)
    return {
        "pixels": f"{size} × {size}",
        "seen": f"{seen} of {sum(row['there'] for row in rows)}",
        "room": f"{sum(row['in_its_room'] for row in rows)} of {seen}",
        "in place": f"{sum(row['in_its_place'] for row in rows)} of {objects}",
        "median error m": round(errors[len(errors) // 2], 2),
        "frames/s": round(1000 / cpu, 1),
        "kB a frame": round(rows[0]["bytes"] / 1000),
        "kB of colour": round(rows[0]["bytes_of_colour"] / 1000),
    }
