"""The memory agents that the evaluations compare: ours, and the paper's versions with their options."""

from typing import Any, Literal, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.graph import StateGraph

from mneme.graphs import memory_agent
from mneme.graphs.baselines import memory_agent_v1, memory_agent_v2, memory_agent_v3
from mneme.nodes.chat.context import MemoryContext
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.users.inbox import Message

Name = Literal["ours", "v3", "v2", "v1", "v1-searching"]


class Arm(NamedTuple):
    """A graph, and what of its context is not the default."""

    builder: StateGraph[Any, Any, Any, Any]
    context: dict[str, Any] = {}  # noqa: RUF012  (read only)

    async def remember(
        self,
        message: Message,
        context: MemoryContext,
        store: LedgerStore,
        config: RunnableConfig | None = None,
    ) -> dict[str, Any]:
        """Return what became of a message."""
        graph = self.builder.compile(store=store)
        return await graph.ainvoke(message, config, context=context.model_copy(update=self.context))


ARMS: dict[Name, Arm] = {
    "ours": Arm(memory_agent.builder),
    "v3": Arm(memory_agent_v3.builder),
    "v2": Arm(memory_agent_v2.builder),
    "v1": Arm(memory_agent_v1.builder),
    "v1-searching": Arm(memory_agent_v1.builder, {"retrieval": "agent"}),
}
