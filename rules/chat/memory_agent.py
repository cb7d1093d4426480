"""How rules answer the questions of the memory agents, in `prompts/chat/`: keep, link, never overwrite."""

import re
from collections.abc import Sequence
from itertools import combinations

from mneme.prompts.chat import memory_updater, paper_versions
from mneme.prompts.chat.bounds import LONGEST, MOST
from mneme.prompts.chat.evidence import words
from mneme.prompts.chat.memory_agent import comparing, forgetting, reading, rewriting
from mneme.prompts.chat.memory_agent.comparing import MOST_PAIRS, Comparing, Judgement, Judgements
from mneme.prompts.chat.memory_agent.forgetting import Forgetting, Forgotten
from mneme.prompts.chat.memory_agent.reading import MOST_STATED, Candidate, Incoming, Read, Reading, Route
from mneme.prompts.chat.memory_agent.rewriting import Pair, Rewritten
from mneme.prompts.chat.memory_updater import Batch, FoundUpdate, FoundUpdates
from mneme.prompts.chat.paper_versions import (
    Candidates,
    Composing,
    ToolCall,
    ToolCalls,
    ToolChoice,
    ToolChoices,
    ToolGiven,
    Upsert,
    UpsertRoute,
    Verdict,
)
from mneme.rules.chat.comparison import Correction, corrected, correction, is_repetition, may_contradict
from mneme.rules.chat.english import LONGEST_READ, Statement, statements
from mneme.rules.registry import rule
from mneme.rules.words import lemmas_of, stem, words_in

FORGET = re.compile(
    r"^\W*(?:(?:please|can you|could you|you can|now) )*"
    r"(?:forget|delete|erase|(?:don['’]t|stop|no longer) remember\w*)\b(?! (?:to|it|about it)\b)",
    re.IGNORECASE,
)
NAME = re.compile(r"(?!I['’ ])[A-Z][\w'’-]*(?: [A-Z][\w'’-]*)*")


@rule(reading.read_message)
def read_message(given: Incoming) -> Reading:
    """Keep each statement in the user's own words; discard what states nothing."""
    routed = route_message(given)
    memories = _written(given) if routed.route == "store" else []
    return Reading(
        rationale=routed.rationale, route=routed.route, memories=[Read(**dict(each)) for each in memories]
    )


@rule(paper_versions.route_message)
def route_message(given: Incoming) -> Route:
    """Store whatever is stated; discard greetings, thanks and bare questions."""
    if FORGET.search(given.message):
        return Route(rationale="The user wants something forgotten.", route="forget")
    if statements(given.message, given.preceding):
        cut = f" Only its first {LONGEST_READ} characters." if len(given.message) > LONGEST_READ else ""
        return Route(rationale=f"It states something; kept in the user's own words.{cut}", route="store")
    return Route(rationale="It states nothing: a question, a greeting or thanks.", route="discard")


@rule(paper_versions.compose_memories)
def compose_memories(given: Composing) -> Candidates:
    """Keep each statement in the user's own words."""
    return Candidates(memories=_written(given)[:MOST])


def _written(given: Incoming) -> list[Candidate]:
    found = statements(given.message, given.preceding)
    step = -(-len(found) // MOST_STATED) if found else 1
    return [_candidate(found[start : start + step]) for start in range(0, len(found), step)]


def _candidate(together: Sequence[Statement]) -> Candidate:
    content = " ".join(each.content for each in together)[:LONGEST]
    return Candidate(
        content=content if content[-1] in ".!?…。！？" else f"{content}."[:LONGEST],
        quote=" … ".join(each.quote for each in together)[:LONGEST],
        kind="semantic",
        entities=entities_of(content),
    )


def entities_of(content: str) -> list[str]:
    """Return the words of a text with a capital, unless they begin a sentence and are in a dictionary."""
    found = []
    for each in NAME.finditer(content):
        begins = not each.start() or content[: each.start()].rstrip()[-1:] in ".!?:"
        name = each[0].removesuffix("'s").removesuffix("’s")
        first, _, others = name.partition(" ")
        if begins and (lemmas_of(first.lower()) or first.lower() in {"the", "i", "he", "she", "we", "they"}):
            name = others
        found += [name] if len(name) > 1 else []
    return list(dict.fromkeys(found))[:MOST]


@rule(comparing.compare_memories)
def compare_memories(given: Comparing) -> Judgements:
    """Find exact repetitions and unmistakable corrections; link what may contradict."""
    turns = [each.removeprefix("user: ") for each in given.preceding if each.startswith("user: ")]
    before = turns[-1] if turns else ""
    found: list[Judgement] = []
    for number, fact in enumerate(given.facts):
        meant = correction(fact.content, fact.said, given.memories, before)
        pairs = (
            _judgement(number, fact.content, at, memory, meant) for at, memory in enumerate(given.memories)
        )
        found += filter(None, pairs)
    return Judgements(judgements=found[:MOST_PAIRS])


def _judgement(fact: int, content: str, at: int, memory: str, meant: Correction | None) -> Judgement | None:
    if is_repetition(content, memory):
        why = "The memory says so already, word for word."
        return Judgement(fact=fact, memory=at, reason=why, relation="duplicate")
    if meant and meant.memory == at:
        why = "An explicit correction, which only this memory can mean."
        return Judgement(fact=fact, memory=at, reason=why, relation="correction", outdated=meant.wrong)
    if may_contradict(content, memory):
        return Judgement(fact=fact, memory=at, reason="It may contradict the memory.", relation="unclear")
    return None


@rule(rewriting.rewrite_memory)
def rewrite_memory(given: Pair) -> Rewritten:
    """Put the right words in place of the wrong ones; without an unmistakable correction, append the fact."""
    meant = correction(given.fact, given.message, [given.memory], given.memory if given.outdated else "")
    content = corrected(given.memory, given.fact, meant) if meant else f"{given.memory} {given.fact}"
    return Rewritten(content=content, entities=entities_of(content))


@rule(forgetting.choose_forgotten)
def choose_forgotten(given: Forgetting) -> Forgotten:
    """Choose the memories that say all of what the message wants forgotten."""
    wish = _stems(FORGET.sub("", given.message))
    numbers = [number for number, memory in enumerate(given.memories) if wish and wish <= _stems(memory)]
    found = f"{len(numbers)} memories say what is to be forgotten." if numbers else "No memory says so."
    return Forgotten(rationale=found, numbers=numbers[:MOST])


EMPTY = words_in("i my me the a an that about what said told you all please to of is am like love s")


def _stems(text: str) -> set[str]:
    return {stem(each) for each in words(text) if each not in EMPTY}


# The paper's versions, kept for comparison, and the two agents of its future work.


@rule(paper_versions.check_conflict)
def check_conflict(given: Pair) -> Verdict:
    """Find an exact repetition, or a correction that means this memory."""
    meant = correction(given.fact, given.message, [given.memory], given.memory)
    if is_repetition(given.fact, given.memory):
        return Verdict(rationale="The memory says so already.", relation="duplicate")
    if meant:
        return Verdict(rationale="An explicit correction.", relation="conflict", outdated=meant.wrong)
    return Verdict(rationale="No repetition, no correction of it.", relation="unrelated")


@rule(paper_versions.route_upsert)
def route_upsert(given: Upsert) -> UpsertRoute:
    """Update the memory that is corrected or repeated; else insert."""
    for index, memory in enumerate(given.memories):
        verdict = check_conflict(Pair(fact=given.fact, memory=memory, message=given.message))
        if verdict.relation != "unrelated":
            return UpsertRoute(rationale=verdict.rationale, route="update", index=index)
    return UpsertRoute(rationale="No memory is repeated or corrected.", route="insert", index=-1)


@rule(paper_versions.manage_memory)
def manage_memory(given: ToolGiven) -> ToolCalls:
    """Route, compose, compare and rewrite in one go, as the agent with tools is asked to."""
    found = _written(given)[:MOST] if route_message(given).route == "store" else []
    return ToolCalls(calls=[call for candidate in found for call in _calls(given, candidate)])


def _calls(given: ToolGiven, new: Candidate) -> list[ToolCall]:
    chosen = route_upsert(Upsert(fact=new.content, message=given.message, memories=given.memories))
    made = {"quote": new.quote, "kind": new.kind, "index": chosen.index}
    if chosen.route == "insert":
        return [ToolCall(name="insert_memory", content=new.content, **made)]
    pair = Pair(fact=new.content, message=given.message, memory=given.memories[chosen.index], outdated="?")
    is_known = is_repetition(new.content, pair.memory)
    return [] if is_known else [ToolCall(name="update_memory", content=rewrite_memory(pair).content, **made)]


@rule(paper_versions.choose_tools)
def choose_tools(given: ToolGiven) -> ToolChoices:
    """Call the same tools, without what to write."""
    calls = manage_memory(given).calls
    return ToolChoices(calls=[ToolChoice.model_validate(dict(each)) for each in calls])


@rule(memory_updater.find_updates)
def find_updates(given: Batch) -> FoundUpdates:
    """Compare each new memory with every memory before it."""
    found = []
    for newer, older in combinations(range(len(given.memories)), 2):
        fact, memory = given.memories[older], given.memories[newer].content
        verdict = check_conflict(Pair(fact=fact.content, message=fact.said, memory=memory))
        if older >= given.new and verdict.relation != "unrelated":
            why = {"reason": verdict.rationale, "relation": verdict.relation, "outdated": verdict.outdated}
            found.append(FoundUpdate(newer=older, older=newer, **why))
    return FoundUpdates(updates=found[:MOST_PAIRS])
