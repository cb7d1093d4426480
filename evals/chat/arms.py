"""The memory agents that the evaluations compare: ours, and the paper's versions with their options."""

from dataclasses import dataclass, field
from typing import Any, Literal

from langgraph.graph import StateGraph

from mneme.graphs import memory_agent
from mneme.graphs.baselines import memory_agent_v1, memory_agent_v2, memory_agent_v3

Name = Literal["ours", "v3", "v2", "v2-compose-first", "v1", "v1-compose-first", "v1-searching"]


@dataclass(frozen=True)
class Arm:
    """A graph, and what of its context is not the default."""

    builder: StateGraph[Any, Any, Any, Any]
    context: dict[str, Any] = field(default_factory=dict)


ARMS: dict[Name, Arm] = {
    "ours": Arm(memory_agent.builder),
    "v3": Arm(memory_agent_v3.builder),
    "v2": Arm(memory_agent_v2.builder),
    "v2-compose-first": Arm(memory_agent_v2.builder, {"compose_first": True}),
    "v1": Arm(memory_agent_v1.builder),
    "v1-compose-first": Arm(memory_agent_v1.builder, {"compose_first": True}),
    "v1-searching": Arm(memory_agent_v1.builder, {"retrieval": "agent"}),
}
