"""Rebuild steps that are missing in a trace from the checkpoints.

Steps are missing where a server went on playing after its client was killed. A step follows only from the
checkpoint before it, so the steps are executed again and are the same. Proposals, decisions and synopses are
in the checkpoint; for an allocated action that its member had not proposed, the distance is not known.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.pregel.protocol import PregelProtocol
from langgraph.runtime import Runtime

from mneme.api.household_runs import ALONE, MITA, Run
from mneme.client.workflows import server_errors
from mneme.environments.household.macro import Macro, Plan
from mneme.environments.household.play import Frame
from mneme.environments.household.scene import NAMES
from mneme.nodes.household.context import HouseholdContext
from mneme.nodes.household.household import execute
from mneme.nodes.household.mita_state import FALLBACK
from mneme.nodes.household.views import macro_of
from mneme.prompts.household.household import Option

Values = Mapping[str, Any]
Graph = PregelProtocol[Any, Any, Any, Any]


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
    if decided.kind == "wait":
        return str(decided)  # waiting is never under way
    goes_on = member["plan"] and Plan.model_validate(member["plan"]).macro == decided
    return f"{decided}; under way" if goes_on else str(decided)
