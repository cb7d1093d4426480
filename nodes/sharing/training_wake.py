"""Wake the training of a pool's retriever without waiting for it (§3.2)."""

from typing import Any

import httpx
from langgraph.runtime import Runtime
from langgraph_sdk import get_client
from langgraph_sdk.errors import LangGraphError

from mneme.core.errors import MnemeError
from mneme.nodes.background import RECURSION_LIMIT, named_thread, warn_of_a_single_worker
from mneme.nodes.context import ledger_of, team_of
from mneme.nodes.sharing.context import PoolContext, Pools
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import LOCAL

TRAINING_THREAD = "retriever/{team}/{pool}"
"""The name of the thread on which a pool's retriever is trained, one training after the other."""


async def wake_training(runtime: Runtime[Pools], pool: str) -> str:
    """Let the LangGraph server train on waiting pairs; without a server, the caller runs the training.

    Return the reason if it could not be woken, else an empty text.
    """
    if runtime.server_info is None:
        return ""
    context = runtime.context.model_dump(include=set(PoolContext.model_fields))
    user = runtime.server_info.user
    owner = user.identity if user else LOCAL
    try:
        await start_training(ledger_of(runtime), owner, pool, context | {"team": team_of(runtime)})
    except (httpx.HTTPError, LangGraphError, MnemeError, OSError) as error:  # the answer must not be lost
        return f"Its training could not be woken, and waits for the next one: {error}"
    return ""


async def start_training(ledger: Ledger, owner: str, pool: str, context: dict[str, Any]) -> None:
    """Start a training in the background, unless one waits already.

    The server's own runs have no user, so `context` names the team in full; the thread is marked as its
    owner's, who may also train on it by hand.
    """
    warn_of_a_single_worker()
    client, name = get_client(api_key=None), TRAINING_THREAD.format(team=context["team"], pool=pool)
    thread = await named_thread(ledger, name, owner)
    await client.threads.create(
        thread_id=thread, graph_id="retriever_training", metadata={"owner": owner}, if_exists="do_nothing"
    )
    if await client.runs.list(thread, status="pending", limit=1):
        return  # it will see the new pairs, too
    await client.runs.create(
        thread,
        "retriever_training",
        input={"pool": pool},
        context=context,
        metadata={"owner": owner},
        config={"recursion_limit": RECURSION_LIMIT},
        multitask_strategy="enqueue",  # a training at work goes on; this one follows
    )
