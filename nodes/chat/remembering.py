"""What every version of the memory agent does with a message: take it in, find, carry out, forget, settle.

How it is decided what to do is each version's own: `memory_agent.py`, `paper_versions.py`,
`memory_tools.py`. The writes are in `memory_operations.py`.
"""

from operator import add
from typing import Annotated, Any, Literal, cast

from langgraph.types import Overwrite, Send
from pydantic import Field
from typing_extensions import TypedDict

from mneme.models.asking.asking import ask
from mneme.models.asking.counting import NOTHING, Asked, added
from mneme.nodes.chat.context import MemoryRuntime, inbox_of, memories_of
from mneme.nodes.chat.memory_operations import (
    Fact,
    Judged,
    Operation,
    Origin,
    Similar,
    Task,
    judged,
    retire_memory,
    similar_of,
)
from mneme.nodes.context import user_of
from mneme.nodes.costs import counted
from mneme.nodes.messages import PRECEDING, ChatMessages, said_in
from mneme.nodes.tracing import traced
from mneme.prompts.chat.memory_agent.forgetting import Forgetting, choose_forgotten
from mneme.stores.users.inbox import Circumstances, Message, MessageOutcome, OperationNote, complete


class Given(Circumstances, total=False):
    """What the graphs of the memory agent are given: one message to be remembered, or the chat it ends."""

    message: Annotated[
        str, Field("", description="What the user said.", examples=["My sister lives in Portland."])
    ]
    messages: ChatMessages


class Result(TypedDict, total=False):
    """What became of a message: its route, why, who decided, every operation, and the run with its trace."""

    route: Literal["store", "discard", "forget"]
    rationale: str
    model: str
    operations: Annotated[list[Operation], add]
    asked: Annotated[Asked, added]
    run_id: str
    trace: str


Action = Literal["insert", "update", "limit", "replace", "retire", "discard"]


class Decision(TypedDict):
    """What to do with one candidate, and which memories it touches, with the words that become false."""

    candidate: int
    action: Action
    touched: list[Judged]
    rationale: str


class State(Message, Result, total=False):
    """The message or the chat it ends, its candidates, the memories similar to each, and what was decided."""

    messages: ChatMessages
    candidates: list[dict[str, Any]]
    own: Similar | None
    """The memory that is read again, where one is."""
    similar: list[list[Similar]]
    verdicts: Annotated[list[Judged], add]
    decisions: list[Decision]


Update = dict[str, Any]


FRESH: Update = {
    **dict.fromkeys(("route", "own")),
    **dict.fromkeys(("rationale", "model", "run_id", "trace", "rereads", "told_in"), ""),
    **{name: [] for name in ("messages", "candidates", "similar", "decisions")},
    **{name: Overwrite([]) for name in ("verdicts", "operations")},
    "asked": Overwrite(NOTHING),
}
"""The state of a thread before a message, without what the last one left."""


async def receive(state: State, runtime: MemoryRuntime) -> Update:
    """Keep the message as pending until its outcome is in the ledger; return the outcome where it is."""
    message = complete(_given(state))
    known = await inbox_of(runtime).add(user_of(runtime), message)
    outcome = {name: each for name, each in dict(known or {}).items() if name != "operations"}
    return FRESH | dict(message) | outcome


def _given(state: State) -> Message:
    """Return the message, from chat messages where there are any. Raises BadInput."""
    if not state.get("messages"):
        return state
    said = said_in(state["messages"])
    about = cast(Message, state)
    return {**about, "message": said.text, "preceding": said.before[-PRECEDING:]}


def is_settled(state: State) -> bool:
    """Say whether the message was remembered before: then nothing is left to do."""
    return state["route"] is not None


async def similar_to(text: str, runtime: MemoryRuntime) -> list[Similar]:
    """Return the memories most similar to a text, best first."""
    context = runtime.context
    found = await memories_of(runtime).similar(text, k=context.similar, min_similarity=context.min_similarity)
    return [similar_of(each) for each in found]


NODES: dict[Action, str] = {
    "insert": "insert_memory",
    "update": "update_memory",
    "limit": "update_memory",
    "replace": "replace_memory",
    "retire": "retire",
    "discard": "discard",
}


NO_MEMORY = Similar(
    key="", version=0, content="", since="", until="", read_by="", similarity=None, full=False
)
NOTHING_TOUCHED = judged(-1, NO_MEMORY)
"""Stands for the memory of an operation that touches none."""


def each_decision(state: State) -> list[Send] | Literal["settle"]:
    """Fan out to the operations: one per new memory, one per memory that changes.

    All that touches one memory goes into one update, since two updates at once would race.
    """
    tasks: dict[tuple[str, str], Task] = {}
    for decision in state["decisions"]:
        action, number = decision["action"], decision["candidate"]
        candidate = state["candidates"][number] if number >= 0 else {}
        for touched in decision["touched"] or [NOTHING_TOUCHED]:
            memory = touched["memory"] if touched["memory"]["key"] else None
            subject = memory["key"] if memory and action != "discard" else str(number)
            new = Task(origin=origin_of(state), facts=[], memory=memory, rationale="")
            task = tasks.setdefault((NODES[action], subject), new)
            task["facts"].append(Fact(candidate=candidate, judged=touched))
            task["rationale"] = f"{task['rationale']} {decision['rationale']}".strip()
    return [Send(node, task) for (node, _), task in tasks.items()] or "settle"


def origin_of(state: State) -> Origin:
    return Origin(
        message=state["message"],
        message_id=state.get("told_in") or state["message_id"],
        time=state.get("time", ""),
        thread=state.get("thread", ""),
        model=state["model"],
        write_id=state["message_id"],
    )


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
    task = Task(origin=origin_of(state), facts=[], memory=None, rationale=answer.rationale)
    retired = [await retire_memory(task, each, runtime) for each in chosen]
    return {"operations": retired, "rationale": f"{state['rationale']} {answer.rationale}"}


async def settle(state: State, runtime: MemoryRuntime) -> Update:
    """Mark the message as remembered; clear its fields, or the thread's next message would inherit them."""
    notes = [
        OperationNote(event=each["event"], key=each["key"], version=each["version"], reason=each["reason"])
        for each in state.get("operations", [])
    ]
    run = await traced(runtime)
    outcome = MessageOutcome(
        route=state["route"], rationale=state["rationale"], model=state["model"], operations=notes, **run
    )
    await inbox_of(runtime).close(user_of(runtime), state["message_id"], outcome)
    cleared = dict.fromkeys(("message_id", "time", "thread", "rereads", "told_in"), "")
    return {**run, **cleared, "preceding": []}
