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
from mneme.environments.household.visual.recognition import PICTURE
from mneme.environments.household.visual.world import SeeingWorld
from mneme.evals.options import RUNS, Fresh, Out, Positive
from mneme.evals.report import Journal, Progress, Report, Row, open_journal, table
from mneme.models.asking.responders import check_sight
from mneme.nodes.household.eyes import SEGMENTS, Eyes
from mneme.prompts.household.sight import recognise_frame

FRAMES = 100
"""Frames that are timed."""


class Options(BaseModel):
    """In how many apartments, and how large frames are."""

    episodes: int = Field(10, ge=1, description="Generated apartments.")
    sizes: list[Positive] = Field([128, 256], min_length=1, description="Pixels of a frame, each way.")
    seed: int = Field(9000, ge=0, description="The first apartment's seed.")
    perception: str = Field(
        SEGMENTS, description="What sees: `segments`, or a vision model, such as `ollama:qwen2.5vl:3b`."
    )
    out: Out = RUNS
    fresh: Fresh = False


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Look round in each apartment at each size, and report."""
    asked = {} if options.perception == SEGMENTS else {"perception": options.perception}
    if asked:
        await check_sight(options.perception)
    journal = open_journal(options.out, "household_sight", asked, fresh=options.fresh)
    seeds = range(options.seed, options.seed + options.episodes)
    sizes = [PICTURE] if asked else options.sizes
    cases = [(size, seed) for size in sizes for seed in seeds]
    for number, (size, seed) in enumerate(cases, 1):
        if _name(size, seed) not in journal:
            eyes = Eyes(options.perception) if asked else None
            journal.add(_name(size, seed), await asyncio.to_thread(look_round, size, seed, eyes))
        progress(number, len(cases), _name(size, seed))
    return report([journal[_name(*case)] for case in cases], journal, options.perception)


def _name(size: int, seed: int) -> str:
    return f"{size} pixels, apartment {seed}"


def look_round(size: int, seed: int, eyes: Eyes | None = None) -> Row:
    """Let an agent look round in each room; count what it knows, and what of that is right."""
    episode = generate(seed, agents=1)
    episode = episode.model_copy(update={"open": [t.id for t in episode.things if t.category == "container"]})
    world, beliefs = SeeingWorld(episode, size=size, recognise=eyes), [Beliefs(agent=0)]
    for room in episode.rooms():
        advance(world, [Plan.of(Macro(kind="goexplore", target=room.id), episode.goals)], beliefs)
    there = {*world.shown(), *(thing for thing in world.wanted() if not world.hidden(thing))}
    known = [each for thing, each in beliefs[0].things.items() if thing in there]
    objects = [each for each in known if each.category == "object"]
    named = [each for each in known if each.name == world.things[each.id].name]
    boxes = [each for each in named if each.category == "container"]
    return {
        "size": size,
        "named": len(named),
        "not_there": len(beliefs[0].things) - len(known),
        "containers": len(boxes),
        "state": sum(each.is_open is (each.id in world.open) for each in boxes),
        **(_cost(eyes) if eyes is not None else {}),
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


def _cost(eyes: Eyes) -> Row:
    """Count what it took to recognise the frames."""
    return {
        "frames": len(eyes.answers) + len(eyes.lost),
        "blind": len(eyes.lost),
        "tokens": sum(each.prompt_tokens + each.reply_tokens for each in eyes.answers),
        "calls": sum(each.attempts for each in eyes.answers) + (1 + recognise_frame.repairs) * len(eyes.lost),
    }


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


def report(rows: Sequence[Row], journal: Journal, perception: str = SEGMENTS) -> Report:
    """Show a line for each size of a frame."""
    sizes = list(dict.fromkeys(row["size"] for row in rows))
    summaries = [_summary(size, [row for row in rows if row["size"] == size]) for size in sizes]
    lines = [list(each.values()) for each in summaries]
    return Report(
        name="household_sight",
        answered_by="nobody: frames are rendered and measured" if perception == SEGMENTS else perception,
        raw=journal.path,
        rows=list(rows),
        summary={"sizes": summaries},
        tables=[table("What agents see, of what there is to see", list(summaries[0]), lines)],
        notes=[
            "A frame has colour, depth and segments, in one pass; `frames/s` is by processor time.",
            "Every container was open. `in place`: on or inside the right thing, of what can be carried.",
            "`not there`: taken for something that is looked for, and is something else.",
        ],
    )


def _summary(size: int, rows: Sequence[Row]) -> Row:
    errors = sorted(error for row in rows for error in row["errors"])
    seen, objects = sum(row["seen"] for row in rows), sum(row["objects"] for row in rows)
    cpu = sum(row["cpu_ms"] for row in rows) / len(rows)
    return {
        "pixels": f"{size} × {size}",
        "seen": f"{seen} of {sum(row['there'] for row in rows)}",
        "class": f"{sum(row['named'] for row in rows)} of {seen}",
        "not there": sum(row["not_there"] for row in rows),
        "open": f"{sum(row['state'] for row in rows)} of {sum(row['containers'] for row in rows)}",
        "room": f"{sum(row['in_its_room'] for row in rows)} of {seen}",
        "in place": f"{sum(row['in_its_place'] for row in rows)} of {objects}",
        "median error m": round(errors[len(errors) // 2], 2),
        "frames/s": round(1000 / cpu, 1),
        "kB a frame": round(rows[0]["bytes"] / 1000),
        "kB of colour": round(rows[0]["bytes_of_colour"] / 1000),
        **({"asked": _asked(rows)} if "frames" in rows[0] else {}),
    }


def _asked(rows: Sequence[Row]) -> str:
    frames, blind, calls, tokens = (
        sum(row[name] for row in rows) for name in ("frames", "blind", "calls", "tokens")
    )
    return f"{frames} frames, {calls} calls, {tokens} tokens, {blind} without a usable answer"
