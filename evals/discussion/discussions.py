"""Discussions for evaluations: one on a ledger of its own, with all that was said and what it cost."""

import asyncio
import shutil
from pathlib import Path
from random import Random
from typing import Any

from mneme.evals.report import Row
from mneme.graphs import intrinsic_memory
from mneme.library.teams.document import MINUTES
from mneme.library.teams.team import Delegated, Team
from mneme.models.embedding.embedders import open_embedder
from mneme.nodes.discussion.context import DiscussionContext
from mneme.stores.discussions.discussions import Discussions
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger, open_ledger

OWNER = "eval"


def reordered(team: Team, seed: int) -> Team:
    """Return a team whose workers speak in another order: what makes runs by rules independent."""
    if not isinstance(team.speakers, Delegated):
        return team
    workers = list(team.speakers.workers)
    Random(seed).shuffle(workers)  # noqa: S311  (no secret)
    speakers = team.speakers.model_copy(update={"workers": workers})
    return team.model_copy(update={"speakers": speakers})


async def open_fresh_ledger(folder: Path, embedder: str) -> Ledger:
    """Open an empty ledger: an interrupted discussion is held again from its beginning."""
    await asyncio.to_thread(shutil.rmtree, folder, True)
    return await open_ledger(str(folder), await open_embedder(embedder))


async def hold(discussion_id: str, task: str, team: Team, context: DiscussionContext, ledger: Ledger) -> Row:
    """Hold a discussion to its end; return what it produced and every turn."""
    graph = intrinsic_memory.builder.compile(store=LedgerStore(ledger))
    given: Any = {"task": task, "team": team.model_dump(mode="json"), "discussion_id": discussion_id}
    result = await graph.ainvoke(given, context=context)
    turns = await Discussions(ledger, context.team).conversation(discussion_id).all(result["turn"])
    return {
        "ended": result["ended"],
        "turns": result["turn"],
        "tokens": result["tokens"],
        "document": {name: part for name, part in result["document"].items() if name != MINUTES},
        "report": result["report"],
        "answered_by": result["answered_by"],
        "transcript": [turn.model_dump(mode="json") for turn in turns],
    }
