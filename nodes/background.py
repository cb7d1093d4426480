"""Wake the memory agent without waiting for it."""

from uuid import NAMESPACE_URL, uuid5

from langgraph.runtime import Runtime
from langgraph_sdk import get_client

from nodes.context import ChatContext, MemoryContext, user_of


def thread_id(name: str) -> str:
    """Return the thread of that name; the server takes UUIDs only."""
    return str(uuid5(NAMESPACE_URL, f"mneme:{name}"))


def memory_thread(user: str) -> str:
    """Return the thread on which a user's messages are remembered, one after the other."""
    return thread_id(f"memory/{user}")


async def wake_memory_agent(runtime: Runtime[ChatContext]) -> None:
    """Start a debounced background run on the LangGraph server.

    The run gets no message: it looks at what waits, because a debounced run's input is lost when the
    next one interrupts it. Outside the server, whoever runs the chatbot runs the memory agent.
    """
    if runtime.server_info is None:
        return
    user = user_of(runtime)
    context = runtime.context.model_dump(include=set(MemoryContext.model_fields)) | {"user": user}
    await get_client(api_key=None).runs.create(
        memory_thread(user),
        "remember",
        input={},
        context=context,
        after_seconds=runtime.context.debounce,
        multitask_strategy="interrupt",
        if_not_exists="create",
    )
