"""The memory operations: insert, update, discard (§2.2, §3.1); each is safe to replay."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Literal

from typing_extensions import TypedDict

from mneme.core.errors import BadAnswer, Conflict
from mneme.models.asking.asking import ask
from mneme.nodes.chat.context import MemoryRuntime, memories_of
from mneme.nodes.chat.statements import around, still_said
from mneme.nodes.counted import counted
from mneme.prompts.chat.memory_agent.rewriting import Pair, rewrite_memory
from mneme.stores.ledger.records import Change, Source
from mneme.stores.users.memories import Memory, MemoryRecord, Statement

REWRITES = 3
"""How often an update is written anew when another writer changed the memory meanwhile."""


class Similar(TypedDict):
    """A memory that the search found, and its cosine; None where there is no embedder.

    One that is `closed` takes no addition: it is of an event, or says enough already.
    """

    key: str
    version: int
    content: str
    similarity: float | None
    closed: bool


class Touched(Similar, total=False):
    """A memory that a candidate changes or repeats, and its words that the candidate makes false."""

    outdated: str


class Origin(TypedDict):
    """The message that an operation was decided from, and the model that decided.

    Of two writes with one `write_id` on one subject, the second is a replay and is not done.
    """

    message: str
    message_id: str
    time: str
    thread: str
    model: str
    write_id: str


class Task(TypedDict):
    """One operation to carry out: on which candidates it rests, which memory it touches, and why."""

    origin: Origin
    candidates: list[dict[str, Any]]
    memories: list[Touched]
    rationale: str


class Operation(TypedDict):
    """What happened to the memory, and why; `before` is the content that an update replaced.

    `flag` says why a person should look at what was written; empty: no reason.
    """

    operation: Literal["insert", "update", "discard", "retire"]
    rationale: str
    content: str
    before: str
    key: str
    version: int
    flag: str


Update = dict[str, Any]


async def insert_memory(state: Task, runtime: MemoryRuntime) -> Update:
    """Remember a candidate as a new memory, once, however often this node is replayed."""
    return {"operations": [await _inserted(state, state["candidates"][0], runtime)]}


async def _inserted(task: Task, candidate: Mapping[str, Any], runtime: MemoryRuntime) -> Operation:
    made = await memories_of(runtime).insert(
        _memory(candidate, task["origin"]),
        change=_change(task),
        idempotency_key=_write_id(task, candidate["content"]),
    )
    return _done("insert", task, made)


@counted
async def update_memory(state: Task, runtime: MemoryRuntime) -> Update:
    """Rewrite a memory with what contradicts or extends it."""
    return {"operations": await rewrite(state, runtime)}


async def rewrite(task: Task, runtime: MemoryRuntime) -> list[Operation]:
    """Rewrite a memory with each candidate; again where another writer was first."""
    for _ in range(REWRITES - 1):
        try:
            return await _rewrite_once(task, runtime)
        except Conflict:
            now = await memories_of(runtime).show(task["memories"][0]["key"])
            seen = task["memories"][0] | {"version": now.version, "content": now.memory.content}
            task = task | {"memories": [seen]}
    return await _rewrite_once(task, runtime)


async def _rewrite_once(task: Task, runtime: MemoryRuntime) -> list[Operation]:
    """Work each candidate into the memory, one after the other, and write the result.

    What no rewrite could hold without losing something is kept beside the memory, flagged.
    """
    memory = (await memories_of(runtime).show(task["memories"][0]["key"])).memory
    aside = list[Operation]()
    for candidate in task["candidates"]:
        try:
            memory = await _with_fact(memory, candidate, task, runtime)
        except BadAnswer as bad:
            if not bad.raw.strip():
                raise
            flag = f"It belongs to {task['memories'][0]['key']}, which no rewrite kept whole: {bad}"
            aside.append(await _inserted(task, {**candidate, "flag": flag}, runtime))
    if len(aside) == len(task["candidates"]):
        return aside
    return [*aside, await _replace(task, memory, runtime)]


async def _with_fact(
    memory: Memory, candidate: Mapping[str, Any], task: Task, runtime: MemoryRuntime
) -> Memory:
    origin = task["origin"]
    pair = Pair(
        fact=candidate["content"],
        message=around(candidate["quote"], origin["message"]),
        memory=memory.content,
        time=origin["time"],
        outdated=task["memories"][0].get("outdated", ""),
    )
    answer = (await ask(rewrite_memory, pair, runtime.context.memory_agent, lane="background")).value
    known = [
        each for each in statements_of(memory) if still_said(each.content, pair.outdated, answer.content)
    ]
    said = _memory(candidate, origin, known)
    return said.model_copy(update={"kind": memory.kind, **dict(answer)})


def statements_of(memory: Memory) -> list[Statement]:
    """Return what a memory was put together from; of one that does not tell, all of it as one statement."""
    whole = Statement(
        content=memory.content, quote=memory.quote, message_id=memory.message_id, time=memory.time
    )
    return memory.statements or [whole]


async def replace_memory(state: Task, runtime: MemoryRuntime) -> Update:
    """Replace a memory by what the agent with tools wrote (version 1)."""
    renewed = _memory(state["candidates"][-1], state["origin"])
    return {"operations": [await _replace(state, renewed, runtime)]}


async def _replace(task: Task, renewed: Memory, runtime: MemoryRuntime) -> Operation:
    before = task["memories"][0]
    if renewed.content == before["content"]:
        return _unchanged(task, f"The memory says so already. {task['rationale']}")
    made = await memories_of(runtime).update(
        before["key"],
        renewed,
        change=_change(task),
        expected_version=before["version"],
        idempotency_key=_write_id(task, before["key"]),
    )
    return _done("update", task, made)


async def retire_memory(task: Task, memory: Similar, runtime: MemoryRuntime) -> Operation:
    """Stop recalling a memory; again where another writer was first. Its history stays."""
    memories = memories_of(runtime)
    version = memory["version"]
    for attempt in range(REWRITES):
        try:
            made = await memories.retire(
                memory["key"],
                change=_change(task),
                expected_version=version,
                idempotency_key=_write_id(task, memory["key"]),
            )
            break
        except Conflict:
            if attempt == REWRITES - 1:
                raise
            version = (await memories.show(memory["key"])).version
    return _done("retire", task, made)


def discard(state: Task) -> Update:
    """Say that a candidate adds nothing to a memory, and which."""
    return {"operations": [_unchanged(state, state["rationale"])]}


def _unchanged(task: Task, rationale: str) -> Operation:
    known = task["memories"][0]
    return Operation(
        operation="discard",
        rationale=rationale,
        content=known["content"],
        before="",
        key=known["key"],
        version=known["version"],
        flag="",
    )


def _memory(candidate: Mapping[str, Any], origin: Origin, known: Sequence[Statement] = ()) -> Memory:
    said = {"message_id": origin["message_id"], "time": origin["time"]}
    new = Statement(content=candidate["content"], quote=candidate["quote"], **said)
    return Memory(**candidate, **said, thread=origin["thread"], statements=[*known, new])


def _change(task: Task) -> Change:
    origin = task["origin"]
    source = Source(thread=origin["thread"], messages=[*filter(None, [origin["message_id"]])])
    return Change(reason=task["rationale"], actor="memory_agent", source=source, model=origin["model"])


def _write_id(task: Task, subject: str) -> str:
    """Identify a write by its origin and its subject, so that a replay does not write twice."""
    return f"{task['origin']['write_id']}:{sha256(subject.encode()).hexdigest()[:16]}"


def _done(operation: Literal["insert", "update", "retire"], task: Task, made: MemoryRecord) -> Operation:
    return Operation(
        operation=operation,
        rationale=task["rationale"],
        content=made.memory.content,
        before=task["memories"][0]["content"] if operation == "update" else "",
        key=made.key,
        version=made.version,
        flag=made.memory.flag,
    )
