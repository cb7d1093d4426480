"""One unit of work of the household evaluation: bound an episode, or play it with an arm.

The events of a played one are in a file beside the journal, for `mneme household replay FILE`. The file has a
generated episode's parameters; it has any other episode whole.
"""

import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mneme.api.household_runs import DECISION_STEPS, ENDING, METHOD_GRAPHS, lines_of
from mneme.environments.household.bound import lower_bound
from mneme.environments.household.episode import Episode
from mneme.environments.household.generator import generate
from mneme.environments.household.rewards import discounted_return
from mneme.environments.household.trace import Trace
from mneme.evals.household.arms import COUNTERS, METHOD_NAMES, Arm
from mneme.evals.report import Row
from mneme.graphs import load

STEPS_OF_GRAPH = 5_000
"""LangGraph's limit of supersteps: far above what 250 steps of the world can need."""
Values = Any


@dataclass(frozen=True)
class Case:
    """An episode to play with an arm; without an arm, to bound.

    `runs` is the folder of the runs' files; `bound` is what an oracle needs.
    """

    arm: Arm | None
    episode: Episode
    runs: Path = Path()
    bound: int = field(default=0, compare=False)

    @property
    def key(self) -> str:
        """Name the case in the journal."""
        who = self.arm.key if self.arm else f"bound, {len(self.episode.starts)}"
        return f"{who} | {self.episode.id}"


async def finished(case: Case) -> Row:
    """Play the episode to success or to the limit of steps, or bound it."""
    arm, episode, begun = case.arm, case.episode, time.perf_counter()
    if arm is None:
        return {"bound": lower_bound(episode).steps}
    # File systems allow 255 bytes in a name.
    name = re.sub(r"[^A-Za-z0-9]+", "-", case.key).strip("-").lower()[:150]
    trace = Trace(case.runs / f"{name}.jsonl")
    trace.path.unlink(missing_ok=True)  # a killed run left its beginning
    result = await _played(arm, episode, trace)
    trace.append("end", bound=case.bound, **{name: result[name] for name in ENDING})
    return {
        "arm": arm.key,
        "method": arm.name,
        "agents": arm.agents,
        "episode": episode.id,
        "category": episode.category,
        "source": episode.source,
        "seed": episode.seed if episode.source == "generated" else None,
        "steps": result["steps"],
        "success": result["success"],
        "return": discounted_return(episode, Trace(trace.path).frames()),
        "placed": [start.placed for start in episode.starts],
        "bound": case.bound,
        **{name: result["counters"].get(name, 0) for name in COUNTERS},
        "seconds": time.perf_counter() - begun,
        "run": f"{case.runs.name}/{trace.path.name}",
    }


async def _played(arm: Arm, episode: Episode, trace: Trace) -> Values:
    """Run the arm's graph, and write its decisions and steps."""
    context, method = arm.context(episode), METHOD_NAMES[arm.method]
    trace.append("episode", **_kept(arm, episode), method=method, context=context.model_dump(mode="json"))
    given: Any = {"episode": episode.model_dump(mode="json")}
    graph = load(METHOD_GRAPHS[method]).builder.compile()
    config: Any = {"recursion_limit": STEPS_OF_GRAPH}
    values: Values = {}
    async for kind, event in graph.astream(given, config, context=context, stream_mode=["custom", "values"]):
        if kind == "values":
            values = event  # the last ones are the run's result
        elif event["step"] in (*DECISION_STEPS, "execute"):
            for line in lines_of(event, arm.agents):
                trace.append(**line)
    return values


def _kept(arm: Arm, episode: Episode) -> Row:
    """Return the parameters of a generated episode, if they reproduce it; else the episode."""
    if episode.source == "generated":
        made: dict[str, Any] = {"seed": episode.seed, "category": episode.category, "agents": arm.agents}
        if generate(**made) == episode:  # a later version may generate another episode from the same seed
            return {"generated": made}
    return {"episode": episode.model_dump(mode="json")}
