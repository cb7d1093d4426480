"""The memory agent (§3.1, Figure 2): read a message, compare it with similar memories, insert or update.

One question routes a message and writes it down, one compares what was written with the similar memories
(`comparing.py`), and one rewrites a memory that is touched: at most four for most messages, where the
paper's version 3 asks one for each similar memory. `paper_versions.py` keeps the paper's own.

Deviations from the paper, each for a fault that its §4.2 or its future work names:

- The insert function runs before the search and may find several facts in one message: a message
  with one contradiction and one new fact would otherwise lose the second.
- Four relations are told apart instead of two: `addition` appends to a memory (the paper's test 6
  replaced it), and `duplicate` discards with a reason.
- What was decided becomes an outcome in the ledger, so that a discarded message has a rationale too.
"""

from asyncio import gather
from collections.abc import Sequence
from typing import Literal

from mneme.core.evidence import names
from mneme.models.asking.asking import resolve
from mneme.nodes.chat.comparing import judged, pairs
from mneme.nodes.chat.context import MemoryRuntime
from mneme.nodes.chat.memory_operations import Touched
from mneme.nodes.chat.remembering import Decision, Judged, State, Update, similar_to
from mneme.nodes.chat.statements import mentions
from mneme.nodes.chat.writing_down import answer_or_last_reply, incoming, written
from mneme.nodes.counted import counted
from mneme.prompts.chat.memory_agent.reading import Reading, read_message


@counted
async def read(state: State, runtime: MemoryRuntime) -> Update:
    """Decide whether the message is worth remembering, and write it down (router and insert function)."""
    who, known = runtime.context.memory_agent, await _of_the_same_names(state["message"], runtime)
    given = incoming(state).model_copy(update={"known": known})
    reading = _routed_by_memories(await answer_or_last_reply(read_message, given, who))
    return {
        "route": reading.route,
        "rationale": reading.rationale,
        "model": await resolve(who),
        "candidates": written(given, reading.memories),
    }


async def _of_the_same_names(message: str, runtime: MemoryRuntime) -> list[str]:
    """Return similar memories that share a name with a message: two people may have one name."""
    named = names(message)
    similar = await similar_to(message, runtime) if named else []
    return [each["content"] for each in similar if mentions(each["content"], named)][:MOST_KNOWN]


MOST_KNOWN = 4
"""Memories that the reader of a message is shown for the names that they share with it."""


def _routed_by_memories(reading: Reading) -> Reading:
    """Take what a model wrote down for stored, whatever its route; say so where it wrote nothing."""
    if reading.memories:
        return reading.model_copy(update={"route": "store"})
    if reading.route == "store":
        said = f"{reading.rationale} But nothing of it could be written down."
        return reading.model_copy(update={"rationale": said})
    return reading


ROUTES: dict[str, Literal["find_similar", "forget", "settle"]] = {
    "store": "find_similar",
    "forget": "forget",
    "discard": "settle",
}


def routed(state: State) -> Literal["find_similar", "forget", "settle"]:
    """Follow the route."""
    return ROUTES[state["route"]]


async def find_similar(state: State, runtime: MemoryRuntime) -> Update:
    """Search the user's memories by cosine with each candidate as the query."""
    contents = [candidate["content"] for candidate in state["candidates"]]
    return {"similar": await gather(*(similar_to(content, runtime) for content in contents))}


@counted
async def compare(state: State, runtime: MemoryRuntime) -> Update:
    """Judge every candidate against the similar memories that it may have to do with (conflict router)."""
    compared = pairs(state["candidates"], state["similar"])
    who, time = runtime.context.memory_agent, state.get("time", "")
    return {"verdicts": await judged(compared, state["candidates"], state["message"], time, who)}


def weigh(state: State) -> Update:
    """Decide for each candidate by the verdicts on it (§3.1); flag what may contradict a memory."""
    verdicts, candidates = state.get("verdicts", []), state["candidates"]
    of_each = [[each for each in verdicts if each["candidate"] == n] for n in range(len(candidates))]
    decisions = [
        decision_on(number, [each for each in found if may_touch(each, candidate["kind"])])
        for number, (candidate, found) in enumerate(zip(candidates, of_each, strict=True))
    ]
    flagged = [
        {**candidate, "flag": candidate["flag"] or _flag(decision, found)}
        for candidate, decision, found in zip(candidates, decisions, of_each, strict=True)
    ]
    return {"decisions": decisions, "candidates": flagged}


def _flag(decision: Decision, verdicts: Sequence[Judged]) -> str:
    """Name the memories that a new one may contradict, where the model could not say."""
    unclear = [each["memory"]["key"] for each in verdicts if each["relation"] == "unclear"]
    is_new = decision["action"] == "insert"
    return f"It may contradict {', '.join(unclear)}: no usable judgement." if unclear and is_new else ""


def may_touch(verdict: Judged, kind: str) -> bool:
    """Let nothing be added to a memory that is closed, nor an event to any: these stand alone."""
    return verdict["relation"] != "addition" or (kind == "semantic" and not verdict["memory"]["closed"])


ACTIONS: dict[str, Literal["update", "discard"]] = {
    "conflict": "update",
    "duplicate": "discard",
    "addition": "update",
}
"""What a verdict leads to; where a candidate has several, the first of them here counts."""


def decision_on(candidate: int, verdicts: list[Judged]) -> Decision:
    """Update every memory in conflict; discard a duplicate; append to the most similar; else insert."""
    for relation, action in ACTIONS.items():
        found = [verdict for verdict in verdicts if verdict["relation"] == relation]
        if found:
            found = found if relation == "conflict" else found[:1]
            return Decision(
                candidate=candidate,
                action=action,
                memories=[Touched(**each["memory"], outdated=each["outdated"]) for each in found],
                rationale=" ".join(dict.fromkeys(verdict["rationale"] for verdict in found)),
            )
    rationale = f"No conflict with any of {len(verdicts)} similar memories."
    return Decision(candidate=candidate, action="insert", memories=[], rationale=rationale)
