"""The memory agent (§3.1, Figure 2): read a message, compare it with similar memories, insert or update.

One question routes a message and writes it down (message router, insert function), one compares what was
written with the memories that it may touch (conflict router), and one rewrites a memory where the fact alone
cannot take its place (update function). The paper's version 3 asks one question for each similar memory;
`paper_versions.py` keeps it.

Deviations from the paper, each for a fault that its §4.2 or its future work names:

- The insert function runs before the search and may find several facts in one message: a message
  with one contradiction and one new fact would otherwise lose the second.
- The paper's conflict is a change or a correction, since only what was corrected was never true. `addition`
  appends to a memory (the paper's test 6 replaced it), `duplicate` discards with a reason, and what is
  `unclear` is kept beside the memory and linked with it.
- What only holds later or for a time changes no memory: it is kept with its dates beside what holds now.
- What was decided becomes an outcome in the ledger, so that a discarded message has a rationale too.
"""

from asyncio import gather
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import chain, pairwise
from typing import Literal, NamedTuple, get_args

from mneme.models.asking.asking import resolve
from mneme.nodes.chat.context import MemoryRuntime, memories_of
from mneme.nodes.chat.memory_operations import MAX_STATEMENTS, Judged
from mneme.nodes.chat.message_lifecycle import Action, Decision, State, incoming, last_reply, written
from mneme.nodes.workflow import Update, counted
from mneme.prompts.chat.evidence import located, rest
from mneme.prompts.chat.memory_agent.comparing import Comparing, Fact, Relation, compare_memories
from mneme.prompts.chat.memory_agent.reading import Incoming, moment, read_message
from mneme.stores.ledger.words import words_of
from mneme.stores.users.memory import MAX_LINKS, RULES, Memory, MemoryRecord, days_of, holding

MAX_KNOWN = 8
"""Maximum memories that the router is shown beside a message."""
KNOWN_CHARS = 400
"""Maximum characters of these memories together."""
MIN_SIMILARITY = 0.1
"""Cosine below which a memory that shares no word with a fact is not compared with it.

Of 53 memories that facts in ten languages changed, one was below it (development cases, both embedders).
"""
COMMON_WORD_SHARE = 0.4
"""Share of the found memories above which a word that they have counts as common, such as `user`."""
MAX_SAID_CHARS = 120
"""Maximum characters of the user's own words for a fact that the conflict router sees."""
MAX_MEMORIES = 24
"""Maximum memories in one question; further facts go into further questions."""


class Batch(NamedTuple):
    """The facts of one question by number, and the memories shown beside them by key."""

    facts: dict[int, Memory]
    memories: dict[str, MemoryRecord]


@counted
async def message_router(state: State, runtime: MemoryRuntime) -> Update:
    """Decide what of a message to store or forget, and write it down (the paper's message router)."""
    who = runtime.context.memory_agent
    own = await _read_again(state, runtime) if state.get("rereads") else None
    if state.get("rereads") and own is None:
        gone = "The memory was changed or erased meanwhile."
        return {"route": "discard", "rationale": gone, "model": "", "own": None}
    shown, room = list[MemoryRecord](), KNOWN_CHARS  # memories may tell whom the message means
    for each in await memories_of(runtime).related(state["message"], "", (), MAX_KNOWN):
        if each.key != state.get("rereads") and len(each.memory.content) <= room:
            shown.append(each)
            room -= len(each.memory.content)
    given = incoming(state, Incoming, known=[each.memory.dated for each in shown])
    reading, doubt = await last_reply(read_message, given, who)
    is_empty = reading.route == "store" and not reading.memories
    nothing = " But nothing of it could be written down." if is_empty else ""
    return {
        # A memory that is read again must be replaced or retired. And a reply that writes memories down, yet
        # discards the message, contradicts itself: what it wrote is not lost.
        "route": "store" if own or (reading.memories and reading.route == "discard") else reading.route,
        "rationale": reading.rationale + nothing,
        "model": await resolve(who),
        "candidates": written(given, reading.memories, doubt),
        "shown": shown,
        "own": own,
    }


async def _read_again(state: State, runtime: MemoryRuntime) -> MemoryRecord | None:
    """Return the memory to be read again, if it has not changed since rules wrote it.

    If an interrupted run has already written it for this message, return the version before that write.
    """
    key = state["rereads"]
    found = await memories_of(runtime).find(key)
    if found is None or (found.live and found.memory.read_by == RULES):
        return found
    # Given the older version, the run decides as before, and repeats its writes without effect.
    history, written_for = await memories_of(runtime).history(key), f"{state['message_id']}:"
    before = [
        older for older, newer in pairwise(history) if (newer.idempotency_key or "").startswith(written_for)
    ]
    return MemoryRecord.of(before[-1]) if before else None


def left_to_store(state: State) -> Literal["find_similar", "settle"]:
    """Return the next node after forgetting: `find_similar` if the message also tells something to store."""
    return "find_similar" if state["candidates"] else "settle"


async def find_similar(state: State, runtime: MemoryRuntime) -> Update:
    """Search the user's memories with each candidate's content, quote and names."""
    context, own = runtime.context, state.get("rereads")
    found = await gather(
        *(
            memories_of(runtime).related(each.content, each.quote, each.entities, context.similar)
            for each in state["candidates"]
        )
    )
    least = context.min_similarity
    return {
        "similar": [
            [
                each
                for each in some
                # found by words alone, or without an embedder, a memory has no similarity
                if each.key != own and (each.similarity is None or each.similarity >= least)
            ]
            for some in found
        ]
    }


def worth_comparing(fact: str, similar: Sequence[MemoryRecord]) -> list[MemoryRecord]:
    """Return the memories above the similarity floor, and those that share a word with the fact."""
    held = [{*words_of(each.memory.content).indices} for each in similar]
    counts = Counter(chain.from_iterable(held))  # a word that many of the memories have tells nothing
    said = {each for each in words_of(fact).indices if counts[each] <= max(1, COMMON_WORD_SHARE * len(held))}
    return [
        each
        for each, words in zip(similar, held, strict=True)
        if each.similarity is None or each.similarity >= MIN_SIMILARITY or said & words
    ]


@counted
async def conflict_router(state: State, runtime: MemoryRuntime) -> Update:
    """Judge how each new fact relates to memories that it may change (conflict router); others are unrelated.

    Raises `BadAnswer` if no reply can be read as judgements.
    """
    # A fact may change a memory that shares no word with it and, in a language that the embedder does not
    # know, no similarity. So each question has the memories, too, that the router was shown.
    shown = {each.key: each for each in state.get("shown", [])}
    batches: list[Batch] = []
    for number, (fact, similar) in enumerate(zip(state["candidates"], state["similar"], strict=True)):
        memories = {each.key: each for each in worth_comparing(fact.content, similar)}
        if not memories:
            continue
        if not batches or len(batches[-1].memories | memories) > MAX_MEMORIES:
            batches.append(Batch({}, shown.copy()))
        batches[-1].facts[number] = fact
        batches[-1].memories.update(memories)
    found = await gather(*(_judged(each, state, runtime.context.memory_agent) for each in batches))
    return {"verdicts": [each for batch in found for each in batch]}


async def _judged(batch: Batch, state: State, who: str) -> list[Judged]:
    """Return the judgements on offered pairs; a change or correction without outdated words is `unclear`."""
    numbers, memories, facts = list(batch.facts), list(batch.memories.values()), list[Fact]()
    for fact in batch.facts.values():
        said, half = fact.quote, MAX_SAID_CHARS // 2
        if len(said) > MAX_SAID_CHARS:  # the middle may be left out
            said = f"{said[:half]} … {said[-half:]}"
        facts.append(Fact(content=fact.dated, said=said))
    given = Comparing(
        facts=facts,
        memories=[each.memory.dated for each in memories],
        time=moment(state.get("time", "")),
        preceding=state.get("preceding", []),
    )
    answer, doubt = await last_reply(compare_memories, given, who)
    judged = list[Judged]()
    for each in answer.judgements:
        if each.fact >= len(numbers) or each.memory >= len(memories):
            continue  # a last reply that failed its checks may name pairs that were not offered
        memory = memories[each.memory]
        outdated = located(each.outdated, memory.memory.content)
        is_unclear = each.relation in {"change", "correction"} and not outdated
        judged.append(
            Judged(
                candidate=numbers[each.fact],
                memory=memory,
                relation="unclear" if is_unclear else each.relation,
                rationale=each.reason,
                outdated=outdated,
                updated=each.updated.strip(),
                doubt=doubt if f"memory {each.memory} " in doubt else "",  # as `compare_memories` words it
            )
        )
    return judged


def decide(state: State) -> Update:
    """Decide on each candidate by its verdicts (§3.1); link it with memories that it may contradict."""
    decisions, candidates = list[Decision](), list[Memory]()
    said_on = days_of(state.get("time", ""))  # not the day of the run: imported messages may be years old
    today = said_on[0] if said_on else datetime.now(UTC).date()
    for number, candidate in enumerate(state["candidates"]):
        verdicts = [each for each in state["verdicts"] if each.candidate == number]
        begins_for_good = holding(candidate.since, "", today) == "later" and not candidate.until
        decided = _decisions_on(number, verdicts, candidate, begins_for_good)
        decisions += decided
        limited = [each.memory.key for one in decided[1:] for each in one.touched]
        # An unclear memory may contradict the fact; so may one of which a part ends later for good.
        relations = {"unclear", "later"} if begins_for_good else {"unclear"}
        open_ = [each.memory.key for each in verdicts if each.relation in relations]
        linked = [key for key in open_ if key not in limited][:MAX_LINKS]
        is_new = decided[0].action == "insert_memory"
        candidates.append(candidate.model_copy(update={"may_contradict": linked if is_new else []}))
    if own := state.get("own"):
        decisions = _in_place_of(own, decisions, state["rationale"])
    return {"decisions": decisions, "candidates": candidates}


def _in_place_of(own: MemoryRecord, decisions: Sequence[Decision], why: str) -> list[Decision]:
    """Replace the memory that was read again by the first new memory; retire it if there is none."""
    again = [Judged(memory=own)]
    new = next((each for each in decisions if each.action == "insert_memory"), None)
    others = [each for each in decisions if each is not new]  # further new memories are inserted beside it
    if new is None:
        why = f"Read again by a model, nothing of it stands by itself. {why}"
        return [*others, Decision(candidate=-1, action="retire", touched=again, rationale=why)]
    why = f"Read again by a model. {new.rationale}"
    return [*others, Decision(candidate=new.candidate, action="replace_memory", touched=again, rationale=why)]


def _decisions_on(
    number: int, verdicts: Sequence[Judged], candidate: Memory, begins_for_good: bool
) -> list[Decision]:
    """Update each memory in conflict; discard a duplicate; append to the most similar; else insert."""

    def decided(action: Action, touched: Sequence[Judged], why: Sequence[Judged] = ()) -> Decision:
        reasons = " ".join(dict.fromkeys(each.rationale for each in why or touched))
        return Decision(candidate=number, action=action, touched=list(touched), rationale=reasons)

    of: dict[Relation, list[Judged]] = {name: [] for name in get_args(Relation)}
    for each in verdicts:
        of[each.relation].append(each)
    # A conflict goes first: the changed memory takes the fact in, also where another one repeats it.
    if present := [each for each in verdicts if each.relation in {"change", "correction"}]:
        return [decided("update_memory", present)]
    if of["later"]:
        replaced = [  # memories that the fact replaces completely: they hold until it begins
            each
            for each in of["later"]
            if begins_for_good and each.outdated
            if not rest(each.memory.memory.content, each.outdated, candidate.content)
        ]
        limited = [decided("update_memory", replaced)] if replaced else []
        return [decided("insert_memory", [], of["later"]), *limited]
    if of["duplicate"]:
        return [decided("discard", of["duplicate"][:1])]
    additions = [each for each in of["addition"] if len(each.memory.memory.statements) < MAX_STATEMENTS]
    if additions and not (candidate.since or candidate.until):  # a memory has one period for all it says
        return [decided("update_memory", additions[:1])]
    unclear = " ".join(dict.fromkeys(each.rationale for each in of["unclear"]))
    kept = f"{unclear} Both are kept, and linked."
    rationale = kept if unclear else "Nothing that is remembered says so or contradicts it."
    return [Decision(candidate=number, action="insert_memory", rationale=rationale)]
