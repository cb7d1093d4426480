"""`mneme household run`: play an episode, printed as lines, on a live screen, or as JSON.

A trace is a copy of what the checkpoints hold. It is written while the graph tells of it, and anew where a
run is continued after a kill, or where a server went on playing without its client.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, cast
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from rich.markup import escape

from mneme.api.household_runs import (
    ALONE,
    ENDING,
    MITA,
    Line,
    Request,
    Run,
    checked,
    decision_of,
    methods,
    to_play,
    unallocated,
)
from mneme.api.memories import Memories
from mneme.cli.chat.responders import show_notice
from mneme.cli.derived import Fields
from mneme.cli.household.replay import ending, print_decision
from mneme.cli.household.screen import Screen
from mneme.cli.show import console, emit, print_shared, prints_json, say
from mneme.client.remote import api_key
from mneme.client.workflows import Graph, GraphRun, Workflows, open_workflows, server_errors
from mneme.core.errors import BadInput
from mneme.environments.household.bound import lower_bound
from mneme.environments.household.episode import CATEGORIES, Episode
from mneme.environments.household.generator import generate
from mneme.environments.household.loading import load_episode
from mneme.environments.household.rewards import discounted_return
from mneme.environments.household.world import World
from mneme.nodes.household.context import HouseholdContext
from mneme.stores.ledger.records import LOCAL

STEPS = 6 * World.LIMIT + 20
"""The most steps of a graph in an episode: so many per round, which is at least one step of the world."""
PACE = 0.1
"""Seconds that `--watch` shows each step."""
DECISIONS = ("allocate", "follow_proposals", "summarise", "plan")
"""The graphs' steps that are decisions."""
BUSY: tuple[Literal["running", "pending"], ...] = ("running", "pending")
Context = dict[str, Any]
Values = Mapping[str, Any]


Weak = Literal["members", "manager", "both"]
WEAKENED = {"members": ["member"], "manager": ["manager"], "both": ["member", "manager"]}
OPTIONS = Fields(HouseholdContext, {"simulator": "--virtualhome"}, "member_lapses manager_lapses")


async def run(
    context: Annotated[Context, OPTIONS],
    task: Annotated[str, "Prepare Tea, Wash Dishes, … (default: chosen by the seed)."] = "",
    method: Annotated[
        str, "How the team decides: mita, or coela, proagent, mhp or alone; or your own, by entry point."
    ] = MITA,
    members: Annotated[int | None, "Members of the team, 1 to 4 (default: 3; alone: 1)."] = None,
    episode: Annotated[Path | None, "An episode file (C-WAH's or your own), not a task."] = None,
    name: Annotated[str | None, "The run's name (default: task, members and seed).", "--id"] = None,
    weak_model: Annotated[str, "A weaker model for some: see --weak (the paper's figure 3b)."] = "",
    weak: Annotated[Weak, "Whose model --weak-model is: members, manager or both."] = "members",
    watch: Annotated[bool, "Show rooms, hands and decisions while the team acts."] = False,
) -> int:
    """Play an episode. After a kill, the same command continues it."""
    context |= dict.fromkeys(WEAKENED[weak], weak_model) if weak_model else {}
    context |= {"allocation": False, "summary": False} if method == ALONE else {}
    size = (1 if method == ALONE else 3) if members is None else members
    if watch and prints_json():
        raise BadInput("--watch and --json cannot be combined.", "Leave one of them out.")
    if name is not None:
        checked(name)
    if method not in methods():
        raise BadInput(f"--method: there is no method {method!r}.", f"There are: {', '.join(methods())}.")
    if method == ALONE and size != 1:
        raise BadInput(
            "--members: alone means one agent.", "Leave --members out, or choose another --method."
        )
    made = _episode(task, size, episode, context["seed"])
    what = (episode.stem if episode else made.category if task else "task").lower()
    words = "".join(letter if letter.isalnum() else "-" for letter in what).strip("-")
    named = f"{'' if method == MITA else f'{method}-'}{words[:50]}-{size}-{context['seed']}"
    return await _play(Request(made, context, method), name, named, watch)


async def _play(request: Request, wanted: str | None, named: str, watch: bool) -> int:
    """Play an episode, or continue a killed run; return 1 if the goals were not reached in time."""
    made, context, method = request.episode, dict(request.context), request.method
    await show_notice(context["member"], context["manager"])
    async with open_workflows(methods()[method]) as flows:
        is_keyed = flows.server is not None and api_key() is not None
        owner = await flows.operations(Memories, LOCAL).whoami() if is_keyed else None
        found = to_play(wanted, named, request)
        with found.played_alone():
            to_play(found.name, named, request)  # refused where another process has just ended it
            say(f"[bold]{escape(found.name)}[/] {'continues' if found.began() else 'begins'}")
            with Screen(made, found.lines(), console) if watch else nullcontext() as screen:
                ended = await _Played(found, flows, made, context, screen, method, owner).to_the_end()
    _print_result(found, ended)
    return 0 if ended["success"] else 1


def _episode(task: str, agents: int, file: Path | None, seed: int) -> Episode:
    """Load or generate the episode. Raises BadInput naming the option."""
    if file is not None:
        if task:
            raise BadInput("--task: an episode file has its own task.", "Give --task or --episode.")
        return load_episode(file, agents, seed)
    known = {each.lower(): each for each in CATEGORIES}
    if task and task.strip().lower() not in known:
        raise BadInput(f"--task: there is no task {task!r}.", f"There are: {', '.join(CATEGORIES)}.")
    return generate(seed, known[task.strip().lower()] if task else None, agents)


@dataclass(frozen=True)
class _Played:
    """A run that is being played: each event goes into the trace, and to the screen or a line."""

    run: Run
    flows: Workflows
    episode: Episode
    context: Context
    screen: Screen | None
    method: str
    owner: str | None = None

    @property
    def graph(self) -> str:
        return methods()[self.method]

    async def to_the_end(self) -> Line:
        """Play to the end, from the checkpoint if there is one, and write the result.

        Each new run has a new thread, also where its name was used before. Of a killed one, the trace is
        written anew as far as its checkpoint.
        """
        begun = self.run.began() or {"thread": f"household/{self.run.name}/{uuid4().hex}"}
        thread = str(begun.get("thread", f"household/{self.run.name}"))
        config: RunnableConfig = {**await self.flows.thread(thread, self.graph), "recursion_limit": STEPS}
        _, values = await self.flows.left_at(self.graph, config)
        await written_anew(self.run, self.flows.graphs[self.graph], config if values else None)
        async for event in self._under_way(config):
            await self._keep(event, thread)
        due, values = await self.flows.left_at(self.graph, config)
        if due or not values:
            given = None if values else {"episode": self.episode.model_dump(mode="json")}
            async for event in GraphRun(self.flows, self.graph, given, config, self.context):
                await self._keep(event, thread)
        return await self._end(config)

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
        if [frame.step for frame in self.run.frames()] != [*range(1, values["steps"] + 1)]:
            await written_anew(self.run, self.flows.graphs[self.graph], config)
        ended = {name: values[name] for name in ENDING}
        # the bound holds for our own rules: elsewhere a walk may take one step wherever it leads
        bound = None if self.context.get("simulator") else lower_bound(self.episode).steps
        told = {"bound": bound, "return": discounted_return(self.episode, self.run.frames())}
        told |= {"shared": values.get("shared", [])}  # names alone: what is forgotten stands in no trace
        self.run.trace.append("end", **told, **ended)
        end = self.run.first("end")
        assert end is not None
        return end

    async def _keep(self, event: Mapping[str, Any], thread: str) -> None:
        """Write an event into the trace and show it; the first decision or step begins the run."""
        if event["step"] == "shared" and self.screen is None:
            print_shared(event["shown"])
        if event["step"] not in (*DECISIONS, "execute"):
            return
        if self.run.began() is None:
            begun: Context = {"episode": self.episode.model_dump(mode="json"), "method": self.method}
            whose = {} if self.owner is None else {"owner": self.owner}
            begun |= {"kind": "episode", "context": self.context, "thread": thread, **whose}
            self.run.trace.rewrite([begun])
        frames = self.run.frames()
        for line in _lines_of(event, frames[-1].step if frames else 0, len(self.episode.starts)):
            self.run.trace.append(**line)
            if self.screen is None:
                if line["kind"] == "decision":
                    emit(line)
                    print_decision(line)
                continue
            self.screen.show(line)
            await asyncio.sleep(PACE if line["kind"] == "step" else 0)


def _print_result(found: Run, ended: Line) -> None:
    emit({**ended, "name": found.name, "trace": str(found.trace.path)})
    counters = ended["counters"]
    if said := unallocated(counters):
        say(f"[yellow]{said}: proposals were followed, so this is not MiTa's play.[/]")
    if blind := counters.get("blind", 0):
        seen = f"{blind} of {counters['frames']} frames got no usable answer: nothing was recognised in them."
        say(f"[yellow]{seen}[/]")
    console.print(ending(ended), style="green" if ended["success"] else "red")
    say(f"[dim]{escape('; '.join(ended['answered_by']))}[/]")
    say(f"To see it: mneme household replay {escape(found.name)} --gif {escape(found.name)}.gif")
    if missing := found.missing():
        console.print(f"[yellow]{len(missing)} steps are not in the trace, nor in the checkpoints.[/]")


async def written_anew(run: Run, graph: Graph, config: RunnableConfig | None) -> None:
    """Write a trace that was begun anew from its thread's checkpoints, which have each line that was told."""
    begun, told, at = run.began(), list[dict[str, Any]](), config
    while begun is not None and at is not None:
        snapshot = await graph.aget_state(at)
        line, at = snapshot.values.get("line"), cast(RunnableConfig, snapshot.parent_config)
        if line and (not told or line != told[-1]["line"]):
            told.append({"line": line, "at": snapshot.values["steps"]})
    if begun is not None:
        agents = len(run.episode().starts)
        lines = (each for event in reversed(told) for each in _lines_of(event["line"], event["at"], agents))
        run.trace.rewrite([begun, *lines])


def _lines_of(event: Values, at: int, agents: int) -> list[dict[str, Any]]:
    """Return the lines of a trace for an event that a graph told after a step."""
    if event["step"] == "execute":
        return [{"kind": "step", **frame} for frame in event["frames"]]
    return [{"kind": "decision", "at": at, **decision_of(event, agents)}]
