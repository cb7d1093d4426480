"""The memory agent (§3.1, Figure 2): route a message, find similar memories, insert or update.

Version 3 is the product: a message router, then a conflict router that looks at each similar
memory by itself. Version 2 (message router, upsert router) and version 1 (one tool-calling agent)
share the steps around the decision, so that the three can be compared. The writes are in
`nodes/memory_operations.py`.

Deviations from the paper, each for a fault that its §4.2 or its future work names:

- The insert function runs before the search and may find several facts in one message: a message
  with one contradiction and one new fact would otherwise lose the second.
- The conflict router tells four relations apart instead of two: `addition` appends to a memory
  (the paper's test 6 replaced it), and `duplicate` discards with a reason.
- What was decided becomes an outcome in the ledger, so that a discarded message has a rationale too.
"""

from asyncio import gather
from datetime import UTC, datetime
from operator import add
from typing import Annotated, Any, Literal
from uuid import uuid4

from langgraph.runtime import Runtime
from langgraph.types import Overwrite, Send
from typing_extensions import NotRequired, TypedDict  # noqa: UP035  (Studio reads NotRequired from here on 3.11)

from mneme.errors import BadInput
from models.asking import ask
from nodes.context import MemoryContext, inbox_of, memories_of, user_of
from nodes.memory_operations import Operation, Origin, Similar, Task
from prompts.memory_agent import (
    Incoming,
    Pair,
    Upsert,
    check_conflict,
    compose_memories,
    route_message,
    route_upsert,
)
from stores import inbox
from stores.inbox import Pending


class Message(TypedDict):
    """One user message to be remembered; only its text is required."""

    message: str
    message_id: NotRequired[str]
    preceding: NotRequired[list[str]]
    time: NotRequired[str]
    thread: NotRequired[str]


class Outcome(TypedDict, total=False):
    """What became of a message: its route, why, who decided, and every operation on the memory."""

    route: Literal["store", "discard"]
    rationale: str
    model: str
    operations: Annotated[list[Operation], add]


class Check(TypedDict):
    """One conflict check: a candidate and one similar memory."""

    candidate: int
    fact: str
    message: str
    time: str
    memory: Similar


class Judged(TypedDict):
    """The conflict router's verdict on one check."""

    candidate: int
    memory: Similar
    relation: Literal["conflict", "addition", "duplicate", "unrelated"]
    rationale: str


class Decision(TypedDict):
    """What is to become of one candidate, and which memories it bears on."""

    candidate: int
    action: Literal["insert", "update", "discard"]
    memories: list[Similar]
    rationale: str


class State(Message, Outcome, total=False):
    """The message, what was made of it, and what was decided."""

    candidates: list[dict[str, Any]]
    similar: list[list[Similar]]
    verdicts: Annotated[list[Judged], add]
    decisions: list[Decision]


Update = dict[str, Any]
Context = Runtime[MemoryContext]


async def receive(state: State, runtime: Context) -> Update:
    """Keep the message as pending until its outcome is in the ledger; return the outcome where it is."""
    pending = pending_of(state)
    user, messages = user_of(runtime), inbox_of(runtime)
    is_new = await messages.add(user, pending)
    known = None if is_new else await _known(messages, user, pending.message_id)
    return {
        **pending.model_dump(),
        "route": known and known.route,
        "rationale": known.rationale if known else "",
        "model": known.model if known else "",
        "verdicts": Overwrite([]),
        "operations": Overwrite([]),
    }


async def _known(messages: inbox.Inbox, user: str, message_id: str) -> inbox.Outcome | None:
    """Return what became of a message that came before; None where it still waits."""
    if outcome := await messages.outcome(user, message_id):
        return outcome
    if any(each.message_id == message_id for each in await messages.pending(user)):
        return None
    return inbox.Outcome(route="discard", rationale="It was forgotten, and stays so.")


def pending_of(message: Message) -> Pending:
    """Return a message as the inbox keeps it, with an id and a time of its own where it has none."""
    if not str(message.get("message", "")).strip():
        raise BadInput("The message is empty.", "Give the words that are to be remembered.")
    return Pending(
        message_id=message.get("message_id") or uuid4().hex,
        thread=message.get("thread", ""),
        message=message["message"],
        preceding=message.get("preceding", []),
        time=message.get("time") or datetime.now(UTC).isoformat(timespec="seconds"),
    )


def is_settled(state: State) -> bool:
    """Say whether the message was remembered before: then nothing is left to do."""
    return state["route"] is not None


async def route(state: State, runtime: Context) -> Update:
    """Decide whether the message is worth remembering (message router)."""
    who = runtime.context.memory_agent
    answered = await ask(route_message, _incoming(state), who, lane="background")
    return {
        "route": answered.value.route,
        "rationale": answered.value.rationale,
        "model": answered.responder,
    }


async def compose(state: State, runtime: Context) -> Update:
    """Write the message down as self-contained memories-to-be (the paper's insert function)."""
    who = runtime.context.memory_agent
    answered = await ask(compose_memories, _incoming(state), who, lane="background")
    return {"candidates": [candidate.model_dump() for candidate in answered.value.memories]}


def _incoming(state: State) -> Incoming:
    return Incoming(
        message=state["message"], preceding=state.get("preceding", []), time=state.get("time", "")
    )


async def find_similar(state: State, runtime: Context) -> Update:
    """Search the user's memories by cosine with each candidate as the query."""
    contents = [candidate["content"] for candidate in state["candidates"]]
    return {"similar": await gather(*(similar_to(content, runtime) for content in contents))}


async def similar_to(text: str, runtime: Context) -> list[Similar]:
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


async def check(state: Check, runtime: Context) -> Update:
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
    )
    return {"verdicts": [judged]}


def weigh(state: State) -> Update:
    """Decide for each candidate by the verdicts on it (§3.1)."""
    verdicts = state.get("verdicts", [])
    return {
        "decisions": [
            _decision(number, [verdict for verdict in verdicts if verdict["candidate"] == number])
            for number in range(len(state["candidates"]))
        ]
    }


def _decision(candidate: int, verdicts: list[Judged]) -> Decision:
    """Update every memory in conflict; discard a duplicate; append to the most similar; else insert."""
    if conflicts := _judged("conflict", verdicts):
        return _decide(candidate, "update", conflicts)
    if duplicates := _judged("duplicate", verdicts):
        return _decide(candidate, "discard", duplicates[:1])
    if additions := _judged("addition", verdicts):
        return _decide(candidate, "update", additions[:1])
    return Decision(
        candidate=candidate,
        action="insert",
        memories=[],
        rationale=f"No conflict with any of {len(verdicts)} similar memories.",
    )


def _judged(relation: str, verdicts: list[Judged]) -> list[Judged]:
    return [verdict for verdict in verdicts if verdict["relation"] == relation]


def _decide(candidate: int, action: Literal["update", "discard"], verdicts: list[Judged]) -> Decision:
    return Decision(
        candidate=candidate,
        action=action,
        memories=[verdict["memory"] for verdict in verdicts],
        rationale=" ".join(dict.fromkeys(verdict["rationale"] for verdict in verdicts)),
    )


async def route_upserts(state: State, runtime: Context) -> Update:
    """Decide for each candidate over all its similar memories at once (version 2's upsert router)."""
    numbers = range(len(state["candidates"]))
    return {"decisions": await gather(*(_upsert(number, state, runtime) for number in numbers))}


async def _upsert(number: int, state: State, runtime: Context) -> Decision:
    similar = state["similar"][number]
    given = Upsert(
        fact=state["candidates"][number]["content"],
        message=state["message"],
        memories=[memory["content"] for memory in similar],
    )
    who = runtime.context.memory_agent
    answer = (await ask(route_upsert, given, who, lane="background")).value
    chosen = [similar[answer.index]] if answer.route == "update" else []
    return Decision(candidate=number, action=answer.route, memories=chosen, rationale=answer.rationale)


def each_decision(state: State) -> list[Send] | Literal["settle"]:
    """Fan out to the operations: one per new memory, one per memory that changes."""
    updates: dict[str, Task] = {}
    sends: list[Send] = []
    for decision in state["decisions"]:
        if decision["action"] == "update":
            _merge(updates, state, decision)
            continue
        node = "insert_memory" if decision["action"] == "insert" else "discard"
        sends.append(Send(node, _task(state, decision, decision["memories"])))
    return sends + [Send("update_memory", task) for task in updates.values()] or "settle"


def _merge(updates: dict[str, Task], state: State, decision: Decision) -> None:
    """Gather all that bears on one memory into one update: two at once would race."""
    for memory in decision["memories"]:
        task = _task(state, decision, [memory])
        known = updates.setdefault(memory["key"], task | {"candidates": [], "rationale": ""})
        known["candidates"] = known["candidates"] + task["candidates"]
        known["rationale"] = f"{known['rationale']} {task['rationale']}".strip()


def _task(state: State, decision: Decision, memories: list[Similar]) -> Task:
    return Task(
        origin=Origin(
            message=state["message"],
            message_id=state["message_id"],
            time=state.get("time", ""),
            thread=state.get("thread", ""),
            model=state["model"],
        ),
        candidates=[state["candidates"][decision["candidate"]]],
        memories=memories,
        rationale=decision["rationale"],
    )


async def settle(state: State, runtime: Context) -> Update:
    """Mark the message as remembered; forget its particulars, or the thread's next message would get them."""
    outcome = inbox.Outcome(
        route=state["route"],
        rationale=state["rationale"],
        model=state["model"],
        operations=[_noted(operation) for operation in state.get("operations", [])],
    )
    await inbox_of(runtime).close(user_of(runtime), state["message_id"], outcome)
    return {"message_id": "", "preceding": [], "time": "", "thread": ""}


def _noted(operation: Operation) -> inbox.Operation:
    """Note an operation without its content: that is in the memory's history, and forgotten with it."""
    return inbox.Operation(
        event=operation["operation"],
        key=operation["key"],
        version=operation["version"],
        reason=operation["rationale"],
    )
