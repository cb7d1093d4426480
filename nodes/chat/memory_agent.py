"""The memory agent (§3.1, Figure 2): route a message, find similar memories, insert or update.

Version 3 is the product: a message router, then a conflict router that looks at each similar
memory by itself. Version 2 (message router, upsert router) and version 1 (one tool-calling agent)
share the steps around the decision, so that the three can be compared. The writes are in
`nodes/chat/memory_operations.py`.

Deviations from the paper, each for a fault that its §4.2 or its future work names:

- The insert function runs before the search and may find several facts in one message: a message
  with one contradiction and one new fact would otherwise lose the second.
- The conflict router tells four relations apart instead of two: `addition` appends to a memory
  (the paper's test 6 replaced it), and `duplicate` discards with a reason.
- What was decided becomes an outcome in the ledger, so that a discarded message has a rationale too.
"""

from asyncio import gather
from operator import add
from typing import Annotated, Any, Literal

from langgraph.types import Overwrite, Send
from typing_extensions import TypedDict

from mneme.core.errors import BadAnswer
from mneme.models.asking.asking import ask
from mneme.models.asking.counting import NOTHING, Asked, added
from mneme.models.asking.replies import read
from mneme.models.asking.unusable import Unusable
from mneme.nodes.chat.context import MemoryRuntime, inbox_of, memories_of
from mneme.nodes.chat.memory_operations import Operation, Origin, Similar, Task, Touched, retire_memory
from mneme.nodes.context import user_of
from mneme.nodes.counted import counted
from mneme.prompts.chat.evidence import located
from mneme.prompts.chat.memory_agent import (
    Candidate,
    Candidates,
    Forgetting,
    Incoming,
    Pair,
    Upsert,
    check_candidate,
    check_conflict,
    choose_forgotten,
    compose_memories,
    route_message,
    route_upsert,
)
from mneme.stores.users.inbox import Message, MessageOutcome, OperationNote, complete

Given = Message
"""What the graphs of the memory agent are given: one message to be remembered."""


class Result(TypedDict, total=False):
    """What became of a message: its route, why, who decided, and every operation on the memory."""

    route: Literal["store", "discard", "forget"]
    rationale: str
    model: str
    operations: Annotated[list[Operation], add]
    asked: Annotated[Asked, added]


class Check(TypedDict):
    """One conflict check: a candidate and one similar memory."""

    candidate: int
    fact: str
    message: str
    time: str
    memory: Similar


class Judged(TypedDict):
    """How the conflict router judged one check."""

    candidate: int
    memory: Similar
    relation: Literal["conflict", "addition", "duplicate", "unrelated"]
    rationale: str
    outdated: str


class Decision(TypedDict):
    """What to do with one candidate, and which memories it touches."""

    candidate: int
    action: Literal["insert", "update", "discard"]
    memories: list[Touched]
    rationale: str


class State(Message, Result, total=False):
    """The message, the candidates found in it, the memories similar to each, and what was decided."""

    candidates: list[dict[str, Any]]
    similar: list[list[Similar]]
    verdicts: Annotated[list[Judged], add]
    decisions: list[Decision]


Update = dict[str, Any]


async def receive(state: State, runtime: MemoryRuntime) -> Update:
    """Keep the message as pending until its outcome is in the ledger; return the outcome where it is."""
    message = complete(state)
    known = await inbox_of(runtime).add(user_of(runtime), message)
    return {
        **message,
        "route": known and known["route"],
        "rationale": known["rationale"] if known else "",
        "model": known["model"] if known else "",
        "verdicts": Overwrite([]),
        "operations": Overwrite([]),
        "asked": Overwrite(NOTHING),
    }


def is_settled(state: State) -> bool:
    """Say whether the message was remembered before: then nothing is left to do."""
    return state["route"] is not None


@counted
async def route(state: State, runtime: MemoryRuntime) -> Update:
    """Decide whether the message is worth remembering (message router)."""
    who = runtime.context.memory_agent
    answered = await ask(route_message, _incoming(state), who, lane="background")
    return {
        "route": answered.value.route,
        "rationale": answered.value.rationale,
        "model": answered.responder,
    }


ROUTES: dict[str, Literal["compose", "forget", "settle"]] = {
    "store": "compose",
    "forget": "forget",
    "discard": "settle",
}


def routed(state: State) -> Literal["compose", "forget", "settle"]:
    """Follow the message router."""
    return ROUTES[state["route"]]


@counted
async def forget(state: State, runtime: MemoryRuntime) -> Update:
    """Retire the memories that the user wants forgotten; their history stays until a person erases it."""
    similar = await similar_to(state["message"], runtime)
    given = Forgetting(
        message=state["message"],
        preceding=state.get("preceding", []),
        memories=[each["content"] for each in similar],
    )
    answer = (await ask(choose_forgotten, given, runtime.context.memory_agent, lane="background")).value
    chosen = [similar[number] for number in dict.fromkeys(answer.numbers)]
    task = Task(origin=_origin(state), candidates=[], memories=[], rationale=answer.rationale)
    retired = [await retire_memory(task, each, runtime) for each in chosen]
    return {"operations": retired, "rationale": f"{state['rationale']} {answer.rationale}"}


@counted
async def compose(state: State, runtime: MemoryRuntime) -> Update:
    """Write the message down as self-contained memories-to-be (the paper's insert function).

    Where none is found in what the router stored, it is looked at once more with the router's reason.
    """
    who = runtime.context.memory_agent
    found = await _composed(_incoming(state), who)
    if not found:
        found = await _composed(_incoming(state, noticed=state["rationale"]), who)
    if not found:
        return {
            "candidates": [],
            "rationale": f"{state['rationale']} But nothing of it could be written down.",
        }
    return {"candidates": found}


async def _composed(given: Incoming, who: str) -> list[dict[str, Any]]:
    """Return what a message gives to remember, each with the message's own words as its quote."""
    try:
        memories = (await ask(compose_memories, given, who, lane="background")).value.memories
        found = [(each, "") for each in memories]
    except BadAnswer as bad:
        found = _kept_of(given, bad)
    return [
        each.model_dump() | {"quote": located(each.quote, given.message), "flag": flag}
        for each, flag in found
    ]


def _kept_of(given: Incoming, bad: BadAnswer) -> list[tuple[Candidate, str]]:
    """Return what can be kept of a last reply that does not hold: in place of what nobody said, a quote.

    Raises the failure again where the reply has no memories at all.
    """
    try:
        memories = read(bad.raw, Candidates).memories
    except Unusable:
        raise bad from None
    return [_kept(given, memory) for memory in memories]


def _kept(given: Incoming, memory: Candidate) -> tuple[Candidate, str]:
    try:
        check_candidate(given, memory)
    except ValueError as wrong:
        quote = located(memory.quote, given.message) or given.message[:LONGEST_QUOTE]
        said = f"The user said: “{quote}”"
        return Candidate(content=said, quote=quote, kind=memory.kind), f"In the user's own words: {wrong}"
    return memory, ""


LONGEST_QUOTE = 900
"""Characters of the user's own words that stand for a memory which could not be written."""


def _incoming(state: State, noticed: str = "") -> Incoming:
    return Incoming(
        message=state["message"],
        preceding=state.get("preceding", []),
        time=state.get("time", ""),
        noticed=noticed,
    )


async def find_similar(state: State, runtime: MemoryRuntime) -> Update:
    """Search the user's memories by cosine with each candidate as the query."""
    contents = [candidate["content"] for candidate in state["candidates"]]
    return {"similar": await gather(*(similar_to(content, runtime) for content in contents))}


async def similar_to(text: str, runtime: MemoryRuntime) -> list[Similar]:
    """Return the memories most similar to a text, best first."""
    context = runtime.context
    found = await memories_of(runtime).similar(text, k=context.similar, min_similarity=context.min_similarity)
    return [Similar(key=each.key, version=each.version, content=each.memory.content) for each in found]


def each_pair(state: State) -> list[Send] | Literal["weigh"]:
    """Fan out to one conflict check per candidate and similar memory, all at once."""
    checks = [
        Check(
            candidate=number,
            fact=state["candidates"][number]["content"],
            message=state["message"],
            time=state.get("time", ""),
            memory=memory,
        )
        for number, similar in enumerate(state["similar"])
        for memory in similar
    ]
    return [Send("conflict_router", check) for check in checks] or "weigh"


@counted
async def check(state: Check, runtime: MemoryRuntime) -> Update:
    """Judge one candidate against one similar memory (conflict router)."""
    pair = Pair(
        fact=state["fact"], message=state["message"], memory=state["memory"]["content"], time=state["time"]
    )
    who = runtime.context.memory_agent
    verdict = (await ask(check_conflict, pair, who, lane="background")).value
    judged = Judged(
        candidate=state["candidate"],
        memory=state["memory"],
        relation=verdict.relation,
        rationale=verdict.rationale,
        outdated=located(verdict.outdated, pair.memory),
    )
    return {"verdicts": [judged]}


def weigh(state: State) -> Update:
    """Decide for each candidate by the verdicts on it (§3.1)."""
    verdicts = state.get("verdicts", [])
    return {
        "decisions": [
            _decision(number, [each for each in verdicts if each["candidate"] == number])
            for number in range(len(state["candidates"]))
        ]
    }


ACTIONS: dict[str, Literal["update", "discard"]] = {
    "conflict": "update",
    "duplicate": "discard",
    "addition": "update",
}
"""What a verdict leads to; where a candidate has several, the first of them here counts."""


def _decision(candidate: int, verdicts: list[Judged]) -> Decision:
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


@counted
async def route_upserts(state: State, runtime: MemoryRuntime) -> Update:
    """Decide for each candidate over all its similar memories at once (version 2's upsert router)."""
    numbers = range(len(state["candidates"]))
    return {"decisions": await gather(*(_upsert(number, state, runtime) for number in numbers))}


async def _upsert(number: int, state: State, runtime: MemoryRuntime) -> Decision:
    similar = state["similar"][number]
    given = Upsert(
        fact=state["candidates"][number]["content"],
        message=state["message"],
        memories=[memory["content"] for memory in similar],
    )
    who = runtime.context.memory_agent
    answer = (await ask(route_upsert, given, who, lane="background")).value
    chosen = [similar[answer.index]] if answer.route == "update" else []
    # The upsert router does not say what becomes false, so anything of the memory may.
    touched = [Touched(**each, outdated=each["content"]) for each in chosen]
    return Decision(candidate=number, action=answer.route, memories=touched, rationale=answer.rationale)


NODES = {"insert": "insert_memory", "update": "update_memory", "discard": "discard"}


def each_decision(state: State) -> list[Send] | Literal["settle"]:
    """Fan out to the operations: one per new memory, one per memory that changes.

    All that touches one memory goes into one update, since two updates at once would race.
    """
    origin = _origin(state)
    tasks: dict[tuple[str, str], Task] = {}
    for decision in state["decisions"]:
        action, number = decision["action"], decision["candidate"]
        for touched in [[memory] for memory in decision["memories"]] or [[]]:
            subject = touched[0]["key"] if action == "update" else str(number)
            new = Task(origin=origin, candidates=[], memories=touched, rationale="")
            task = tasks.setdefault((NODES[action], subject), new)
            task["candidates"].append(state["candidates"][number])
            task["rationale"] = f"{task['rationale']} {decision['rationale']}".strip()
    return [Send(node, task) for (node, _), task in tasks.items()] or "settle"


def _origin(state: State) -> Origin:
    return Origin(
        message=state["message"],
        message_id=state["message_id"],
        time=state.get("time", ""),
        thread=state.get("thread", ""),
        model=state["model"],
    )


async def settle(state: State, runtime: MemoryRuntime) -> Update:
    """Mark the message as remembered; clear its fields, or the thread's next message would inherit them."""
    notes = [
        OperationNote(
            event=each["operation"], key=each["key"], version=each["version"], reason=each["rationale"]
        )
        for each in state.get("operations", [])
    ]
    outcome = MessageOutcome(
        route=state["route"], rationale=state["rationale"], model=state["model"], operations=notes
    )
    await inbox_of(runtime).close(user_of(runtime), state["message_id"], outcome)
    return {"message_id": "", "preceding": [], "time": "", "thread": ""}
