"""Wake the training of a pool's retriever without waiting for it (§3.2)."""

from typing import Any

from langgraph.runtime import Runtime
from langgraph_sdk import get_client

from mneme.nodes.background import LONG, thread_id, warn_of_a_single_worker
from mneme.nodes.context import team_of
from mneme.nodes.sharing.context import PoolContext, Pools

TRAINING_THREAD = "retriever/{team}/{pool}"
"""The name of the thread on which a pool's retriever is trained, one training after the other."""


async def wake_training(runtime: Runtime[Pools], pool: str) -> None:
    """Let the LangGraph server train on what waits; elsewhere whoever runs the graph does."""
    if runtime.server_info is None:
        return
    context = runtime.context.model_dump(include=set(PoolContext.model_fields))
    user = runtime.server_info.user
    await start_training(team_of(runtime), pool, context, owner=user.identity if user else "")


async def start_training(team: str, pool: str, context: dict[str, Any], owner: str = "") -> None:
    """Start a training in the background; where one waits already, it will see what is new.

    The server's own runs have no user, so the team is named in full; the thread is marked as its owner's,
    who may train on it by hand.
    """
    warn_of_a_single_worker()
    client, thread = get_client(api_key=None), thread_id(TRAINING_THREAD.format(team=team, pool=pool))
    marked = {"owner": owner} if owner else None
    await client.threads.create(
        thread_id=thread, graph_id="retriever_training", metadata=marked, if_exists="do_nothing"
    )
    if await client.runs.list(thread, status="pending", limit=1):
        return
    await client.runs.create(
        thread,
        "retriever_training",
        input={"pool": pool},
        context=context | {"team": team},
        config={"recursion_limit": LONG},
        multitask_strategy="enqueue",
    )
