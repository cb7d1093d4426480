"""What a workflow is shown of all that the others remember, and what it makes from that."""

from collections.abc import Sequence
from typing import Any, TypedDict

from langgraph.runtime import Runtime
from pydantic import BaseModel, Field

from mneme.models.asking.budget import tokens
from mneme.nodes.context import asker_of, ledger_of
from mneme.stores.ledger.records import Change, Source
from mneme.stores.recall import RECALLABLE, Recallable, recall


class SharesMemory(BaseModel):
    """How much of what other workflows remember a run is shown."""

    shared_tokens: int = Field(
        300,
        ge=0,
        le=4000,
        description="Tokens of what other workflows remember that are shown beside its own; 0: nothing.",
    )


class Shown(TypedDict):
    """What a run was shown of others' memory: the lines, and the versions that they are from."""

    lines: list[str]
    records: list[str]


NOTHING = Shown(lines=[], records=[])


async def shown(runtime: Runtime[Any], team: str, question: str, *, but: Sequence[Recallable] = ()) -> Shown:
    """Recall what a run may be shown that answers a question; `but` the kinds that it retrieves itself.

    What rests on something out of date is not among it.
    """
    if not (budget := runtime.context.shared_tokens):
        return NOTHING
    kinds = [kind for kind in RECALLABLE if kind not in but]
    asker = asker_of(runtime, team)
    found = await recall(ledger_of(runtime), question, asker, kinds=kinds, budget=budget, cost=tokens)
    return Shown(lines=[each.line for each in found], records=[each.reference for each in found])


def made_from(change: Change, seen: Shown) -> Change:
    """Return a change that names what was shown, so that what is made of it can be traced."""
    if not seen["records"]:
        return change
    names = [*change.source.records, *seen["records"]]
    source: Source = change.source.model_copy(update={"records": [*dict.fromkeys(names)]})
    return change.model_copy(update={"source": source})
