"""The chat built in the hot-path way (§2.1, as LangGraph's ReAct memory agent): the baseline of `latency`.

One agent talks and remembers: it always retrieves the ten most similar memories, may call
`upsert_memory`, and replies only after the tool has answered.
"""

from typing import Any

from langchain_core.messages import SystemMessage
from langchain_core.tools import tool
from langchain_ollama import ChatOllama
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from mneme.stores.ledger.records import Change
from mneme.stores.users.memories import Memory, UserMemories

SYSTEM = """You are a helpful and friendly chatbot. Get to know the user! Ask questions! Be spontaneous!
When the user tells you something that is worth remembering, call upsert_memory before you reply.

What you remember:
"""
RETRIEVED = 10


def hot_path_chat(memories: UserMemories, model: ChatOllama) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Build the chat for one user's memories and one model."""

    @tool
    async def upsert_memory(content: str, context: str, memory_id: str) -> str:
        """Insert a memory, or update the one of that id; `context` says when it was mentioned."""
        change = Change(reason=context, actor="hot_path")
        if not memory_id:
            return f"Stored memory {(await memories.insert(Memory(content=content), change=change)).key}"
        known = await memories.get(memory_id)
        memory = known.memory.model_copy(update={"content": content})
        await memories.update(memory_id, memory, change=change, expected_version=known.version)
        return f"Stored memory {memory_id}"

    agent = model.bind_tools([upsert_memory])

    async def call_model(state: MessagesState) -> dict[str, Any]:
        query = "\n".join(message.text for message in state["messages"][-3:])
        found = await memories.similar(query, k=RETRIEVED)
        recalled = "\n".join(f"[{each.key}]: {each.memory.content}" for each in found)
        return {"messages": [await agent.ainvoke([SystemMessage(SYSTEM + recalled), *state["messages"]])]}

    builder = StateGraph(MessagesState)
    builder.add_node(call_model)
    builder.add_node("tools", ToolNode([upsert_memory]))
    builder.add_edge(START, "call_model")
    builder.add_conditional_edges("call_model", tools_condition)
    builder.add_edge("tools", "call_model")
    return builder.compile(name="hot_path_chat")
