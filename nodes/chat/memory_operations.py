"""The memory operations: insert, update, discard (§2.2, §3.1); each is safe to replay."""

from hashlib import sha256
from typing import Any

from pydantic import BaseModel

from mneme.core.errors import BadAnswer, Conflict
from mneme.models.asking.asking import ask
from mneme.nodes.chat.context import MemoryRuntime, memories_of
from mneme.nodes.workflow import Update, counted
from mneme.prompts.chat.evidence import left_out, located, names, rest, sentence_around
from mneme.prompts.chat.memory_agent.comparing import Relation
from mneme.prompts.chat.memory_agent.reading import MAX_ITEMS, MAX_MEMORY_CHARS, moment
from mneme.prompts.chat.memory_agent.rewriting import Pair, rewrite_memory
from mneme.stores.ledger.records import Change
from mneme.stores.users.inbox import OperationNote
from mneme.stores.users.memory import MAX_PAST, RULES, Memory, MemoryRecord, Past, Statement, day_before

MAX_STATEMENTS = 6
"""Maximum statements of one memory; a further one becomes a memory of its own."""
REWRITES = 3
"""Maximum attempts at an update while other writers change the memory."""


class Judged(BaseModel):
    """The relation of a candidate to one memory; `unclear` if it is open or the judgement is unusable.

    `outdated` has the memory's words that became false, `updated` its new text if the model gave one, and
    `doubt` the remaining doubt about that text. A memory can be rewritten even if `outdated` is empty.
    """

    candidate: int = -1
    memory: MemoryRecord
    relation: Relation = "change"
    rationale: str = ""
    outdated: str = ""
    updated: str = ""
    doubt: str = ""


class Task(BaseModel):
    """One operation: the candidates, the relation of each to the memory that changes, and the reason.

    A second write for the same `message_id` and subject is a replay and changes nothing.
    """

    message: str
    message_id: str
    change: Change
    new: list[Memory]
    judged: list[Judged]

    @property
    def touched(self) -> MemoryRecord:
        """Return the memory that the task changes."""
        return self.judged[0].memory


def tasks_of(state: Update) -> list[Task]:
    """Return the tasks that were sent to a node; a checkpoint has them as plain values."""
    # In a run that an earlier version began and a kill interrupted, the state is itself one task.
    return [Task.model_validate(each) for each in state.get("tasks", [state])]


async def insert_memory(state: Update, runtime: MemoryRuntime) -> Update:
    """Insert candidates as new memories, in order and once in all replays: the paper's insert function."""
    return {"operations": [await _inserted(task, task.new[0], runtime) for task in tasks_of(state)]}


async def _inserted(task: Task, new: Memory, runtime: MemoryRuntime) -> OperationNote:
    once = write_id(task.message_id, new.content)
    made = await memories_of(runtime).insert(new, change=task.change, idempotency_key=once)
    return OperationNote(event="insert", key=made.key, version=made.version, reason=task.change.reason)


@counted
async def update_memory(state: Update, runtime: MemoryRuntime) -> Update:
    """Update a memory with what corrects, changes or extends it: the paper's update function.

    Raises Conflict if another writer was first at each attempt.
    """
    (task,) = tasks_of(state)
    for _ in range(REWRITES - 1):
        try:
            return {"operations": await _updated(task, runtime)}
        except Conflict:
            now = await memories_of(runtime).get(task.touched.key)
            # `updated` was worded from the older memory: used again, it would undo the other write.
            again = [each.model_copy(update={"memory": now, "updated": ""}) for each in task.judged]
            task = task.model_copy(update={"judged": again})
    return {"operations": await _updated(task, runtime)}


async def _updated(task: Task, runtime: MemoryRuntime) -> list[OperationNote]:
    """Work the facts into the memory, one after the other, and write the result.

    A fact that no rewrite could take in, or that has no room, is kept beside the memory, linked with it.
    """
    key = task.touched.key
    memory = (await memories_of(runtime).get(key)).memory
    aside = list[OperationNote]()
    for number, (new, how) in enumerate(zip(task.new, task.judged, strict=True)):
        # An earlier fact of the task has replaced the words that this one would change: it stands by itself,
        # unless the comparison's text has both.
        is_gone = how.outdated and not located(how.outdated, memory.content)
        if number and is_gone and memory.content != how.updated:
            aside.append(await _inserted(task, new, runtime))
            continue
        try:
            memory = await _with_fact(memory, new, how, task, runtime)
        except BadAnswer as bad:
            if not bad.raw.strip():
                raise  # the model gave nothing at all: the message is tried again later
            linked = {"flag": f"It belongs to {key}: {bad}", "may_contradict": [key]}
            aside.append(await _inserted(task, new.model_copy(update=linked), runtime))
    if len(aside) == len(task.new):
        return aside
    return [*aside, await _replace(task, memory, runtime)]


async def _with_fact(memory: Memory, new: Memory, how: Judged, task: Task, runtime: MemoryRuntime) -> Memory:
    """Return the memory with a fact: appended, as the comparison worded it, replaced by it, or rewritten."""
    doubt, told_at = how.doubt, new.time[:10]
    if how.relation == "addition":
        return _appended(memory, new)
    if how.relation == "later":
        return memory.model_copy(update={"until": day_before(new.since), "is_change": False})
    # The comparison's text is good only for the memory that it was shown, or that it has already become.
    if how.updated and memory.content in {task.touched.memory.content, how.updated}:
        new = new.model_copy(update=_as_updated(memory, new, how.updated))
    elif rest(memory.content, how.outdated, new.content):
        pair = Pair(
            fact=new.content,
            message=sentence_around(new.quote, task.message),
            memory=memory.content,
            time=moment(new.time),
            outdated=how.outdated,
        )
        answered = await ask(rewrite_memory, pair, runtime.context.memory_agent, lane="background")
        new, doubt = new.model_copy(update=dict(answered.value)), answered.doubt
    # A statement that the new text no longer contains is no source of it any more.
    said = [each for each in statements_of(memory) if not left_out(each.content, "", new.content)]
    is_put_off = bool(new.since) and new.since == new.until  # it never took place on its first day
    is_change, since = how.relation == "change" and not is_put_off, new.since or told_at
    past = memory.past
    if is_change and not (memory.since and since <= memory.since):  # else the same message or day changed it
        until = memory.until or day_before(since)
        past = [Past(content=memory.content, since=memory.since, until=until), *past][:MAX_PAST]
    told = {"statements": [*said, *new.statements[-1:]], "is_change": is_change, "past": past}
    times = {"since": since, "until": new.until}
    if how.relation == "correction":
        times = {"since": new.since or memory.since, "until": new.until or memory.until}
    flag = {"flag": f"It may leave out what still holds: {doubt.partition(': ')[2]}"} if doubt else {}
    return new.model_copy(update=told | times | flag)


def _as_updated(memory: Memory, new: Memory, content: str) -> dict[str, Any]:
    """Return the new content, the names in it, the new relations, and the old ones whose object is in it."""
    entities = [each for each in dict.fromkeys([*memory.entities, *new.entities]) if names([each], content)]
    old = (each for each in memory.relations if names([each.rpartition("|")[2]], content))
    relations = [*old, *new.relations][:MAX_ITEMS]
    return {"content": content, "entities": entities[:MAX_ITEMS], "relations": relations}


def _appended(memory: Memory, new: Memory) -> Memory:
    """Return a memory with one more statement; all others stay. Raises BadAnswer if there is no room."""
    content = f"{memory.content} {new.content}"
    if len(content) > MAX_MEMORY_CHARS:
        raise BadAnswer("there is no room in it.", new.content)
    joined = {
        "content": content,
        "entities": list(dict.fromkeys([*memory.entities, *new.entities]))[:MAX_ITEMS],
        "relations": list(dict.fromkeys([*memory.relations, *new.relations]))[:MAX_ITEMS],
        "statements": [*statements_of(memory), *new.statements],
        "may_contradict": list(dict.fromkeys([*memory.may_contradict, *new.may_contradict])),
        "flag": " ".join(filter(None, [memory.flag, new.flag])),
        "unclear": memory.unclear or new.unclear,
        "past": memory.past,  # an addition changes neither what was nor from when it holds
        "kind": memory.kind,
        "since": memory.since,
        "until": memory.until,
        "is_change": memory.is_change,
    }
    return new.model_copy(update=joined)


def statements_of(memory: Memory) -> list[Statement]:
    """Return the statements that a memory was built from; if there are none, the whole memory as one."""
    whole = Statement(
        content=memory.content, quote=memory.quote, message_id=memory.message_id, time=memory.time
    )
    return memory.statements or [whole]


async def replace_memory(state: Update, runtime: MemoryRuntime) -> Update:
    """Replace a memory written by rules with what a model read in the same message."""
    (task,) = tasks_of(state)
    return {"operations": [await _replace(task, task.new[-1], runtime)]}


async def _replace(task: Task, renewed: Memory, runtime: MemoryRuntime) -> OperationNote:
    before = task.touched
    says_so = (before.memory.content, before.memory.until) == (renewed.content, renewed.until)
    # The same words are written all the same where a model has now read what rules had.
    if says_so and (before.memory.read_by != RULES or renewed.read_by == RULES):
        why = f"The memory says so already. {task.change.reason}"
        return OperationNote(event="discard", key=before.key, version=before.version, reason=why)
    made = await memories_of(runtime).update(
        before.key,
        renewed,
        change=task.change,
        expected_version=before.version,
        idempotency_key=write_id(task.message_id, before.key),
    )
    return OperationNote(event="update", key=made.key, version=made.version, reason=task.change.reason)


async def retire(state: Update, runtime: MemoryRuntime) -> Update:
    """Retire a memory of which nothing remained when its message was read again."""
    (task,) = tasks_of(state)
    once = write_id(task.message_id, task.touched.key)
    return {"operations": [await retire_memory(task.touched, task.change, once, runtime)]}


async def retire_memory(
    memory: MemoryRecord, change: Change, once: str, runtime: MemoryRuntime
) -> OperationNote:
    """Retire a memory, and retry if another writer was first. Its history stays."""
    memories, version = memories_of(runtime), memory.version
    for attempt in range(REWRITES):
        try:
            made = await memories.retire(
                memory.key, change=change, expected_version=version, idempotency_key=once
            )
            break
        except Conflict:
            if attempt == REWRITES - 1:
                raise
            version = (await memories.get(memory.key)).version
    return OperationNote(event="retire", key=made.key, version=made.version, reason=change.reason)


async def retire_on_request(
    memory: MemoryRecord, rest: str, change: Change, once: str, runtime: MemoryRuntime
) -> OperationNote:
    """Retire a memory, or remove a part of it. Raises Conflict if another writer was first."""
    # No retry for a part: `rest` was worded from this version, and might leave out what the other wrote.
    if not rest:
        return await retire_memory(memory, change, once, runtime)
    old = memory.memory
    said = [each for each in old.statements if not left_out(each.content, "", rest)]
    own = rest if old.read_by == RULES else ""  # rules keep the user's words, to be read again
    since = "" if old.is_change else old.since  # the change at `since` may be the forgotten part
    told = {"since": since, "is_change": False, "past": []}
    kept = {"statements": said, "quote": said[-1].quote if said else own, **told}
    made = await memories_of(runtime).update(
        memory.key,
        old.model_copy(update=_as_updated(old, Memory(content=rest), rest) | kept),
        change=change,
        expected_version=memory.version,
        idempotency_key=once,
    )
    return OperationNote(event="update", key=made.key, version=made.version, reason=change.reason)


def discard(state: Update) -> Update:
    """Record that a candidate adds nothing, and which memory already says it."""
    (task,) = tasks_of(state)
    known, why = task.touched, task.change.reason
    return {"operations": [OperationNote(event="discard", key=known.key, version=known.version, reason=why)]}


def write_id(message_id: str, subject: str) -> str:
    """Return a write's idempotency key, made of its message and subject (hashed: it may be any text)."""
    return f"{message_id}:{sha256(subject.encode()).hexdigest()[:16]}"
