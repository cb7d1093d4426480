"""`mneme household run`: play an episode, printed as lines, on a live screen, or as JSON.

The events are in the checkpoints of the run's thread, which serve to continue after a kill and to replay.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, cast
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from rich.markup import escape

from mneme.api.household_runs import (
    ALONE,
    DECISION_STEPS,
    MITA,
    RUN_METADATA,
    Line,
    Request,
    Run,
    checked,
    lines_of,
    methods,
    run_lines,
    to_play,
    unallocated,
)
from mneme.api.memories import Memories
from mneme.cli.chat.responders import Context, show_notice
from mneme.cli.derived import Fields
from mneme.cli.household.replay import ending, print_decision
from mneme.cli.household.screen import Screen
from mneme.cli.show import console, emit, print_shared, prints_json, resumable, say
from mneme.client.remote import api_key
from mneme.client.workflows import GraphRun, Workflows, open_workflows, server_errors
from mneme.core.errors import BadInput, Conflict
from mneme.environments.household.bound import lower_bound
from mneme.environments.household.episode import GOAL_CATEGORIES, Episode
from mneme.environments.household.generator import generate
from mneme.environments.household.loading import load_episode
from mneme.environments.household.world import World
from mneme.nodes.household.context import HouseholdContext
from mneme.stores.ledger.records import LOCAL

EPISODE_RECURSION_LIMIT = 6 * World.LIMIT + 20
"""Maximum steps of a graph in an episode: six per round, and a round is at least one step of the world."""
PACE = 0.1
"""Seconds that `--watch` shows each step."""
BUSY: tuple[Literal["running", "pending"], ...] = ("running", "pending")
Values = Mapping[str, Any]


Weak = Literal["members", "manager", "both"]
WEAKENED_ROLES = {"members": ["member"], "manager": ["manager"], "both": ["member", "manager"]}
HOUSEHOLD_OPTIONS = Fields(HouseholdContext, without="member_lapses manager_lapses")


async def run(
    context: Annotated[Context, HOUSEHOLD_OPTIONS],
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
    context |= dict.fromkeys(WEAKENED_ROLES[weak], weak_model) if weak_model else {}
    context |= {"allocation": False, "summary": False} if method == ALONE else {}  # nobody to allocate to
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
    await show_notice(request.context["member"], request.context["manager"])
    async with open_workflows(methods()[request.method]) as flows:
        found = await to_play(wanted, named, request)
        with found.played_alone():
            found = await to_play(found.name, named, request)  # another process may have just gone on with it
            say(f"[bold]{escape(found.name)}[/] {'continues' if found.lines else 'begins'}")
            live = Screen(request.episode, found.lines, console) if watch else nullcontext()
            with resumable("The steps so far are kept: the same command goes on."), live as screen:
                found = await _Playing(found, flows, request, screen).to_the_end()
    ended = found.first("end")
    if ended is None:
        raise Conflict(f"The run {found.name} has not come to its end.", "The same command goes on.")
    _print_result(found, ended)
    return 0 if ended["success"] else 1


def _episode(task: str, agents: int, file: Path | None, seed: int) -> Episode:
    """Load or generate the episode. Raises BadInput naming the option."""
    if file is not None:
        if task:
            raise BadInput("--task: an episode file has its own task.", "Give --task or --episode.")
        return load_episode(file, agents, seed)
    known = {each.lower(): each for each in GOAL_CATEGORIES}
    if task and task.strip().lower() not in known:
        raise BadInput(f"--task: there is no task {task!r}.", f"There are: {', '.join(GOAL_CATEGORIES)}.")
    return generate(seed, known[task.strip().lower()] if task else None, agents)


@dataclass(frozen=True)
class _Playing:
    """A run in progress: its events go to the screen, or are printed."""

    run: Run
    flows: Workflows
    request: Request
    screen: Screen | None

    @property
    def graph(self) -> str:
        return methods()[self.request.method]

    async def to_the_end(self) -> Run:
        """Play to the end, from the checkpoint if there is one; return the run as its thread has it then."""
        config = await self._thread()
        async for event in self._under_way(config):
            await self._show(event)
        due, values = await self.flows.left_at(self.graph, config)
        if due or not values.get("over"):  # what an earlier version stopped within a step is begun anew
            given = None if due else {"episode": self.request.episode.model_dump(mode="json")}
            context = dict(self.request.context)
            async for event in GraphRun(self.flows, self.graph, given, config, context):
                await self._show(event)
        _, values = await self.flows.left_at(self.graph, config)
        # from the values, as a replay reads it: what is printed at the end is what is kept
        return Run(self.run.name, partial(run_lines, config["metadata"], values))

    async def _thread(self) -> RunnableConfig:
        """Return the config of the run's thread: each new run has a new one, even under a used name."""
        name = self.run.begun().get("thread") or f"household/{self.run.name}/{uuid4().hex}"
        # with keys a thread is of the key's user; without, of this machine, whoever plays
        is_keyed = self.flows.server is not None and api_key() is not None
        owner = await self.flows.operations(Memories, LOCAL).whoami() if is_keyed else ""
        config = await self.flows.thread(name, self.graph, owner)
        # the bound holds for our own rules: elsewhere a walk may take one step wherever it leads
        simulated = self.request.context.get("simulator")
        bound = None if simulated else lower_bound(self.request.episode).steps
        begun = {"method": self.request.method, "context": self.request.context, "bound": bound}
        return config | {
            "metadata": {**config["metadata"], RUN_METADATA: json.dumps(begun)},
            "recursion_limit": EPISODE_RECURSION_LIMIT,
        }

    async def _under_way(self, config: RunnableConfig) -> AsyncIterator[Mapping[str, Any]]:
        """Yield the events from a server that is still playing the run of a killed client."""
        if self.flows.server is None:
            return
        runs, thread = self.flows.server.runs, config["configurable"]["thread_id"]
        with server_errors():
            for status in BUSY:
                for each in await runs.list(thread, status=status):
                    async for part in runs.join_stream(thread, each["run_id"], stream_mode="custom"):
                        if part.event == "custom":
                            yield cast(Mapping[str, Any], part.data)

    async def _show(self, event: Values) -> None:
        """Show a decision or steps, and the memories of other workflows that the team was shown."""
        if event["step"] == "shared" and self.screen is None:
            print_shared(event["shown"])
        if event["step"] not in (*DECISION_STEPS, "execute"):
            return
        for line in lines_of(event, len(self.request.episode.starts)):
            if self.screen is not None:
                self.screen.show(line)
                await asyncio.sleep(PACE if line["kind"] == "step" else 0)
            elif line["kind"] == "decision":
                emit(line)
                print_decision(line)


def _print_result(found: Run, ended: Line) -> None:
    emit({**ended, "name": found.name})
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
        console.print(f"[yellow]{len(missing)} steps are not kept.[/]")
