"""Memories of other workflows that agents are shown, as sources of the records made from them.

A run's state has the names of records, not their texts: after a kill the same records are shown again,
corrected ones are marked, and no checkpoint contains a forgotten text.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langgraph.runtime import Runtime
from pydantic import BaseModel, Field

from mneme.models.asking.counting import tokens
from mneme.nodes.context import authenticated, ledger_of
from mneme.stores.access import Agent, Recallable, is_own, may_read, own_team, roles
from mneme.stores.audit import asker_of, audit, was_shown
from mneme.stores.ledger.records import LOCAL, user_namespace
from mneme.stores.recall import read_again, recall


class SharesMemory(BaseModel):
    """The amount of other workflows' memories that a run is shown."""

    shared_tokens: int = Field(
        300,
        ge=0,
        le=4000,
        description="Tokens of what other workflows of the team remember that agents are shown; 0: nothing.",
    )


async def look_up(
    runtime: Runtime[Any],
    question: str,
    agent: Agent,
    *,
    but: Sequence[Recallable] = (),
    own_facts: bool = True,
) -> list[str]:
    """Return the names of relevant records, best first; the run itself retrieves its team's `but` kinds.

    The roles file says which kinds an `agent` of the team may see. Records that rest on something out of date
    are left out. The user's own facts are shown only in a team of that user alone: members of a shared team
    see only facts that were shared with it.
    """
    context, who = runtime.context, authenticated(runtime)
    if runtime.store is None:
        return []
    team, ledger = own_team(who, context.team, "read"), ledger_of(runtime)
    if not (budget := context.shared_tokens):
        await audit(ledger, who, team, agent)  # its workflow still reads the team's memory
        return []
    user = str(who or getattr(context, "user", LOCAL))
    # Without keys anybody may be at the machine: then only a team that no roles file shares is private.
    is_private = own_facts and (team not in roles().teams if who is None else is_own(who, team))
    asker = await asker_of(ledger, who, user if is_private else "", [team])
    asker = replace(asker, retrieves=tuple(but))
    kinds = roles().shown_to(agent, team)
    found = await recall(ledger, question, asker, kinds=kinds, budget=budget, cost=tokens)
    if found:
        own = user_namespace(user, "memories")
        # Readings of a shared team are noted in its audit (`asker_of`).
        was_shown(ledger, user, agent, (each.key for each in found if each.is_in(own)))
        runtime.stream_writer({"step": "shared", "shown": [each.line for each in found]})
    return [each.name for each in found]


async def lines_of(runtime: Runtime[Any], names: Sequence[str], earlier: Sequence[str] = ()) -> list[str]:
    """Return the recalled records as agents are shown them, each with its origin, without forgotten ones.

    Records out of date are marked; of those shown `earlier`, only these are returned, if still visible.
    """
    if not (wanted := list(dict.fromkeys([*names, *earlier]))):
        return []
    who, teams = authenticated(runtime), set[str]()
    if earlier:
        team = own_team(who, runtime.context.team, "read")
        teams = {team, *(each.team for each in roles().opened([team]))}
    # Rights are checked anew, since they may have been withdrawn after the search.
    found = await read_again(ledger_of(runtime), wanted, lambda place: may_read(who, place))
    return [each.line for each in found if each.name in names or (each.stale and each.owner in teams)]
