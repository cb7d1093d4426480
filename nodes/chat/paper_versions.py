"""How the paper's own versions 2 and 3 of the memory agent decide (§3.1, Figure 2), kept for comparison.

Both route first. Version 3 asks a conflict router about each similar memory by itself, once the message is
written down. Version 2 searches with the message, asks an upsert router about all similar memories at once,
and writes the message down last; `compose_first` turns that order round, since one message may hold two
facts that go to different places.
"""

from asyncio import gather
from typing import Any, Literal

from langgraph.types import Send
from typing_extensions import TypedDict

from mneme.models.asking.asking import ask
from mneme.nodes.chat.context import MemoryRuntime
from mneme.nodes.chat.memory_agent import find_similar
from mneme.nodes.chat.memory_operations import Relation, Similar, judged
from mneme.nodes.chat.remembering import Decision, State, Update, each_decision, similar_to
from mneme.nodes.chat.writing_down import around, incoming, last_reply, written
from mneme.nodes.costs import counted
from mneme.prompts.chat.evidence import located
from mneme.prompts.chat.memory_agent.rewriting import Pair
from mneme.prompts.chat.paper_versions import (
    Composing,
    Upsert,
    check_conflict,
    compose_memories,
    route_message,
    route_upsert,
)


class Check(TypedDict):
    """One conflict check: a candidate, the words it was taken from, and one similar memory."""

    candidate: int
    fact: str
    message: str
    time: str
    memory: Similar


@counted
async def message_router(state: State, runtime: MemoryRuntime) -> Update:
    """Decide whether the message is worth remembering (message router)."""
    who = runtime.context.memory_agent
    answered = await ask(route_message, incoming(state), who, lane="background")
    return {
        "route": answered.value.route,
        "rationale": answered.value.rationale,
        "model": answered.responder,
    }


def routed(state: State) -> Literal["compose", "forget", "settle"]:
    """Follow the message router (version 3)."""
    return "compose" if state["route"] == "store" else _end(state)


def routed_to_search(
    state: State, runtime: MemoryRuntime
) -> Literal["compose", "find_similar", "forget", "settle"]:
    """Follow the message router (version 2)."""
    if state["route"] != "store":
        return _end(state)
    return "compose" if runtime.context.compose_first else "find_similar"


def _end(state: State) -> Literal["forget", "settle"]:
    return "forget" if state["route"] == "forget" else "settle"


@counted
async def compose(state: State, runtime: MemoryRuntime) -> Update:
    """Write the message down as self-contained memories-to-be (the paper's insert function).

    Where none is found in what the router stored, it is looked at once more with the router's reason.
    """
    who = runtime.context.memory_agent
    found = await _composed(state, "", who) or await _composed(state, state["rationale"], who)
    nothing = "" if found else " But nothing of it could be written down."
    decided = state.get("decisions", [])[:1]
    return {
        "candidates": found,
        "decisions": [{**each, "candidate": number} for each in decided for number in range(len(found))],
        "rationale": state["rationale"] + nothing,
    }


async def _composed(state: State, noticed: str, who: str) -> list[dict[str, Any]]:
    given = Composing(**dict(incoming(state)), noticed=noticed)
    return await composed_of(given, who)


async def composed_of(given: Composing, who: str) -> list[dict[str, Any]]:
    """Return the memories-to-be of a message, or of words of it."""
    found, doubt = await last_reply(compose_memories, given, who)
    return written(given, found.memories, doubt)


# Version 3: each similar memory by itself.


def each_pair(state: State) -> list[Send] | Literal["decide"]:
    """Fan out to one conflict check per candidate and similar memory, all at once."""
    checks = [
        Check(
            candidate=number,
            fact=candidate["content"],
            message=around(candidate["quote"], state["message"]),
            time=state.get("time", ""),
            memory=memory,
        )
        for number, (candidate, similar) in enumerate(zip(state["candidates"], state["similar"], strict=True))
        for memory in similar
    ]
    return [Send("conflict_router", check) for check in checks] or "decide"


@counted
async def conflict_router(state: Check, runtime: MemoryRuntime) -> Update:
    """Judge one candidate against one similar memory (conflict router)."""
    pair = Pair(
        fact=state["fact"], message=state["message"], memory=state["memory"]["content"], time=state["time"]
    )
    who = runtime.context.memory_agent
    verdict = (await ask(check_conflict, pair, who, lane="background")).value
    if verdict.relation == "unrelated":
        return {}
    relation: Relation = "change" if verdict.relation == "conflict" else verdict.relation
    outdated = located(verdict.outdated, pair.memory)
    return {"verdicts": [judged(state["candidate"], state["memory"], relation, verdict.rationale, outdated)]}


# Version 2: all similar memories at once.


async def find_similar_to_message(state: State, runtime: MemoryRuntime) -> Update:
    """Search the user's memories by cosine, with what is written down as the query, else with the message."""
    if state["candidates"]:
        return await find_similar(state, runtime)
    return {"similar": [await similar_to(state["message"], runtime)]}


@counted
async def route_upserts(state: State, runtime: MemoryRuntime) -> Update:
    """Decide over all similar memories at once, for each candidate or for the message (upsert router)."""
    facts = [each["content"] for each in state["candidates"]] or [state["message"]]
    return {
        "decisions": await gather(
            *(_upsert(number, fact, state, runtime) for number, fact in enumerate(facts))
        )
    }


async def _upsert(number: int, fact: str, state: State, runtime: MemoryRuntime) -> Decision:
    similar = state["similar"][number]
    given = Upsert(fact=fact, message=state["message"], memories=[memory["content"] for memory in similar])
    who = runtime.context.memory_agent
    answer = (await ask(route_upsert, given, who, lane="background")).value
    touched = [judged(number, similar[answer.index])] if answer.route == "update" else []
    return Decision(candidate=number, action=answer.route, touched=touched, rationale=answer.rationale)


def composed(state: State) -> list[Send] | Literal["find_similar", "settle"]:
    """Carry out what was decided before the message was written down; else search."""
    if not state["candidates"]:
        return "settle"
    return each_decision(state) if state["decisions"] else "find_similar"


def decided(state: State) -> list[Send] | Literal["compose", "settle"]:
    """Carry out what was decided; where it was decided of the message, write that down first."""
    return each_decision(state) if state["candidates"] else "compose"
