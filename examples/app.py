"""A LangGraph app that remembers its users: run it twice, `python examples/app.py "I live in Oslo."`."""

import asyncio
import sys

from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime

import mneme


async def answer(state: MessagesState, runtime: Runtime[mneme.Memory]) -> dict[str, list[str]]:
    """Answer with what fits the message; your model would read it."""
    said, memory = state["messages"][-1].text, runtime.context
    known = [found.text for found in await memory.recall(said, limit=3)]
    await memory.remember(state["messages"], memory_agent="rules")
    return {"messages": [f"I know: {' '.join(known) or 'nothing yet.'}"]}


app = (
    StateGraph(MessagesState, context_schema=mneme.Memory)
    .add_node(answer)
    .add_edge(START, "answer")
    .compile()
)


async def main(words: str) -> None:
    """Say something to the app."""
    async with mneme.open("ann") as memory:
        # The memory is context: a checkpointer would have to write what is in the state.
        done = await app.ainvoke({"messages": [("user", words)]}, context=memory)
    print(done["messages"][-1].text)


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:])))
