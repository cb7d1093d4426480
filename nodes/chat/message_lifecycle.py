"""The life cycle of a message in every version of the memory agent: receive, write down, carry out, settle.

Each version decides in its own way what to do: `memory_agent.py`, `paper_versions.py`, `memory_tools.py`. The
writes are in `memory_operations.py`.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Annotated, Literal, TypeVar, cast

from langgraph.types import Overwrite, Send
from pydantic import BaseModel, Field

from mneme.core.errors import BadAnswer
from mneme.models.asking.asking import ask
from mneme.models.asking.counting import NOTHING, Asked, sum_counts
from mneme.models.asking.replies import Unusable, read
from mneme.nodes.chat.context import MemoryRuntime, memories_of
from mneme.nodes.chat.memory_operations import Judged, Task, retire_on_request, write_id
from mneme.nodes.context import ledger_of, user_of
from mneme.nodes.messages import ChatMessages, said_in
from mneme.nodes.workflow import Typed, Update, counted, traced
from mneme.prompts.chat.evidence import located, sentences
from mneme.prompts.chat.memory_agent.forgetting import Forgetting, choose_forgotten
from mneme.prompts.chat.memory_agent.reading import Candidate, Incoming, check_candidate, moment
from mneme.prompts.prompt import Prompt
from mneme.stores.ledger.records import Change, Source
from mneme.stores.users.inbox import (
    PRECEDING,
    Circumstances,
    Inbox,
    Message,
    MessageOutcome,
    complete,
)
from mneme.stores.users.memory import Memory, MemoryRecord, Statement


class Given(Circumstances, total=False):
    """Input of the memory agent's graphs: one message to be remembered, or the chat that it ends."""

    message: Annotated[
        str, Field("", description="What the user said.", examples=["My sister lives in Portland."])
    ]
    messages: ChatMessages


class Result(MessageOutcome, total=False):
    """The outcome of a message, and the questions that were asked for it."""

    asked: Annotated[Asked, sum_counts]


Asking = TypeVar("Asking", bound=BaseModel)
Answer = TypeVar("Answer", bound=BaseModel)
IncomingKind = TypeVar("IncomingKind", bound=Incoming)
MAX_QUOTE_CHARS = 900
"""Maximum characters of the user's own words that replace a memory which could not be written."""
MAX_WISHES = 5
"""Maximum sentences of a message, beside the whole, by which memories to forget are searched."""
Action = Literal["insert_memory", "update_memory", "replace_memory", "retire", "discard"]
"""The node that carries out a decision."""


class Decision(BaseModel):
    """One decision: the action for a candidate (-1: none), the memories that change, and the reason."""

    candidate: int
    action: Action
    touched: list[Judged] = []
    rationale: str


class State(Message, Result, total=False):
    """The message or the chat it ends, its candidates, the memories similar to each, and the decisions."""

    messages: ChatMessages
    candidates: Annotated[list[Memory], Typed]
    own: Annotated[MemoryRecord | None, Typed]
    """The memory that is read again, if any."""
    shown: Annotated[list[MemoryRecord], Typed]
    """The memories nearest to the message, which the router was shown."""
    similar: Annotated[list[list[MemoryRecord]], Typed]
    verdicts: Annotated[list[Judged], Typed]
    decisions: Annotated[list[Decision], Typed]


INITIAL_FIELDS: Update = {
    **dict.fromkeys(("route", "own")),
    **dict.fromkeys(("rationale", "model", "run_id", "trace", "rereads", "told_in"), ""),
    **{name: [] for name in ("messages", "candidates", "shown", "similar", "verdicts", "decisions")},
    "operations": Overwrite([]),
    "asked": Overwrite(NOTHING),
}
"""The state of a thread before a message, without the fields of the message before."""


async def receive(state: State, runtime: MemoryRuntime) -> Update:
    """Add the message to the inbox, to wait there for its outcome; return an outcome that it has already."""
    given: Message = state
    if state.get("messages"):
        said = said_in(state["messages"])
        given = {**cast(Message, state), "message": said.text, "preceding": said.before[-PRECEDING:]}
    message = complete(given)
    known = await Inbox(ledger_of(runtime)).add(user_of(runtime), message)  # once: it may be there already
    outcome: Update = {**(known or {})}
    outcome.pop("operations", None)  # the reducer would add them to its own
    return {**INITIAL_FIELDS, **message, **outcome}


def incoming(state: State, kind: type[IncomingKind], **beside: list[str]) -> IncomingKind:
    """Return the message as the input of a question, with further input in `beside`."""
    preceding, time = state.get("preceding", []), moment(state.get("time", ""))
    return kind(message=state["message"], preceding=preceding, time=time, **beside)


async def last_reply(prompt: Prompt[Asking, Answer], given: Asking, who: str) -> tuple[Answer, str]:
    """Ask in the background lane; return the answer and the doubt that remained.

    If every reply failed its checks, return the last one, to keep its usable part. Raises the failure if that
    reply cannot be read at all.
    """
    try:
        answered = await ask(prompt, given, who, lane="background")
    except BadAnswer as bad:
        try:
            return read(bad.raw, prompt.answer), ""
        except Unusable:
            raise bad from None
    return answered.value, answered.doubt


def written(given: Incoming, memories: Iterable[Candidate], doubt: str = "") -> list[Memory]:
    """Return the candidates as memories, without repetitions, each with a quote from the message.

    A candidate whose quote or content cannot be used (from a model's last reply) is flagged, and so is one in
    doubt; empty content is replaced by the user's own words.
    """
    kept = dict[str, Memory]()
    for number, each in enumerate(memories):
        quote, flag = located(each.quote, given.message), ""
        try:
            check_candidate(given, each)
        except ValueError as wrong:
            quote, flag = quote or given.message[:MAX_QUOTE_CHARS], f"Not as it should be: {wrong}"
        if (what := f"memories[{number}].content") in doubt:
            flag = f"In doubt: {doubt.replace(what, 'it')}"
        content = each.content.strip() or f"The user said: “{quote}”"
        kept[content] = Memory(**each.model_dump() | {"content": content, "quote": quote, "flag": flag})
    return [*kept.values()]


async def similar_to(text: str, runtime: MemoryRuntime) -> list[MemoryRecord]:
    """Return the memories most similar to a text, best first."""
    context = runtime.context
    return await memories_of(runtime).similar(text, k=context.similar, min_similarity=context.min_similarity)


def each_decision(state: State) -> list[Send] | Literal["settle"]:
    """Fan out to the operations: one for all new memories, and one for each memory that changes."""
    # All changes of one memory share a task, since two concurrent updates of it would race.
    grouped = defaultdict[tuple[str, str], list[tuple[Decision, Judged | None]]](list)
    for decision in state["decisions"]:
        node = decision.action
        touched: list[Judged | None] = [*decision.touched]
        for judged in touched or [None]:
            subject = judged.memory.key if judged and node != "discard" else str(decision.candidate)
            grouped[node, subject].append((decision, judged))
    said = {"message_id": state.get("told_in") or state["message_id"], "time": state.get("time", "")}
    sends, inserted = list[Send](), list[Update]()
    for (operation, _), decided in grouped.items():
        new = []
        for each in [state["candidates"][of.candidate] for of, _ in decided if of.candidate >= 0]:
            statement = Statement(content=each.content, quote=each.quote, **said)
            about = {"thread": state.get("thread", ""), "statements": [statement], "read_by": state["model"]}
            new.append(each.model_copy(update=said | about))
        task = Task(
            message=state["message"],
            message_id=state["message_id"],
            change=change_of(state, " ".join(each.rationale for each, _ in decided)),
            new=new,
            judged=[judged for _, judged in decided if judged],
        ).model_dump(mode="json")  # a parent graph's own checkpointer knows plain values alone
        if operation == "insert_memory":
            inserted.append(task)
        else:
            sends.append(Send(operation, {"tasks": [task]}))
    if inserted:  # in one step, since memories are listed in the order in which they were written
        sends.insert(0, Send("insert_memory", {"tasks": inserted}))
    return sends or "settle"


def change_of(state: State, reason: str) -> Change:
    """Return the change of a memory operation: reason, message, and deciding model."""
    told_in = state.get("told_in") or state["message_id"]  # of a message read again: the user's own one
    source = Source(thread=state.get("thread", ""), messages=[told_in])
    return Change(reason=reason, actor="memory_agent", source=source, model=state["model"])


@counted
async def forget(state: State, runtime: MemoryRuntime) -> Update:
    """Retire the memories that the user wants forgotten, or remove the forgotten part of a memory.

    Their history stays until a person erases it.
    """
    candidates = state["candidates"]  # offered, too: one that repeats what is forgotten is left out
    told = " ".join(each.quote for each in candidates)
    # Beside other statements a wish is a small part of the message, so each such sentence is searched, too.
    wishes = [each for each in sentences(state["message"]) if each not in told] if told else []
    found = [await similar_to(each, runtime) for each in (state["message"], *wishes[:MAX_WISHES])]
    similar = [*{each.key: each for some in found for each in some}.values()]
    given = Forgetting(
        message=state["message"],
        preceding=state.get("preceding", []),
        memories=[each.content + each.before for each in (*(each.memory for each in similar), *candidates)],
        known=len(similar),
    )
    answer = (await ask(choose_forgotten, given, runtime.context.memory_agent, lane="background")).value
    chosen = [similar[number] for number in dict.fromkeys(answer.numbers) if number < len(similar)]
    left = [each for number, each in enumerate(candidates, len(similar)) if number not in answer.numbers]
    change = change_of(state, answer.rationale)
    rest = {similar[each.memory].key: each.content for each in answer.rest if each.memory < len(similar)}
    done = [
        await retire_on_request(
            each, rest.get(each.key, ""), change, write_id(state["message_id"], each.key), runtime
        )
        for each in chosen
    ]
    rationale = f"{state['rationale']} {answer.rationale}"
    return {"operations": done, "rationale": rationale, "candidates": left}


async def settle(state: State, runtime: MemoryRuntime) -> Update:
    """Close the message in the inbox with its outcome."""
    run = await traced(runtime)
    outcome = MessageOutcome(
        route=state["route"],
        rationale=state["rationale"],
        model=state["model"],
        operations=state.get("operations", []),
        **run,
    )
    await Inbox(ledger_of(runtime)).close(user_of(runtime), state["message_id"], outcome)
    # The input of the thread's next message may leave these out, and would inherit them.
    cleared = dict.fromkeys(("message_id", "time", "thread", "rereads", "told_in"), "")
    return {**run, **cleared, "preceding": []}
