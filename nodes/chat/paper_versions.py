"""Decisions of the paper's versions 2 and 3 of the memory agent (§3.1, Figure 2), for comparison.

Both route first. Version 3 asks a conflict router about each similar memory by itself, once the message is
written down. Version 2 searches with the message, asks an upsert router about all similar memories at once,
and writes the message down last.
"""

from asyncio import gather

from mneme.models.asking.asking import ask
from mneme.nodes.chat.context import MemoryRuntime
from mneme.nodes.chat.memory_operations import Judged
from mneme.nodes.chat.message_lifecycle import Decision, State, incoming, last_reply, similar_to, written
from mneme.nodes.workflow import Update, counted
from mneme.prompts.chat.evidence import located, sentence_around
from mneme.prompts.chat.memory_agent.reading import Incoming
from mneme.prompts.chat.memory_agent.rewriting import Pair
from mneme.prompts.chat.paper_versions import (
    Composing,
    Upsert,
    check_conflict,
    compose_memories,
    route_message,
    route_upsert,
)
from mneme.stores.users.memory import Memory, MemoryRecord


@counted
async def message_router(state: State, runtime: MemoryRuntime) -> Update:
    """Decide whether the message is worth remembering (message router)."""
    who = runtime.context.memory_agent
    answered = await ask(route_message, incoming(state, Incoming), who, lane="background")
    return {
        "route": answered.value.route,
        "rationale": answered.value.rationale,
        "model": answered.responder,
    }


@counted
async def compose(state: State, runtime: MemoryRuntime) -> Update:
    """Write the message down as self-contained memories-to-be (the paper's insert function)."""
    who, given = runtime.context.memory_agent, incoming(state, Composing)
    noticed = given.model_copy(update={"noticed": state["rationale"]})
    # The router saw something to store: if nothing is found, its reason is given in a second attempt.
    found = await composed_of(given, who) or await composed_of(noticed, who)
    nothing = "" if found else " But nothing of it could be written down."
    decided = state["decisions"][:1]  # version 2 has decided on the message; in version 3 there is none yet
    return {
        "candidates": found,
        "decisions": [
            each.model_copy(update={"candidate": n}) for each in decided for n in range(len(found))
        ],
        "rationale": state["rationale"] + nothing,
    }


async def composed_of(given: Composing, who: str) -> list[Memory]:
    """Return the memories-to-be of a message, or of words of it."""
    found, doubt = await last_reply(compose_memories, given, who)
    return written(given, found.memories, doubt)


# Version 3: each similar memory by itself.


@counted
async def conflict_router(state: State, runtime: MemoryRuntime) -> Update:
    """Judge each candidate against each similar memory by itself, all at once (conflict router)."""
    found = await gather(
        *(
            _judged(number, memory, state, runtime.context.memory_agent)
            for number, similar in enumerate(state["similar"])
            for memory in similar
        )
    )
    return {"verdicts": [each for each in found if each]}


async def _judged(number: int, memory: MemoryRecord, state: State, who: str) -> Judged | None:
    candidate, content = state["candidates"][number], memory.memory.content
    said = sentence_around(candidate.quote, state["message"])
    pair = Pair(fact=candidate.content, message=said, memory=content, time=state.get("time", ""))
    verdict = (await ask(check_conflict, pair, who, lane="background")).value
    if verdict.relation == "unrelated":
        return None
    return Judged(
        candidate=number,
        memory=memory,
        relation="change" if verdict.relation == "conflict" else verdict.relation,  # the paper's one word
        rationale=verdict.rationale,
        outdated=located(verdict.outdated, content),
    )


# Version 2: all similar memories at once.


async def find_similar_to_message(state: State, runtime: MemoryRuntime) -> Update:
    """Search the user's memories by cosine, with the message as the query."""
    return {"similar": [await similar_to(state["message"], runtime)]}


@counted
async def upsert_router(state: State, runtime: MemoryRuntime) -> Update:
    """Decide over all similar memories at once (upsert router)."""
    (similar,), message = state["similar"], state["message"]
    given = Upsert(fact=message, message=message, memories=[each.memory.content for each in similar])
    answer = (await ask(route_upsert, given, runtime.context.memory_agent, lane="background")).value
    decided = Decision(candidate=0, action="insert_memory", rationale=answer.rationale)
    if answer.route == "update":
        touched = [Judged(memory=similar[answer.index])]
        decided = decided.model_copy(update={"action": "update_memory", "touched": touched})
    return {"decisions": [decided]}
