"""The memory operations: insert, update, discard (§2.2, §3.1); each is safe to replay."""

from hashlib import sha256
from typing import Any, Literal

from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from mneme.errors import Conflict
from models.asking import ask
from nodes.context import MemoryContext, memories_of
from prompts.memory_agent import Candidate, Pair, rewrite_memory
from stores.records import Change, Source
from stores.user_memory import Memory

REWRITES = 3
"""How often an update is written anew when another writer changed the memory meanwhile."""


class Similar(TypedDict):
    """A memory that the search found."""

    key: str
    version: int
    content: str


class Origin(TypedDict):
    """The message that an operation rests on, and who decided on it."""

    message: str
    message_id: str
    time: str
    thread: str
    model: str


class Task(TypedDict):
    """One operation to carry out: on which candidates it rests, which memory it touches, and why."""

    origin: Origin
    candidates: list[dict[str, Any]]
    memories: list[Similar]
    rationale: str


class Operation(TypedDict):
    """What happened to the memory, and why; `before` is the content that an update replaced."""

    operation: Literal["insert", "update", "discard"]
    rationale: str
    content: str
    before: str
    key: str
    version: int


Update = dict[str, Any]
Context = Runtime[MemoryContext]


async def insert_memory(state: Task, runtime: Context) -> Update:
    """Remember a candidate as a new memory, once, however often this node is replayed."""
    candidate = Candidate.model_validate(state["candidates"][0])
    memory = _memory(candidate, state["origin"])
    made = await memories_of(runtime).insert(
        memory,
        change=_change(state),
        idempotency_key=_once(state, candidate.content),
    )
    return _done("insert", state, content=made.memory.content, key=made.key, version=made.version)


async def update_memory(state: Task, runtime: Context) -> Update:
    """Rewrite a memory with what contradicts or extends it; write anew where another writer was first."""
    for _ in range(REWRITES - 1):
        try:
            return await _update(state, runtime)
        except Conflict:
            state = state | {"memories": [await _current(state["memories"][0]["key"], runtime)]}
    return await _update(state, runtime)


async def _update(task: Task, runtime: Context) -> Update:
    return await _replace(task, await _rewritten(task, runtime), runtime)


async def replace_memory(state: Task, runtime: Context) -> Update:
    """Replace a memory by what the agent with tools wrote (version 1)."""
    candidate = Candidate.model_validate(state["candidates"][-1])
    return await _replace(state, _memory(candidate, state["origin"]), runtime)


async def _replace(task: Task, renewed: Memory, runtime: Context) -> Update:
    before = task["memories"][0]
    if renewed.content == before["content"]:
        return discard(task)
    made = await memories_of(runtime).update(
        before["key"],
        renewed,
        change=_change(task),
        expected_version=before["version"],
        idempotency_key=_once(task, before["key"]),
    )
    return _done("update", task, content=made.memory.content, key=made.key, version=made.version)


async def _rewritten(task: Task, runtime: Context) -> Memory:
    """Fold each candidate into the memory, one after the other."""
    memory = (await memories_of(runtime).show(task["memories"][0]["key"])).memory
    origin, renewed = task["origin"], memory
    for given in task["candidates"]:
        candidate = Candidate.model_validate(given)
        pair = Pair(
            fact=candidate.content, message=origin["message"], memory=renewed.content, time=origin["time"]
        )
        who = runtime.context.memory_agent
        answer = (await ask(rewrite_memory, pair, who, lane="background")).value
        renewed = _memory(candidate, origin).model_copy(update={"kind": memory.kind, **answer.model_dump()})
    return renewed


async def _current(key: str, runtime: Context) -> Similar:
    now = await memories_of(runtime).show(key)
    return Similar(key=key, version=now.version, content=now.memory.content)


def discard(state: Task) -> Update:
    """Say that a candidate adds nothing to a memory, and which."""
    known = state["memories"][0]
    return _done("discard", state, content=known["content"], key=known["key"], version=known["version"])


def _memory(candidate: Candidate, origin: Origin) -> Memory:
    return Memory(
        **candidate.model_dump(),
        message_id=origin["message_id"],
        thread=origin["thread"],
        time=origin["time"],
    )


def _change(task: Task) -> Change:
    origin = task["origin"]
    source = Source(thread=origin["thread"], messages=[origin["message_id"]])
    return Change(reason=task["rationale"], actor="memory_agent", source=source, model=origin["model"])


def _once(task: Task, what: str) -> str:
    """Name a write by its message and its subject, so that a replay is known as one."""
    return f"{task['origin']['message_id']}:{sha256(what.encode()).hexdigest()[:16]}"


def _done(
    operation: Literal["insert", "update", "discard"], task: Task, *, content: str, key: str, version: int
) -> Update:
    done = Operation(
        operation=operation,
        rationale=task["rationale"],
        content=content,
        before=task["memories"][0]["content"] if operation == "update" else "",
        key=key,
        version=version,
    )
    return {"operations": [done]}
