"""`mneme household run`: a team plays an episode, in lines, on a screen to watch, or as JSON."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, cast
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from rich.markup import escape

from environments.household.bound import lower_bound
from environments.household.episode import CATEGORIES, Episode
from environments.household.generator import generate
from environments.household.loading import load_episode
from environments.household.play import Frame
from environments.household.scene import NAMES
from environments.household.world import World
from mneme.errors import BadInput
from mneme.household_missed import rebuild
from mneme.household_runs import Asked, Line, Run, brief, checked, to_play
from mneme.household_screen import Screen
from mneme.show import console, print_json
from mneme.talk import show_notice
from mneme.workflows import Workflows, open_workflows, server_errors

GRAPH = "mita"
STEPS = 6 * World.LIMIT + 20
"""The graph's steps that an episode can take: at most six a round, and a round is a step of the world."""
PACE = 0.1
"""Seconds that each step is shown where somebody watches."""
DECISIONS = ("allocate", "follow_proposals", "summarise")
"""The graph's steps that are told as decisions."""
BUSY: tuple[Literal["running", "pending"], ...] = ("running", "pending")
Context = dict[str, Any]


@dataclass(frozen=True)
class Given:
    """What is to be played: a task, or an episode's file; by how many; and under which name."""

    task: str
    agents: int
    episode: Path | None
    seed: int
    name: str | None

    def made(self) -> Episode:
        """Load or generate the episode. Raises BadInput naming the field."""
        if self.name is not None:
            checked(self.name)
        if self.episode is None:
            return generate(self.seed, self._category(), self.agents)
        if self.task:
            raise BadInput("--task: an episode has its own task.", "Give --task or --episode.")
        return load_episode(self.episode, self.agents, self.seed)

    def described(self) -> str:
        """Name a run by what it plays."""
        what = self.episode.stem if self.episode else self._category() or "task"
        words = "".join(letter if letter.isalnum() else "-" for letter in what.lower()).strip("-")
        return f"{words[:50]}-{self.agents}-{self.seed}"

    def _category(self) -> str | None:
        if not self.task:
            return None
        found = [each for each in CATEGORIES if each.lower() == self.task.strip().lower()]
        if not found:
            raise BadInput(f"--task: there is no {self.task!r}.", f"There are: {', '.join(CATEGORIES)}.")
        return found[0]


class Shown(Protocol):
    """Who is told what the team does."""

    def decided(self, line: Line) -> None: ...
    def stepped(self, frame: Frame) -> None: ...


async def run(given: Given, context: Context, watch: bool, as_json: bool) -> int:
    """Play an episode, or go on with a killed run; return 1 where the goals were not reached in time."""
    if watch and as_json:
        raise BadInput("--watch and --json: one or the other.", "Leave one out.")
    episode = given.made()
    await show_notice(context["member"], context["manager"])
    async with open_workflows(GRAPH) as flows:
        found = to_play(given.name, given.described(), Asked(episode, context))
        if not as_json:
            how = "goes on" if found.began() else "begins"
            console.print(f"[bold]{escape(found.name)}[/] {how}", soft_wrap=True)
        with _screen(episode, found, watch) as screen:
            played = _Played(found, flows, episode, context, screen or _Lines(as_json))
            ended = await played.to_the_end()
    _print_result(found, ended, as_json)
    return 0 if ended["success"] else 1


def _screen(episode: Episode, found: Run, watch: bool) -> AbstractContextManager[Screen | None]:
    return Screen(episode, found.lines(), console) if watch else nullcontext()


@dataclass(frozen=True)
class _Played:
    """A run being played: what the graph tells goes into the trace and to whoever is shown it."""

    run: Run
    flows: Workflows
    episode: Episode
    context: Context
    shown: Shown

    async def to_the_end(self) -> Line:
        """Play from the checkpoint, where there is one, and keep how it ended."""
        thread = self._thread()
        config: RunnableConfig = {**await self.flows.thread(thread, GRAPH), "recursion_limit": STEPS}
        await self._catch_up(config)
        async for told in self._under_way(config):
            await self._keep(told, thread)
        due, values = await self.flows.left_at(GRAPH, config)
        if due or not values:
            given = None if values else {"episode": self.episode.model_dump(mode="json")}
            async for told in self.flows.stream(GRAPH, given, config, self.context, "custom"):
                await self._keep(told, thread)
        return await self._end(config)

    def _thread(self) -> str:
        """Name the thread: a new one for each run that begins, whatever was once played under its name."""
        begun = self.run.began()
        fresh = f"household/{self.run.name}/{uuid4().hex}"
        return fresh if begun is None else str(begun.get("thread", f"household/{self.run.name}"))

    async def _catch_up(self, config: RunnableConfig) -> None:
        """Leave out what is behind the checkpoint, and rebuild what nobody wrote before it."""
        _, values = await self.flows.left_at(GRAPH, config)
        if values and self.run.began():
            self.run.trace.append("resumed", at=values.get("steps", 0))
            await rebuild(self.run, self.flows.graphs[GRAPH], config, values)

    async def _under_way(self, config: RunnableConfig) -> AsyncIterator[Mapping[str, Any]]:
        """Yield what a server tells that plays the run already, since its client was killed."""
        if self.flows.server is None:
            return
        runs, thread = self.flows.server.runs, config["configurable"]["thread_id"]
        with server_errors():
            for status in BUSY:
                for each in await runs.list(thread, status=status):
                    async for part in runs.join_stream(thread, each["run_id"], stream_mode="custom"):
                        if part.event == "custom":
                            yield cast(Mapping[str, Any], part.data)

    async def _end(self, config: RunnableConfig) -> Line:
        _, values = await self.flows.left_at(GRAPH, config)
        await rebuild(self.run, self.flows.graphs[GRAPH], config, values)
        ended = {name: values[name] for name in ("success", "steps", "progress", "counters", "answered_by")}
        self.run.trace.append("end", bound=lower_bound(self.episode).steps, **ended)
        told_end = self.run.first("end")
        assert told_end is not None
        return told_end

    async def _keep(self, told: Mapping[str, Any], thread: str) -> None:
        """Write down what was told, then show it; a run begins with the first that was decided or done."""
        if told["step"] not in (*DECISIONS, "execute"):
            return
        if self.run.began() is None:
            episode = self.episode.model_dump(mode="json")
            self.run.trace.append("episode", episode=episode, context=self.context, thread=thread)
        if told["step"] == "execute":
            for each in told["frames"]:
                frame = Frame.model_validate(each)
                self.run.trace.frame(frame)
                self.shown.stepped(frame)
                await asyncio.sleep(PACE if isinstance(self.shown, Screen) else 0)
        else:
            line = {"at": self._step(), **told}
            self.run.trace.append("decision", **line)
            self.shown.decided({"kind": "decision", **line})

    def _step(self) -> int:
        frames = self.run.frames()
        return frames[-1].step if frames else 0


@dataclass(frozen=True)
class _Lines:
    """A line per decision; steps are not told."""

    as_json: bool

    def decided(self, line: Line) -> None:
        if self.as_json:
            print_json(line)
        else:
            print_decision(line)

    def stepped(self, frame: Frame) -> None:
        """Say nothing."""


def print_decision(line: Line) -> None:
    """Print who does what from a step on, or what the manager's synopsis says."""
    at = f"  [cyan]step {line['at']:>3}[/] "
    if line["step"] == "summarise":
        told = line.get("synopsis") or f"no synopsis: {line['fallback']}"
        console.print(f"{at}[dim]synopsis: {escape(told)}[/]", soft_wrap=True)
        return
    parts = [_assigned(line, number) for number in range(len(line["proposals"]))]
    console.print(f"{at}{'; '.join(parts)}", soft_wrap=True)


def _assigned(line: Line, number: int) -> str:
    proposed = line["proposals"][number]["action"]
    told = line["allocation"][number] if line.get("allocation") else proposed
    if "under way" in told:
        return f"[dim]{NAMES[number]} goes on[/]"
    instead = "" if brief(told) == brief(proposed) else f" [dim](proposed {escape(brief(proposed))})[/]"
    return f"[bold]{NAMES[number]}[/] {escape(brief(told))}{instead}"


def _print_result(found: Run, ended: Line, as_json: bool) -> None:
    if as_json:
        print_json({**ended, "name": found.name, "trace": str(found.trace.path)})
        return
    counters = ended["counters"]
    how = "[green]done[/]" if ended["success"] else "[red]not done[/]"
    cost = ", ".join(
        f"{counters.get(name, 0)} {name}" for name in ("conflicts", "redundant", "messages", "calls")
    )
    console.print(f"{how} in {ended['steps']} steps (no team can need fewer than {ended['bound']}); {cost}.")
    console.print(f"[dim]{escape('; '.join(ended['answered_by']))}[/]", soft_wrap=True)
    console.print(
        f"See it: mneme household replay {escape(found.name)} --gif {escape(found.name)}.gif", soft_wrap=True
    )
    if missing := found.missing():
        console.print(f"[yellow]{len(missing)} steps are not in the trace, nor in the checkpoints.[/]")
