"""Operations on the household runs of this machine: what was played, step by step."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from mneme.api.household_runs import UNREADABLE_ERRORS, Line, Run, brief, no_run, runs, unallocated
from mneme.api.operation import BY_USER, Operations, reads
from mneme.api.server_state import ServerState
from mneme.api.threads import Threads
from mneme.core.settings import settings
from mneme.environments.household.episode import Episode, Thing
from mneme.environments.household.scene import AGENT_NAMES, Scene, scenes
from mneme.stores.ledger.ledger import Ledger

FIXTURES = ("room", "container", "surface")
"""Types of objects that the floor plan of an apartment shows."""
RunName = Annotated[str, Field(description="The run's name.", examples=["wash-dishes-2-0"])]


class Played(BaseModel):
    """A run: its task, team, steps and outcome; unknown values are None."""

    run: str
    task: str | None = None
    agents: int | None = None
    steps: int | None = None
    at_least: int | None = Field(None, description="No team needs fewer steps.")
    outcome: str = Field(
        description="done, not done (and rounds left to proposals), interrupted, never began, unreadable."
    )
    answered_by: str | None = None


class Goal(BaseModel):
    """A goal, and how many of its objects are in place."""

    what: str
    done: int
    count: int


class Fixture(BaseModel):
    """A room, container or surface on the floor plan: its centre and size in metres, seen from above."""

    id: int
    name: str
    kind: Literal["room", "container", "surface"]
    x: float
    z: float
    width: float
    depth: float


class Lying(BaseModel):
    """An object of the task that was seen and that nobody holds, and its position in metres."""

    name: str
    x: float
    z: float


class Member(BaseModel):
    """An agent after a step: its place, in words and in metres, the objects it holds, its action."""

    name: str
    room: str
    x: float
    z: float
    holds: Sequence[str]
    does: str


class Moment(BaseModel):
    """The household after a step; step 0 is the start."""

    step: int
    members: Sequence[Member]
    goals: Sequence[Goal]
    opened: Sequence[str] = Field(description="The containers that are open.")
    open: Sequence[int] = Field(description="The same by their ids on the floor plan.")
    things: Sequence[Lying] = ()


class Decision(BaseModel):
    """Proposals and allocation after a step, or the manager's synopsis."""

    at: int
    proposals: Sequence[str] = ()
    allocation: Sequence[str] = ()
    reason: str = ""
    synopsis: str = ""


class Replay(BaseModel):
    """A run from its start to its end, as far as it was written."""

    played: Played
    rooms: Sequence[str]
    plan: Sequence[Fixture]
    steps: Sequence[Moment]
    decisions: Sequence[Decision]
    missing: Sequence[int] = Field(description="Steps that were played and are not kept.")
    has_eyes: bool = Field(False, description="Whether the members saw frames.")


class Sight(BaseModel):
    """A member's view after a step, as a picture."""

    name: str
    picture: str = Field(description="Colour, depth and segments side by side: a WebP, as a data URL.")


class Household(Operations):
    """Operations on household runs, as the checkpoints hold them.

    With keys a run belongs to its player, who owns its thread; a run played without a key has no owner, and
    only this machine shows it (`mneme household list`).
    """

    OWNER = "user"

    def __init__(
        self, ledger: Ledger, user: str, caller: str = BY_USER, *, state: ServerState | None = None
    ) -> None:
        super().__init__(ledger, user, caller)
        self._threads = Threads(ledger, user, caller, state=state)  # with keys they say whose a run is

    @reads("household/runs")
    async def list(self) -> Sequence[Played]:
        """Return the runs, the latest first; with keys, those that the key's user played."""
        found = await self._visible()
        return await asyncio.to_thread(lambda: [played(each) for each in found])  # it decodes whole runs

    @reads("household/runs/{name}")
    async def get(self, name: RunName) -> Replay:
        """Return a run step by step. Raises NotFound, BadInput."""
        return await asyncio.to_thread(replayed, await self._seen(name))

    @reads("household/runs/{name}/sights/{step}")
    async def sights(
        self, name: RunName, step: Annotated[int, Field(ge=0, description="The step; 0: the start.")]
    ) -> Sequence[Sight]:
        """Return each member's view after a step of a run in the visual setting; else nothing.

        Raises NotFound, BadInput, and MnemeError if the renderer is not installed on the server.
        """
        return await asyncio.to_thread(_sights, await self._seen(name), step)

    async def _seen(self, name: str) -> Run:
        found = [run for run in await self._visible(name) if run.name == name]
        if not found:
            raise no_run(name)
        return found[0]

    async def _visible(self, beginning: str = "") -> Sequence[Run]:
        if settings().auth is None:
            return await runs(beginning)
        mine = {each.id for each in await self._threads.list()}
        found = await runs(beginning, mine)  # and all files of earlier versions
        return await asyncio.to_thread(
            lambda: [run for run in found if run.begun().get("owner") == self._owner]
        )


def played(run: Run) -> Played:
    """Return a run's task, steps and outcome."""
    try:
        has_begun = run.first("episode") is not None
        return _standing(run) if has_begun else Played(run=run.name, outcome="never began")
    except UNREADABLE_ERRORS:
        return Played(run=run.name, outcome="unreadable")


def _standing(run: Run) -> Played:
    end, episode = run.first("end"), run.episode()
    outcome = "interrupted" if end is None else "done" if end["success"] else "not done"
    if end and (lost := unallocated(end["counters"])):
        outcome += f", {lost}"
    return Played(
        run=run.name,
        outcome=outcome,
        task=episode.category,
        agents=len(episode.starts),
        steps=end["steps"] if end else len(run.frames()),
        at_least=end["bound"] if end else None,
        answered_by="; ".join(end["answered_by"]) if end else None,
    )


def replayed(run: Run) -> Replay:
    """Return a run step by step. Raises BadInput."""
    episode, frames = run.episode(), run.frames()
    where = [[each.room for each in episode.starts], *(frame.rooms for frame in frames)]
    seen = zip(scenes(episode, frames), where, strict=True)
    return Replay(
        played=_standing(run),
        rooms=[room.name for room in episode.rooms()],
        plan=[_fixture(thing) for thing in episode.things if thing.category in FIXTURES],
        steps=[moment_of(episode, scene, rooms) for scene, rooms in seen],
        decisions=[_decision(line) for line in run.lines if line["kind"] == "decision"],
        missing=run.missing(),
        has_eyes=run.has_eyes(),
    )


def _sights(run: Run, step: int) -> list[Sight]:
    if not run.has_eyes():
        return []
    from mneme.environments.household.visual.film import Sights, data_url  # noqa: PLC0415  (an extra)

    views = Sights(run.episode(), run.frames()).at(step)
    return [Sight(name=name, picture=data_url(view)) for name, view in zip(AGENT_NAMES, views, strict=False)]


def moment_of(episode: Episode, scene: Scene, rooms: Sequence[int]) -> Moment:
    """Return the household in the state of a scene, with each agent's room."""
    names = {thing.id: thing.name for thing in episode.things}
    members = [
        Member(name=name, room=names[where], x=x, z=z, holds=[names[each] for each in held], does=does)
        for name, where, held, does, [*_, (x, z)] in zip(  # an agent stands at the end of its path
            AGENT_NAMES[: len(rooms)], rooms, scene.hands, scene.doing, scene.paths, strict=True
        )
    ]
    goals = [
        Goal(
            what=f"{each.name} {each.relation} {names[each.target]}",
            done=scene.progress.get(each.key, 0),
            count=each.count,
        )
        for each in episode.goals
    ]
    opened = sorted(f"{names[each]} ({names[episode.room_of(each)]})" for each in scene.open)
    wanted = episode.goal_names()
    seen = [each for each in episode.things if each.name in wanted and each.id in scene.known]
    by_id = episode.by_id()
    lying = [
        Lying(name=each.name, x=holder.center[0], z=holder.center[2])
        for each in seen
        if each.id in scene.places and (holder := by_id[scene.places[each.id]])
    ]
    return Moment(
        step=scene.step,
        members=members,
        goals=goals,
        opened=opened,
        open=sorted(scene.open),
        things=lying,
    )


def _fixture(thing: Thing) -> Fixture:
    (x, _, z), (width, _, depth) = thing.center, thing.size
    return Fixture(id=thing.id, name=thing.name, kind=thing.category, x=x, z=z, width=width, depth=depth)


def _decision(line: Line) -> Decision:
    if line["step"] == "summarise":
        return Decision(at=line["at"], synopsis=line.get("synopsis") or f"none: {line['fallback']}")
    return Decision(
        at=line["at"],
        proposals=[brief(each["action"]) for each in line["proposals"]],
        allocation=[brief(each) for each in line.get("allocation") or ()],
        reason=line.get("reason", ""),
    )
