"""Wake the memory agent without waiting for it."""

from typing import Any

from langgraph_sdk import get_client

from mneme.nodes.background import LONG, THREAD_NAME, named_thread, owner_of_runs, warn_of_a_single_worker
from mneme.nodes.chat.chatbot import State
from mneme.nodes.chat.context import ChatRuntime, MemoryContext
from mneme.nodes.context import ledger_of, user_of
from mneme.stores.ledger.ledger import Ledger

MEMORY_THREAD = "memory/{user}"
"""The name of the thread on which a user's messages are remembered."""


async def wake(state: State, runtime: ChatRuntime) -> dict[str, Any]:
    """Let the LangGraph server remember what waits; without a server, the caller runs `remember`."""
    if runtime.server_info is not None:
        context = runtime.context.model_dump(include=set(MemoryContext.model_fields))
        context["user"] = user_of(runtime)
        await start_remembering(ledger_of(runtime), context, runtime.context.debounce)
    return {}


async def start_remembering(ledger: Ledger, context: dict[str, Any], after_seconds: int = 0) -> None:
    """Start a debounced background run for a user, on the one thread on which it is remembered.

    The run gets no message: it looks at what waits, because a debounced run's input is lost when the
    next one takes its place. A run that has begun is not interrupted: otherwise a user who writes faster
    than the model reads would never be remembered.
    """
    warn_of_a_single_worker()
    client, user = get_client(api_key=None), context["user"]
    name = MEMORY_THREAD.format(user=user)
    thread, owner = await named_thread(ledger, name, user), {"owner": await owner_of_runs(user)}
    await client.threads.create(thread_id=thread, graph_id="remember", metadata=owner, if_exists="do_nothing")
    works = await client.runs.list(thread, status="running", limit=1)
    await client.runs.create(
        thread,
        "remember",
        input={},
        context=context,
        metadata=owner | {THREAD_NAME: name},
        config={"recursion_limit": LONG},
        after_seconds=after_seconds,
        multitask_strategy="enqueue" if works else "interrupt",
    )
