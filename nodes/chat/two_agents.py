"""An inserter and a batch updater as two agents (§4.2, future work), kept for comparison.

The inserter reads a message as our memory agent does and inserts all that it wrote down, compared with
nothing. The updater takes the memories that came since its last run, a batch at a time, beside those similar
to them: one question finds what belongs together, the older memory is rewritten with the newer one, and
the newer one is retired. How far it came is in its state: on a thread it goes on from there.

The paper says no more than that one agent inserts consistently in the background and another updates in
batches. How a batch is updated is ours; its relations and its rewriting are those of the other versions.
"""

from asyncio import gather
from collections.abc import Sequence
from datetime import UTC, datetime
from operator import add
from typing import Annotated, Any, Literal

from langgraph.types import Overwrite, Send
from pydantic import Field
from typing_extensions import TypedDict

from mneme.models.asking.asking import ask
from mneme.models.asking.counting import NOTHING, Asked, added
from mneme.nodes.chat.conflict_router import worth_comparing
from mneme.nodes.chat.context import MemoryRuntime, memories_of
from mneme.nodes.chat.memory_agent import decisions_on
from mneme.nodes.chat.memory_operations import (
    Fact,
    Judged,
    Operation,
    Origin,
    Relation,
    Task,
    judged,
    retire_memory,
    similar_of,
    update_with_facts,
)
from mneme.nodes.chat.remembering import (
    Decision,
    State,
    Update,
    each_decision,
    similar_to,
)
from mneme.nodes.costs import counted
from mneme.prompts.chat.evidence import located
from mneme.prompts.chat.memory_agent import comparing
from mneme.prompts.chat.memory_updater import Batch, FoundUpdate, find_updates
from mneme.stores.users.memories import MemoryRecord

MOST_NEW = 8
"""New memories that one question of the updater is about at most."""


def each_insertion(state: State) -> list[Send] | Literal["forget", "settle"]:
    """Insert all that was written down, whatever is remembered already."""
    if state["route"] == "forget":
        return "forget"
    decisions = [
        Decision(candidate=number, action="insert", touched=[], rationale=state["rationale"])
        for number in range(len(state["candidates"]))
    ]
    return each_decision({**state, "decisions": decisions})


class Since(TypedDict, total=False):
    """The time up to which memories were looked at, in ISO 8601; without it, all memories are new."""

    since: Annotated[
        str,
        Field(
            "",
            description="Up to when memories were looked at, in ISO 8601; empty: all are new.",
            examples=["2026-11-20T09:30:00+00:00"],
        ),
    ]


class Updated(Since, total=False):
    """What was done in all batches, who decided, and what was asked."""

    operations: Annotated[list[Operation], add]
    model: str
    asked: Annotated[Asked, added]


class Updating(Updated, total=False):
    """The keys of the memories still to be looked at; those of the batch in hand, and what was found."""

    new: list[str]
    batch: list[str]
    found: list[dict[str, Any]]


async def gather_new(state: Updating, runtime: MemoryRuntime) -> Update:
    """List the memories that came since the last run, and those that it did not get to, oldest first."""
    since = state.get("since", "")
    came = await memories_of(runtime).created_after(datetime.fromisoformat(since) if since else None)
    return {
        "new": [*state.get("new", []), *(each.key for each in came)],
        "since": max((each.at.isoformat() for each in came), default=since),
        "operations": Overwrite([]),
        "asked": Overwrite(NOTHING),
    }


def is_left(state: Updating) -> bool:
    """Say whether there are memories still to be looked at."""
    return bool(state["new"])


@counted
async def look_at_batch(state: Updating, runtime: MemoryRuntime) -> Update:
    """Ask once what some new memories change in one another and in similar ones."""
    new = await _live(state["new"][:MOST_NEW], runtime)
    older = await _similar_to(new, set(state["new"]), runtime)
    memories = [comparing.Fact(content=content) for content in older.values()]
    memories += [comparing.Fact(content=each.memory.content, said=each.memory.quote) for each in new]
    if not new or len(memories) == 1:
        return {"batch": [], "found": []}
    batch = Batch(memories=memories, new=len(older))
    answered = await ask(find_updates, batch, runtime.context.memory_agent, lane="background")
    return {
        "batch": [*older, *(each.key for each in new)],
        "found": [each.model_dump() for each in answered.value.updates],
        "model": answered.responder,
    }


async def _live(keys: Sequence[str], runtime: MemoryRuntime) -> list[MemoryRecord]:
    """Return the memories of these keys that nobody retired or erased meanwhile."""
    found = await gather(*(memories_of(runtime).find(key) for key in keys))
    return [each for each in found if each and each.live]


async def _similar_to(
    new: Sequence[MemoryRecord], waiting: set[str], runtime: MemoryRuntime
) -> dict[str, str]:
    """Return, by key, the memories that new ones may have to do with, but none that waits to be looked at."""
    found = await gather(*(similar_to(each.memory.content, runtime) for each in new))
    return {
        memory["key"]: memory["content"]
        for each, similar in zip(new, found, strict=True)
        for memory in worth_comparing(each.memory.content, similar)
        if memory["key"] not in waiting
    }


@counted
async def update_batch(state: Updating, runtime: MemoryRuntime) -> Update:
    """Put each newer memory that belongs to an older one into it, in the order in which they came."""
    found = [FoundUpdate.model_validate(each) for each in state["found"]]
    held_by: dict[str, str] = {}
    done: list[Operation] = []
    for number in sorted({each.newer for each in found}):
        of_one = [each for each in found if each.newer == number]
        places = [held_by.get(key, key) for key in (state["batch"][each.older] for each in of_one)]
        for newer in await _live([state["batch"][number]], runtime):
            verdicts = await _judged(of_one, places, runtime)
            decision, *_ = decisions_on(0, verdicts, newer.memory.model_dump(), datetime.now(UTC).date())
            if decision["action"] != "insert":
                held_by[newer.key] = decision["touched"][0]["memory"]["key"]
                done += await _put_in(newer, decision, state["model"], runtime)
    return {"operations": done, "new": state["new"][MOST_NEW:]}


async def _judged(
    found: Sequence[FoundUpdate], places: Sequence[str], runtime: MemoryRuntime
) -> list[Judged]:
    """Return how a memory stands to the older ones, as they are now; a retired one stands in no relation."""
    now = {each.key: each for each in await _live(places, runtime)}
    return [
        judged(
            0,
            similar_of(now[key]),
            RELATIONS[each.relation],
            each.reason,
            located(each.outdated, now[key].memory.content),
        )
        for each, key in zip(found, places, strict=True)
        if key in now
    ]


RELATIONS: dict[str, Relation] = {"conflict": "change", "addition": "addition", "duplicate": "duplicate"}


async def _put_in(
    newer: MemoryRecord, decision: Decision, model: str, runtime: MemoryRuntime
) -> list[Operation]:
    """Rewrite the older memories with a newer one, and retire that."""
    said = newer.memory
    origin = Origin(
        message=said.quote,
        message_id=said.message_id,
        time=said.time,
        thread=said.thread,
        model=model,
        write_id=newer.key,
    )
    candidate = said.model_dump(exclude={"message_id", "time", "thread", "statements", "read_by"})
    task = Task(origin=origin, facts=[], memory=None, rationale=decision["rationale"])
    done: list[Operation] = []
    for each in decision["touched"] if decision["action"] == "update" else ():
        fact = Fact(candidate=candidate, judged=each)
        done += await update_with_facts({**task, "facts": [fact], "memory": each["memory"]}, runtime)
    return [*done, await retire_memory(task, similar_of(newer), runtime)]
