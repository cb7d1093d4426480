"""`mneme household run`: play an episode, printed as lines, on a live screen, or as JSON."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, cast
from uuid import uuid4

import typer
from langchain_core.runnables import RunnableConfig
from rich.markup import escape

from mneme.api.household_runs import (
    ALONE,
    ENDING,
    GRAPHS,
    MITA,
    Line,
    Request,
    Run,
    brief,
    checked,
    decision_of,
    to_play,
    unallocated,
)
from mneme.api.memories import Memories
from mneme.cli.chat.talk import show_notice
from mneme.cli.derived import Fields
from mneme.cli.household.missed import rebuild
from mneme.cli.household.screen import Screen
from mneme.cli.show import console, emit, prints_json
from mneme.client.remote import api_key
from mneme.client.workflows import Workflows, open_workflows, server_errors
from mneme.core.errors import BadInput
from mneme.environments.household.bound import lower_bound
from mneme.environments.household.episode import CATEGORIES, Episode
from mneme.environments.household.generator import generate
from mneme.environments.household.loading import load_episode
from mneme.environments.household.play import Frame
from mneme.environments.household.rewards import discounted_return
from mneme.environments.household.scene import NAMES
from mneme.environments.household.world import World
from mneme.nodes.context import LOCAL
from mneme.nodes.household.context import MOST_ROUNDS, HouseholdContext

STEPS = (5 + MOST_ROUNDS) * World.LIMIT + 20
"""The most steps of a graph in an episode: so many per round, which is at least one step of the world."""
PACE = 0.1
"""Seconds that `--watch` shows each step."""
DECISIONS = ("allocate", "follow_proposals", "summarise", "plan")
"""The graphs' steps that are decisions."""
BUSY: tuple[Literal["running", "pending"], ...] = ("running", "pending")
Context = dict[str, Any]


@dataclass(frozen=True)
class Given:
    """What to play and how: a task or an episode file, the number of agents, the run's name, the method."""

    task: str
    agents: int
    episode: Path | None
    seed: int
    name: str | None
    method: str = MITA

    def made(self) -> Episode:
        """Load or generate the episode. Raises BadInput naming the field."""
        if self.name is not None:
            checked(self.name)
        if self.method == ALONE and self.agents != 1:
            raise BadInput(
                "--members: alone means one agent.", "Leave --members out, or choose another --method."
            )
        if self.episode is None:
            return generate(self.seed, self._category(), self.agents)
        if self.task:
            raise BadInput("--task: an episode file has its own task.", "Give --task or --episode.")
        return load_episode(self.episode, self.agents, self.seed)

    def described(self) -> str:
        """Return the default name of the run: task, agents and seed."""
        what = self.episode.stem if self.episode else self._category() or "task"
        words = "".join(letter if letter.isalnum() else "-" for letter in what.lower()).strip("-")
        how = "" if self.method == MITA else f"{self.method}-"
        return f"{how}{words[:50]}-{self.agents}-{self.seed}"

    def _category(self) -> str | None:
        if not self.task:
            return None
        found = [each for each in CATEGORIES if each.lower() == self.task.strip().lower()]
        if not found:
            raise BadInput(f"--task: there is no task {self.task!r}.", f"There are: {', '.join(CATEGORIES)}.")
        return found[0]


class Display(Protocol):
    """Where decisions and steps are shown."""

    def decided(self, line: Line) -> None: ...
    def stepped(self, frame: Frame) -> None: ...


Method = Literal["mita", "coela", "proagent", "mhp", "alone"]
Weak = Literal["members", "manager", "both"]
WEAKENED = {"members": ["member"], "manager": ["manager"], "both": ["member", "manager"]}
OPTIONS = Fields(HouseholdContext, {"simulator": "--virtualhome"}, "lapse_kind member_lapses manager_lapses")


async def run(
    context: Annotated[Context, OPTIONS],
    task: Annotated[
        str, typer.Option("--task", help="Prepare Tea, Wash Dishes, … (default: chosen by the seed).")
    ] = "",
    method: Annotated[
        Method,
        typer.Option(
            "--method", help="How the team decides: MiTa, or one of those that it is compared with."
        ),
    ] = "mita",
    members: Annotated[
        int | None,
        typer.Option("--members", "-n", help="Members of the team, 1 to 4 (default: 3; alone: 1)."),
    ] = None,
    episode: Annotated[
        Path | None, typer.Option("--episode", help="An episode file (C-WAH's or your own), not a task.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="The run's name (default: task, members and seed).")
    ] = None,
    weak_model: Annotated[
        str, typer.Option("--weak-model", help="A weaker model for some: see --weak (the paper's figure 3b).")
    ] = "",
    weak: Annotated[
        Weak, typer.Option("--weak", help="Whose model --weak-model is: members, manager or both.")
    ] = "members",
    watch: Annotated[
        bool, typer.Option("--watch", help="Show rooms, hands and decisions while the team acts.")
    ] = False,
) -> int:
    """Play an episode. After a kill, the same command continues it."""
    context |= dict.fromkeys(WEAKENED[weak], weak_model) if weak_model else {}
    context |= {"allocation": False, "summary": False} if method == ALONE else {}
    size = (1 if method == ALONE else 3) if members is None else members
    return await play(Given(task, size, episode, context["seed"], name, method), context, watch)


async def play(given: Given, context: Context, watch: bool) -> int:
    """Play an episode, or continue a killed run; return 1 if the goals were not reached in time."""
    if watch and prints_json():
        raise BadInput("--watch and --json cannot be combined.", "Leave one of them out.")
    episode = given.made()
    await show_notice(context["member"], context["manager"])
    graph = GRAPHS[given.method]
    async with open_workflows(graph) as flows:
        found = to_play(given.name, given.described(), Request(episode, context, given.method))
        how = "continues" if found.began() else "begins"
        console.print(f"[bold]{escape(found.name)}[/] {how}", soft_wrap=True)
        with Screen(episode, found.lines(), console) if watch else nullcontext() as screen:
            whose = await _key_of(flows)
            shown = screen or _Lines()
            played = _Played(found, flows, episode, context, shown, given.method, whose)
            ended = await played.to_the_end()
    _print_result(found, ended)
    return 0 if ended["success"] else 1


async def _key_of(flows: Workflows) -> str | None:
    """Return whose key the run is played with; None without a key, or without a server."""
    if flows.server is None or api_key() is None:
        return None
    return await flows.operations(Memories, LOCAL).whoami()


@dataclass(frozen=True)
class _Played:
    """A run that is being played: each event goes into the trace and to the display."""

    run: Run
    flows: Workflows
    episode: Episode
    context: Context
    display: Display
    method: str
    owner: str | None = None

    @property
    def graph(self) -> str:
        return GRAPHS[self.method]

    async def to_the_end(self) -> Line:
        """Play to the end, from the checkpoint if there is one, and write the result."""
        thread = self._thread()
        config: RunnableConfig = {**await self.flows.thread(thread, self.graph), "recursion_limit": STEPS}
        await self._catch_up(config)
        async for event in self._under_way(config):
            await self._keep(event, thread)
        due, values = await self.flows.left_at(self.graph, config)
        if due or not values:
            given = None if values else {"episode": self.episode.model_dump(mode="json")}
            async for event in self.flows.stream(self.graph, given, config, self.context, "custom"):
                await self._keep(event, thread)
        return await self._end(config)

    def _thread(self) -> str:
        """Return the thread's name: a new one for each new run, also if the run's name was used before."""
        begun = self.run.began()
        fresh = f"household/{self.run.name}/{uuid4().hex}"
        return fresh if begun is None else str(begun.get("thread", f"household/{self.run.name}"))

    async def _catch_up(self, config: RunnableConfig) -> None:
        """Drop lines after the checkpoint, and rebuild missing lines before it."""
        _, values = await self.flows.left_at(self.graph, config)
        if values and self.run.began():
            self.run.trace.append("resumed", at=values.get("steps", 0))
            await rebuild(self.run, self.flows.graphs[self.graph], config, values)

    async def _under_way(self, config: RunnableConfig) -> AsyncIterator[Mapping[str, Any]]:
        """Yield the events of a server that is still playing the run of a killed client."""
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
        _, values = await self.flows.left_at(self.graph, config)
        await rebuild(self.run, self.flows.graphs[self.graph], config, values)
        ended = {name: values[name] for name in ENDING}
        # the bound holds for our own rules: elsewhere a walk may take one step wherever it leads
        bound = None if self.context.get("simulator") else lower_bound(self.episode).steps
        told = {"bound": bound, "return": discounted_return(self.episode, self.run.frames())}
        self.run.trace.append("end", **told, **ended)
        end = self.run.first("end")
        assert end is not None
        return end

    async def _keep(self, event: Mapping[str, Any], thread: str) -> None:
        """Write an event into the trace and show it; the first decision or step begins the run."""
        if event["step"] not in (*DECISIONS, "execute"):
            return
        if self.run.began() is None:
            begun = {"episode": self.episode.model_dump(mode="json"), "method": self.method}
            whose = {} if self.owner is None else {"owner": self.owner}
            self.run.trace.append("episode", **begun, context=self.context, thread=thread, **whose)
        if event["step"] == "execute":
            for each in event["frames"]:
                frame = Frame.model_validate(each)
                self.run.trace.frame(frame)
                self.display.stepped(frame)
                await asyncio.sleep(PACE if isinstance(self.display, Screen) else 0)
        else:
            line = {"at": self._step(), **decision_of(event, len(self.episode.starts))}
            self.run.trace.append("decision", **line)
            self.display.decided({"kind": "decision", **line})

    def _step(self) -> int:
        frames = self.run.frames()
        return frames[-1].step if frames else 0


@dataclass(frozen=True)
class _Lines:
    """Print a line per decision; steps are not printed."""

    def decided(self, line: Line) -> None:
        emit(line)
        print_decision(line)

    def stepped(self, frame: Frame) -> None:
        """Print nothing."""


def print_decision(line: Line) -> None:
    """Print each member's action, or the manager's synopsis."""
    at = f"  [cyan]step {line['at']:>3}[/] "
    if line["step"] == "summarise":
        synopsis = line.get("synopsis") or f"none: {line['fallback']}"
        console.print(f"{at}[dim]synopsis: {escape(synopsis)}[/]", soft_wrap=True)
        return
    parts = [_assigned(line, number) for number in range(len(line["proposals"]))]
    if "fallback" in line:
        console.print(f"{at}[yellow]no usable allocation: {escape(line['fallback'])}[/]", soft_wrap=True)
    console.print(f"{at}{'; '.join(parts)}", soft_wrap=True)


def _assigned(line: Line, number: int) -> str:
    proposed = line["proposals"][number]["action"]
    action = line["allocation"][number] if line.get("allocation") else proposed
    if "under way" in action:
        return f"[dim]{NAMES[number]} continues[/]"
    instead = "" if brief(action) == brief(proposed) else f" [dim](proposed {escape(brief(proposed))})[/]"
    return f"[bold]{NAMES[number]}[/] {escape(brief(action))}{instead}"


COUNTED = {
    "conflicts": "conflicts",
    "redundant": "redundant actions",
    "messages": "messages",
    "calls": "calls",
    "repaired": "repaired answers",
    "fallbacks": "fallbacks",
}
"""The counters of the last line, with their names there."""


def _print_result(found: Run, ended: Line) -> None:
    emit({**ended, "name": found.name, "trace": str(found.trace.path)})
    counters = ended["counters"]
    how = "[green]done[/]" if ended["success"] else "[red]not done[/]"
    cost = ", ".join(f"{counters.get(name, 0)} {words}" for name, words in COUNTED.items())
    if said := unallocated(counters):
        said = f"{said}: proposals were followed, so this is not MiTa's play."
        console.print(f"[yellow]{said}[/]", soft_wrap=True)
    if blind := counters.get("blind", 0):
        seen = f"{blind} of {counters['frames']} frames got no usable answer: nothing was recognised in them."
        console.print(f"[yellow]{seen}[/]", soft_wrap=True)
    least = "" if ended["bound"] is None else f" (lower bound: {ended['bound']})"
    console.print(f"{how} in {ended['steps']} steps{least}; {cost}.")
    console.print(f"[dim]{escape('; '.join(ended['answered_by']))}[/]", soft_wrap=True)
    console.print(
        f"To see it: mneme household replay {escape(found.name)} --gif {escape(found.name)}.gif",
        soft_wrap=True,
    )
    if missing := found.missing():
        console.print(f"[yellow]{len(missing)} steps are not in the trace, nor in the checkpoints.[/]")
