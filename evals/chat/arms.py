"""The memory agents that the evaluations compare: ours, and the paper's versions with their options."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from langgraph.graph import StateGraph

from mneme.evals.chat import two_agents
from mneme.graphs import memory_agent
from mneme.graphs.baselines import memory_agent_v1, memory_agent_v2, memory_agent_v3
from mneme.models.asking.counting import added
from mneme.nodes.chat.context import MemoryContext
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.users.inbox import Message

Name = Literal["ours", "v3", "v2", "v2-compose-first", "v1", "v1-compose-first", "v1-searching", "two-agents"]


@dataclass(frozen=True)
class Arm:
    """A graph, what of its context is not the default, and a second graph that updates what it inserted."""

    builder: StateGraph[Any, Any, Any, Any]
    context: dict[str, Any] = field(default_factory=dict)
    updater: StateGraph[Any, Any, Any, Any] | None = None

    async def remember(
        self,
        message: Message,
        context: MemoryContext,
        store: LedgerStore,
        config: RunnableConfig | None = None,
    ) -> dict[str, Any]:
        """Return what became of a message; an updater runs after each, on what is new since then."""
        context, began = context.model_copy(update=self.context), datetime.now(UTC).isoformat()
        told: dict[str, Any] = await self.builder.compile(store=store).ainvoke(
            message, config, context=context
        )
        if self.updater is None:
            return told
        updated = await self.updater.compile(store=store).ainvoke({"since": began}, context=context)
        return told | {
            "operations": [*told["operations"], *updated["operations"]],
            "asked": added(told["asked"], updated["asked"]),
        }


ARMS: dict[Name, Arm] = {
    "ours": Arm(memory_agent.builder),
    "v3": Arm(memory_agent_v3.builder),
    "v2": Arm(memory_agent_v2.builder),
    "v2-compose-first": Arm(memory_agent_v2.builder, {"compose_first": True}),
    "v1": Arm(memory_agent_v1.builder),
    "v1-compose-first": Arm(memory_agent_v1.builder, {"compose_first": True}),
    "v1-searching": Arm(memory_agent_v1.builder, {"retrieval": "agent"}),
    "two-agents": Arm(two_agents.inserter, updater=two_agents.updater),
}
