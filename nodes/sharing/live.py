"""Watch what a retriever's examples lead to: where live scores fall, the version before serves again."""

from mneme.core.errors import MnemeError
from mneme.nodes.sharing.pools import retrievers_of
from mneme.stores.ledger.records import Change
from mneme.stores.pools.live_scores import LiveScores, is_worse
from mneme.stores.pools.memory_pool import MemoryPool
from mneme.stores.pools.retrievers import UNTRAINED


async def watch(pool: MemoryPool, retriever: int, score: int) -> str:
    """Count a score for the version that chose the examples; say so where this rolled the retriever back.

    The version that serves is compared with its parent. What cannot be rolled back goes on serving.
    """
    live, retrievers = LiveScores(pool), await retrievers_of(pool)
    await live.add(retriever, score, change=Change(reason="A live score.", actor="scorer"))
    if retriever == UNTRAINED or await retrievers.serving() != retriever:
        return ""
    parent = (await retrievers.get(retriever)).parent
    now, before = await live.of(retriever), await live.of(parent)
    if not is_worse(now, before):
        return ""
    told = (
        f"Retriever {retriever} was rolled back to {parent}: {now.mean:.0f} of 100 in {now.count} answers, "
        f"{before.mean:.0f} in {before.count} before."
    )
    try:
        await retrievers.roll_back(parent, change=Change(reason=told, actor="live scores"))
    except MnemeError as failure:  # another process was first, or its parent's file is gone
        return f"Retriever {retriever} is worse than {parent}, and could not be rolled back: {failure}"
    return told
