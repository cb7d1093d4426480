"""The memory operations: insert, update, discard (§2.2, §3.1); each is safe to replay."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Literal

from typing_extensions import TypedDict

from mneme.core.errors import BadAnswer, Conflict
from mneme.models.asking.asking import ask
from mneme.nodes.chat.context import MemoryRuntime, memories_of
from mneme.nodes.costs import counted
from mneme.prompts.chat.bounds import LONGEST, MOST, moment
from mneme.prompts.chat.evidence import left_out, located, names, rest, sentence_around
from mneme.prompts.chat.memory_agent.rewriting import Pair, Rewritten, rewrite_memory
from mneme.stores.ledger.records import Change, Source
from mneme.stores.users.inbox import OperationNote
from mneme.stores.users.memories import RULES, Memory, MemoryRecord, Statement
from mneme.stores.users.valid_time import day_before

MOST_STATEMENTS = 6
"""Statements that one memory holds at most; what would be one more becomes a memory of its own."""
REWRITES = 3
"""How often an update is written anew when another writer changed the memory meanwhile."""


class Similar(TypedDict):
    """A memory that the search found, and its cosine; None where there is no embedder.

    One that is `full` takes no addition: it says enough already.
    """

    key: str
    version: int
    content: str
    since: str
    until: str
    read_by: str
    similarity: float | None
    full: bool


Relation = Literal["change", "later", "correction", "addition", "duplicate", "unclear"]


class Judged(TypedDict):
    """How a candidate stands to one memory; `unclear` where that is open, or the judgement cannot be used.

    `outdated` are the memory's words that become false, `updated` is its new text where the model gave one,
    and `doubt` what stayed in doubt of that.
    """

    candidate: int
    memory: Similar
    relation: Relation
    rationale: str
    outdated: str
    updated: str
    doubt: str


def judged(
    candidate: int, memory: Similar, relation: Relation = "change", rationale: str = "", outdated: str = ""
) -> Judged:
    """Return a judgement without a new text; a memory can be rewritten without knowing what is outdated."""
    return Judged(
        candidate=candidate,
        memory=memory,
        relation=relation,
        rationale=rationale,
        outdated=outdated,
        updated="",
        doubt="",
    )


class Fact(TypedDict):
    """A candidate, and how it stands to the memory that an operation is about."""

    candidate: dict[str, Any]
    judged: Judged


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
    """One operation to carry out: on which facts it rests, which memory it touches, and why."""

    origin: Origin
    facts: list[Fact]
    memory: Similar | None
    rationale: str


class Operation(OperationNote):
    """What happened to a memory, with its content; `before` is the content that an update replaced.

    `flag` says why a person should look at what was written; empty: no reason.
    """

    content: str
    before: str
    flag: str


Update = dict[str, Any]


async def insert_memory(state: Task, runtime: MemoryRuntime) -> Update:
    """Insert a candidate as a new memory, once in all replays of this node: the paper's insert function."""
    return {"operations": [await _inserted(state, state["facts"][0]["candidate"], runtime)]}


async def _inserted(task: Task, candidate: Mapping[str, Any], runtime: MemoryRuntime) -> Operation:
    made = await memories_of(runtime).insert(
        memory_of(candidate, task["origin"]),
        change=_change(task),
        idempotency_key=_write_id(task, candidate["content"]),
    )
    return _done("insert", task, made)


@counted
async def update_memory(state: Task, runtime: MemoryRuntime) -> Update:
    """Update a memory with what corrects, changes or extends it: the paper's update function."""
    return {"operations": await update_with_facts(state, runtime)}


async def update_with_facts(task: Task, runtime: MemoryRuntime) -> list[Operation]:
    """Work each fact into the memory; again where another writer was first.

    The new text that the comparison gave is of the memory as it was, so it is left out the next time.
    """
    for _ in range(REWRITES - 1):
        try:
            return await _update_once(task, runtime)
        except Conflict:
            now = await memories_of(runtime).get(_touched(task)["key"])
            facts = [Fact({**each, "judged": {**each["judged"], "updated": ""}}) for each in task["facts"]]
            task = task | {"memory": similar_of(now), "facts": facts}
    return await _update_once(task, runtime)


async def _update_once(task: Task, runtime: MemoryRuntime) -> list[Operation]:
    """Work the facts into the memory, one after the other, and write the result.

    What no rewrite could take in, or has no room, is kept beside the memory, linked with it. Beside it goes
    also a fact whose outdated words an earlier one has replaced, unless the new text has that fact, too.
    """
    key = _touched(task)["key"]
    memory = (await memories_of(runtime).get(key)).memory
    aside = list[Operation]()
    for number, fact in enumerate(task["facts"]):
        outdated, updated = fact["judged"]["outdated"], fact["judged"]["updated"]
        is_gone = outdated and not located(outdated, memory.content)
        if number and is_gone and memory.content != updated:
            aside.append(await _inserted(task, fact["candidate"], runtime))
            continue
        try:
            memory = await _with_fact(memory, fact, task, runtime)
        except BadAnswer as bad:
            if not bad.raw.strip():
                raise
            linked = {**fact["candidate"], "flag": f"It belongs to {key}: {bad}", "may_contradict": [key]}
            aside.append(await _inserted(task, linked, runtime))
    if len(aside) == len(task["facts"]):
        return aside
    return [*aside, await _replace(task, memory, runtime)]


async def _with_fact(memory: Memory, fact: Fact, task: Task, runtime: MemoryRuntime) -> Memory:
    """Return the memory with a fact: appended, as the comparison has it, replaced by it, or rewritten."""
    how, new = fact["judged"], memory_of(fact["candidate"], task["origin"])
    relation, doubt = how["relation"], how["doubt"]
    if relation == "addition":
        return _appended(memory, new)
    if relation == "later":
        return memory.model_copy(update={"until": day_before(new.since), "is_change": False})
    if how["updated"] and memory.content in {_touched(task)["content"], how["updated"]}:
        new = new.model_copy(update=_as_updated(memory, new, how["updated"]))
    elif rest(memory.content, how["outdated"], new.content):
        written, doubt = await _rewritten(memory, new, how["outdated"], task, runtime)
        new = new.model_copy(update=dict(written))
    said = [each for each in statements_of(memory) if not left_out(each.content, "", new.content)]
    is_put_off = bool(new.since) and new.since == new.until  # it never took place on its first day
    told = {
        "statements": [*said, *new.statements[-1:]],
        "is_change": relation == "change" and not is_put_off,
    }
    times = {"since": new.since or task["origin"]["time"][:10], "until": new.until}
    if relation == "correction":
        times = {"since": new.since or memory.since, "until": new.until or memory.until}
    return new.model_copy(update=told | times | ({"flag": f"In doubt: {doubt}"} if doubt else {}))


def _as_updated(memory: Memory, new: Memory, content: str) -> dict[str, Any]:
    """Return the content with the names that it has, and the relations whose end it still has."""
    entities = [each for each in dict.fromkeys([*memory.entities, *new.entities]) if names([each], content)]
    old = (each for each in memory.relations if names([each.rpartition("|")[2]], content))
    return {"content": content, "entities": entities[:MOST], "relations": [*old, *new.relations][:MOST]}


async def _rewritten(
    memory: Memory, new: Memory, outdated: str, task: Task, runtime: MemoryRuntime
) -> tuple[Rewritten, str]:
    """Ask for the memory with the fact; return it with what stayed in doubt."""
    pair = Pair(
        fact=new.content,
        message=sentence_around(new.quote, task["origin"]["message"]),
        memory=memory.content,
        time=moment(task["origin"]["time"]),
        outdated=outdated,
    )
    answered = await ask(rewrite_memory, pair, runtime.context.memory_agent, lane="background")
    return answered.value, answered.doubt


def _appended(memory: Memory, new: Memory) -> Memory:
    """Let a memory say one more thing; all that it says stays. Raises BadAnswer where there is no room."""
    content = f"{memory.content} {new.content}"
    if len(content) > LONGEST:
        raise BadAnswer("there is no room in it.", new.content)
    joined = {
        "content": content,
        "entities": list(dict.fromkeys([*memory.entities, *new.entities]))[:MOST],
        "relations": list(dict.fromkeys([*memory.relations, *new.relations]))[:MOST],
        "statements": [*statements_of(memory), *new.statements],
        "may_contradict": list(dict.fromkeys([*memory.may_contradict, *new.may_contradict])),
        "flag": " ".join(filter(None, [memory.flag, new.flag])),
        "unclear": memory.unclear or new.unclear,
        **memory.model_dump(include={"kind", "since", "until", "is_change"}),
    }
    return new.model_copy(update=joined)


def statements_of(memory: Memory) -> list[Statement]:
    """Return what a memory was put together from; of one that does not tell, all of it as one statement."""
    whole = Statement(
        content=memory.content, quote=memory.quote, message_id=memory.message_id, time=memory.time
    )
    return memory.statements or [whole]


async def replace_memory(state: Task, runtime: MemoryRuntime) -> Update:
    """Replace a memory by what the agent with tools wrote (version 1), or by what a model read anew."""
    renewed = memory_of(state["facts"][-1]["candidate"], state["origin"])
    return {"operations": [await _replace(state, renewed, runtime)]}


async def _replace(task: Task, renewed: Memory, runtime: MemoryRuntime) -> Operation:
    before = _touched(task)
    says_so = (before["content"], before["until"]) == (renewed.content, renewed.until)
    if says_so and (before["read_by"] != RULES or renewed.read_by == RULES):
        return _unchanged(task, f"The memory says so already. {task['rationale']}")
    made = await memories_of(runtime).update(
        before["key"],
        renewed,
        change=_change(task),
        expected_version=before["version"],
        idempotency_key=_write_id(task, before["key"]),
    )
    return _done("update", task, made)


def _touched(task: Task) -> Similar:
    assert task["memory"] is not None
    return task["memory"]


def similar_of(found: MemoryRecord) -> Similar:
    """Return what the memory agent needs to know of a memory in the ledger."""
    memory = found.memory
    return Similar(
        key=found.key,
        version=found.version,
        content=memory.content,
        since=memory.since,
        until=memory.until,
        read_by=memory.read_by,
        similarity=found.similarity,
        full=len(memory.statements) >= MOST_STATEMENTS,
    )


async def retire(state: Task, runtime: MemoryRuntime) -> Update:
    """Stop recalling a memory of which nothing stands by itself once it was read again."""
    return {"operations": [await retire_memory(state, _touched(state), runtime)]}


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
            version = (await memories.get(memory["key"])).version
    return _done("retire", task, made)


def discard(state: Task) -> Update:
    """Say that a candidate adds nothing to a memory, and which."""
    return {"operations": [_unchanged(state, state["rationale"])]}


def _unchanged(task: Task, rationale: str) -> Operation:
    known = _touched(task)
    return Operation(
        event="discard",
        reason=rationale,
        content=known["content"],
        before="",
        key=known["key"],
        version=known["version"],
        flag="",
    )


def memory_of(candidate: Mapping[str, Any], origin: Origin) -> Memory:
    """Return a candidate as a memory, with the message that it was told in."""
    said = {"message_id": origin["message_id"], "time": origin["time"]}
    new = Statement(content=candidate["content"], quote=candidate["quote"], **said)
    told = {"thread": origin["thread"], "statements": [new], "read_by": origin["model"]}
    return Memory(**candidate, **said, **told)


def _change(task: Task) -> Change:
    origin = task["origin"]
    source = Source(thread=origin["thread"], messages=[*filter(None, [origin["message_id"]])])
    return Change(reason=task["rationale"], actor="memory_agent", source=source, model=origin["model"])


def _write_id(task: Task, subject: str) -> str:
    """Identify a write by its origin and its subject, so that a replay does not write twice."""
    return f"{task['origin']['write_id']}:{sha256(subject.encode()).hexdigest()[:16]}"


def _done(event: Literal["insert", "update", "retire"], task: Task, made: MemoryRecord) -> Operation:
    return Operation(
        event=event,
        reason=task["rationale"],
        content=made.memory.content,
        before=_touched(task)["content"] if event == "update" else "",
        key=made.key,
        version=made.version,
        flag=made.memory.attention,
    )
