"""Steps that nobody wrote down, rebuilt from the checkpoints: a server plays on when its client was killed.

What is executed follows from the checkpoint before it alone, so those steps are taken again from there and
are the same. What was proposed, decided and told is in the checkpoint itself; of an allocated action that
its member had not proposed it holds the action, but not how far it was.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.pregel.protocol import PregelProtocol
from langgraph.runtime import Runtime

from environments.household.macro import Macro, Plan
from environments.household.play import Frame
from environments.household.scene import NAMES
from mneme.household_runs import Run
from mneme.workflows import server_errors
from nodes.household import HouseholdContext, execute
from nodes.household_views import macro_of
from prompts.household import Option

Values = Mapping[str, Any]
Graph = PregelProtocol[Any, Any, Any, Any]


async def rebuild(run: Run, graph: Graph, config: RunnableConfig, values: Values) -> None:
    """Write the steps, decisions and synopses that a trace lacks up to the values of its thread."""
    written = {frame.step for frame in run.frames()}
    lacking = set(range(1, values.get("steps", 0) + 1)) - written
    if not lacking:
        return
    begun = run.began()
    assert begun is not None
    decision = "allocate" if begun["context"]["allocation"] else "follow_proposals"
    async for before in _before_executions(graph, config, min(lacking)):
        frames = [frame for frame in await _executed(before) if frame.step in lacking]
        if frames:
            run.trace.append("decision", at=before["steps"], step=decision, **_decision(before))
        for frame in frames:
            run.trace.frame(frame)
    for told in values.get("synopses", []):
        if told["step"] >= min(lacking) - 1:  # made before the first lacking step was decided
            synopsis = told["synopsis"]["narrative"]
            run.trace.append("decision", at=told["step"], step="summarise", synopsis=synopsis)


async def _before_executions(graph: Graph, config: RunnableConfig, first: int) -> AsyncIterator[Values]:
    """Yield the values before each execution, the latest first, back to that which led to the first step."""
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
    """Execute what was decided, and return the steps."""
    told: list[Any] = []
    runtime = Runtime(context=HouseholdContext(), stream_writer=told.append)
    await execute(before, runtime)  # type: ignore[arg-type]
    return [Frame.model_validate(frame) for frame in told[0]["frames"]]


def _decision(before: Values) -> dict[str, Any]:
    """Say what was proposed and decided, as the graph does."""
    proposals = sorted(before["proposals"], key=lambda each: each["member"])
    options = [Option.model_validate(each["option"]) for each in proposals]
    decided = [Macro.model_validate(each) for each in before["decided"]]
    return {
        "proposals": [
            {"member": NAMES[each["member"]], "reason": each["reason"], "action": str(option)}
            for each, option in zip(proposals, options, strict=True)
        ],
        "allocation": [_words(*each) for each in zip(decided, options, before["members"], strict=True)],
        "reason": before["reason"],
    }


def _words(decided: Macro, proposed: Option, member: Values) -> str:
    """Say what a member is to do: as it was offered, or as the action that it is."""
    if macro_of(proposed) == decided:
        return str(proposed)
    if decided.kind == "wait":
        return str(decided)  # nothing is under way
    goes_on = member["plan"] and Plan.model_validate(member["plan"]).macro == decided
    return f"{decided}; under way" if goes_on else str(decided)
