"""Wake the memory agent without waiting for it."""

from typing import Any
from uuid import NAMESPACE_URL, uuid5

from langgraph.runtime import Runtime
from langgraph_sdk import get_client

from nodes.context import ChatContext, MemoryContext, user_of

LONG = 10_000
"""Steps that a run over many messages may take."""
MEMORY_THREAD = "memory/{user}"
"""The name of the thread on which a user's messages are remembered."""


def thread_id(name: str) -> str:
    """Return the thread of that name; the server takes UUIDs only."""
    return str(uuid5(NAMESPACE_URL, f"mneme:{name}"))


def memory_thread(user: str) -> str:
    """Return the thread on which a user's messages are remembered, one after the other."""
    return thread_id(MEMORY_THREAD.format(user=user))


async def wake_memory_agent(runtime: Runtime[ChatContext]) -> None:
    """Let the LangGraph server remember what waits; elsewhere whoever runs the chatbot does."""
    if runtime.server_info is None:
        return
    context = runtime.context.model_dump(include=set(MemoryContext.model_fields))
    await start_remembering(context | {"user": user_of(runtime)}, runtime.context.debounce)


async def start_remembering(context: dict[str, Any], after_seconds: int = 0) -> None:
    """Start a debounced background run for a user, on the one thread on which it is remembered.

    The run gets no message: it looks at what waits, because a debounced run's input is lost when the
    next one takes its place. One that works already is not interrupted, or a user who writes faster
    than the model reads would never be remembered.
    """
    client, thread = get_client(api_key=None), memory_thread(context["user"])
    owner = {"owner": context["user"]}
    await client.threads.create(thread_id=thread, graph_id="remember", metadata=owner, if_exists="do_nothing")
    works = await client.runs.list(thread, status="running", limit=1)
    await client.runs.create(
        thread,
        "remember",
        input={},
        context=context,
        config={"recursion_limit": LONG},
        after_seconds=after_seconds,
        multitask_strategy="enqueue" if works else "interrupt",
    )
