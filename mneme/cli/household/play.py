"""`mneme household run`: play an episode, printed as lines, on a live screen, or as JSON.

Steps are missing in a trace where a server went on playing after its client was killed. They are rebuilt
from the checkpoints: a step follows only from the checkpoint before it, so it is executed again and is the
same. Proposals, decisions and synopses are in the checkpoint; for an allocated action that its member had
not proposed, the distance is not known.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, cast
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
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
from mneme.cli.household.screen import Screen
from mneme.cli.show import console, emit, print_shared, prints_json
from mneme.client.remote import api_key
from mneme.client.workflows import Graph, Workflows, open_workflows, server_errors
from mneme.core.errors import BadInput
from mneme.environments.household.bound import lower_bound
from mneme.environments.household.episode import CATEGORIES, Episode
from mneme.environments.household.generator import generate
from mneme.environments.household.loading import load_episode
from mneme.environments.household.macro import Macro, Plan
from mneme.environments.household.play import Frame
from mneme.environments.household.rewards import discounted_return
from mneme.environments.household.scene import NAMES
from mneme.environments.household.world import World
from mneme.nodes.context import LOCAL
from mneme.nodes.household.context import HouseholdContext
from mneme.nodes.household.household import execute
from mneme.nodes.household.mita_state import FALLBACK
from mneme.nodes.household.views import macro_of
from mneme.prompts.household.household import Option

STEPS = 6 * World.LIMIT + 20
"""The most steps of a graph in an episode: so many per round, which is at least one step of the world."""
PACE = 0.1
"""Seconds that `--watch` shows each step."""
DECISIONS = ("allocate", "follow_proposals", "summarise", "plan")
"""The graphs' steps that are decisions."""
BUSY: tuple[Literal["running", "pending"], ...] = ("running", "pending")
Context = dict[str, Any]
Values = Mapping[str, Any]


class Display(Protocol):
    """Where decisions and steps are shown."""

    def decided(self, line: Line) -> None: ...
    def stepped(self, frame: Frame) -> None: ...


Method = Literal["mita", "coela", "proagent", "mhp", "alone"]
Weak = Literal["members", "manager", "both"]
WEAKENED = {"members": ["member"], "manager": ["manager"], "both": ["member", "manager"]}
OPTIONS = Fields(HouseholdContext, {"simulator": "--virtualhome"}, "member_lapses manager_lapses")


async def run(
    context: Annotated[Context, OPTIONS],
    task: Annotated[str, "Prepare Tea, Wash Dishes, … (default: chosen by the seed)."] = "",
    method: Annotated[
        Method, "How the team decides: MiTa, or one of those that it is compared with."
    ] = "mita",
    members: Annotated[
        int | None, "Members of the team, 1 to 4 (default: 3; alone: 1).", "--members -n"
    ] = None,
    episode: Annotated[Path | None, "An episode file (C-WAH's or your own), not a task."] = None,
    name: Annotated[str | None, "The run's name (default: task, members and seed)."] = None,
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
    async with open_workflows(GRAPHS[method]) as flows:
        found = to_play(wanted, named, request)
        how = "continues" if found.began() else "begins"
        console.print(f"[bold]{escape(found.name)}[/] {how}", soft_wrap=True)
        is_keyed = flows.server is not None and api_key() is not None
        owner = await flows.operations(Memories, LOCAL).whoami() if is_keyed else None
        with Screen(made, found.lines(), console) if watch else nullcontext() as screen:
            ended = await _Played(found, flows, made, context, screen or _Lines(), method, owner).to_the_end()
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
        """Play to the end, from the checkpoint if there is one, and write the result.

        Each new run has a new thread, also where its name was used before. Of a killed one, lines after the
        checkpoint are dropped, and those missing before it are rebuilt.
        """
        begun = self.run.began() or {"thread": f"household/{self.run.name}/{uuid4().hex}"}
        thread = str(begun.get("thread", f"household/{self.run.name}"))
        config: RunnableConfig = {**await self.flows.thread(thread, self.graph), "recursion_limit": STEPS}
        _, values = await self.flows.left_at(self.graph, config)
        if values and self.run.began():
            self.run.trace.append("resumed", at=values.get("steps", 0))
            await rebuild(self.run, self.flows.graphs[self.graph], config, values)
        async for event in self._under_way(config):
            await self._keep(event, thread)
        due, values = await self.flows.left_at(self.graph, config)
        if due or not values:
            given = None if values else {"episode": self.episode.model_dump(mode="json")}
            async for event in self.flows.stream(self.graph, given, config, self.context, "custom"):
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
        if event["step"] == "shared" and isinstance(self.display, _Lines):
            print_shared(event["shown"])
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
            frames = self.run.frames()
            line = {"at": frames[-1].step if frames else 0, **decision_of(event, len(self.episode.starts))}
            self.run.trace.append("decision", **line)
            self.display.decided({"kind": "decision", **line})


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
    parts = []
    for number, proposed in enumerate(each["action"] for each in line["proposals"]):
        action = line["allocation"][number] if line.get("allocation") else proposed
        if "under way" in action:
            parts.append(f"[dim]{NAMES[number]} continues[/]")
            continue
        instead = "" if brief(action) == brief(proposed) else f" [dim](proposed {escape(brief(proposed))})[/]"
        parts.append(f"[bold]{NAMES[number]}[/] {escape(brief(action))}{instead}")
    if "fallback" in line:
        console.print(f"{at}[yellow]no usable allocation: {escape(line['fallback'])}[/]", soft_wrap=True)
    console.print(f"{at}{'; '.join(parts)}", soft_wrap=True)


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


async def rebuild(run: Run, graph: Graph, config: RunnableConfig, values: Values) -> None:
    """Write the steps, decisions and synopses that are in the thread's values and not in the trace."""
    written = {frame.step for frame in run.frames()}
    lacking = set(range(1, values.get("steps", 0) + 1)) - written
    begun = run.began()
    if not lacking or begun is None:
        return
    allocating = "allocate" if begun["context"]["allocation"] else "follow_proposals"
    decision = allocating if begun.get("method", MITA) in (MITA, ALONE) else "plan"
    synopses = _synopses(values)
    async for before in _before_executions(graph, config, min(lacking)):
        synopses |= _synopses(before)
        frames = [frame for frame in await _executed(before) if frame.step in lacking]
        if frames:
            run.trace.append("decision", at=before["steps"], step=decision, **_decision(before))
        for frame in frames:
            run.trace.frame(frame)
    for step, narrative in sorted(synopses.items()):
        if step >= min(lacking) - 1:  # it was made before the first missing step was decided
            run.trace.append("decision", at=step, step="summarise", synopsis=narrative)


def _synopses(values: Values) -> dict[int, str]:
    """Return the narratives that are still as they were written, by their steps."""
    told = (each for each in values.get("synopses", []) if "merged" not in each)
    return {each["step"]: each["synopsis"]["narrative"] for each in told}


async def _before_executions(graph: Graph, config: RunnableConfig, first: int) -> AsyncIterator[Values]:
    """Yield the values before each execution, latest first, back to those before the step `first`."""
    at: RunnableConfig | None = config
    while at is not None:
        with server_errors():
            snapshot = await graph.aget_state(at)
        at = snapshot.parent_config
        if [task.name for task in snapshot.tasks] == ["execute"]:
            yield snapshot.values
            if snapshot.values["steps"] < first:
                return


async def _executed(before: Values) -> list[Frame]:
    """Execute the decided actions again, and return the steps."""
    events: list[Any] = []
    runtime = Runtime(context=HouseholdContext(), stream_writer=events.append)
    await execute(before, runtime)  # type: ignore[arg-type]
    return [Frame.model_validate(frame) for frame in events[0]["frames"]]


def _decision(before: Values) -> dict[str, Any]:
    """Return proposals and decision in the form that the graph streams."""
    decided = [Macro.model_validate(each) for each in before["decided"]]
    if "proposals" not in before:  # each agent decides for itself
        own = zip(NAMES, decided, strict=False)
        return {"proposals": [{"member": name, "reason": "", "action": str(each)} for name, each in own]}
    proposals = sorted(before["proposals"], key=lambda each: each["member"])
    options, reason = [Option.model_validate(each["option"]) for each in proposals], before["reason"]
    said = [
        {"member": NAMES[each["member"]], "reason": each["reason"], "action": str(option)}
        for each, option in zip(proposals, options, strict=True)
    ]
    if reason.startswith(FALLBACK):
        return {"proposals": said, "fallback": reason.removeprefix(FALLBACK)}
    allocated = [_words(*each) for each in zip(decided, options, before["members"], strict=True)]
    return {"proposals": said, "allocation": allocated, "reason": reason}


def _words(decided: Macro, proposed: Option, member: Values) -> str:
    """Return a member's action in words: as it was proposed, or else as the action itself."""
    if macro_of(proposed) == decided:
        return str(proposed)
    goes_on = member["plan"] and Plan.model_validate(member["plan"]).macro == decided
    return f"{decided}; under way" if goes_on else str(decided)
