"""Memories of other workflows that a workflow is shown, and the sources of records made from them.

A run's state keeps the names of records and no text: after a kill the same is shown again, what was corrected
meanwhile is marked, and a text that was forgotten stands in no checkpoint.
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
    """How much a run is shown of what other workflows remember."""

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
    """Return the names of what bears on a question, best first; `but` kinds that it retrieves from its team.

    Its kinds are those that the roles file lets an `agent` of the team see. What rests on something out of
    date is not among it. The user's own facts are shown in a team of theirs alone: of a team that several
    people share, its members see what was shared with it.
    """
    context, who = runtime.context, authenticated(runtime)
    if runtime.store is None:
        return []
    team, ledger = own_team(who, context.team, "read"), ledger_of(runtime)
    if not (budget := context.shared_tokens):
        await audit(ledger, who, team, agent)  # what it retrieves from its team, it reads
        return []
    user = str(who or getattr(context, "user", LOCAL))
    is_private = own_facts and (team not in roles().teams if who is None else is_own(who, team))
    asker = await asker_of(ledger, who, user if is_private else "", [team])
    asker = replace(asker, retrieves=tuple(but))
    kinds = roles().shown_to(agent, team)
    found = await recall(ledger, question, asker, kinds=kinds, budget=budget, cost=tokens)
    if found:
        own = user_namespace(user, "memories")
        was_shown(ledger, user, agent, (each.key for each in found if each.is_in(own)))
        runtime.stream_writer({"step": "shared", "shown": [each.line for each in found]})
    return [each.name for each in found]


async def lines_of(runtime: Runtime[Any], names: Sequence[str], earlier: Sequence[str] = ()) -> list[str]:
    """Return the recalled records as agents are shown them, each with its origin, without forgotten ones.

    What holds no longer is marked; of what was shown `earlier`, that alone is named, if it may be seen still.
    """
    if not (wanted := list(dict.fromkeys([*names, *earlier]))):
        return []
    who, teams = authenticated(runtime), set[str]()
    if earlier:
        team = own_team(who, runtime.context.team, "read")
        teams = {team, *(each.team for each in roles().opened([team]))}
    found = await read_again(ledger_of(runtime), wanted, lambda place: may_read(who, place))
    return [each.line for each in found if each.name in names or (each.stale and each.owner in teams)]
