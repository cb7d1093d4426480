"""How rules answer the questions of the memory agents, in `prompts/chat/`."""

import re

from mneme.core.evidence import located, says
from mneme.prompts.chat import memory_updater, paper_versions
from mneme.prompts.chat.holding import LONGEST, MOST
from mneme.prompts.chat.memory_agent import comparing, forgetting, reading, rewriting
from mneme.prompts.chat.memory_agent.comparing import MOST_PAIRS, Comparing, Judgement, Judgements
from mneme.prompts.chat.memory_agent.forgetting import Forgetting, Forgotten
from mneme.prompts.chat.memory_agent.reading import Candidate, Incoming, Read, Reading, Route
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
from mneme.rules.english.comparison import compare
from mneme.rules.english.composition import compose, worth_storing
from mneme.rules.english.pronouns import entities_of
from mneme.rules.english.rewriting import outdated, rewrite
from mneme.rules.registry import rule


@rule(reading.read_message)
def read_message(given: Incoming) -> Reading:
    """Route the message, and keep each statement in the user's own words."""
    routed = route_message(given)
    found = _written(given) if routed.route == "store" else []
    memories = [Read(**dict(each)) for each in found]
    # What says too much for one memory is not stored.
    route = routed.route if memories or routed.route != "store" else "discard"
    return Reading(rationale=routed.rationale, route=route, memories=memories)


@rule(comparing.compare_memories)
def compare_memories(given: Comparing) -> Judgements:
    """Judge each pair by itself."""
    return Judgements(judgements=[_judgement(given, number) for number in range(len(given.pairs))])


def _judgement(given: Comparing, number: int) -> Judgement:
    fact, memory = given.facts[given.pairs[number].fact], given.memories[given.pairs[number].memory]
    verdict = check_conflict(Pair(fact=fact.content, message=fact.said, memory=memory))
    return Judgement(
        pair=number, reason=verdict.rationale, relation=verdict.relation, outdated=verdict.outdated
    )


@rule(paper_versions.route_message)
def route_message(given: Incoming) -> Route:
    """Store what the user states as new and lasting; discard everything else."""
    if FORGET.search(given.message):
        return Route(rationale="The user wants something forgotten.", route="forget")
    kept, rationale = worth_storing(given.message, given.preceding, given.time)
    return Route(rationale=rationale, route="store" if kept else "discard")


FORGET = re.compile(
    r"^\W*(?:(?:please|can you|could you|you can|now) )*"
    r"(?:forget|delete|erase|(?:don['’]t|stop|no longer) remember\w*)\b(?! (?:to|it)\b)",
    re.IGNORECASE,
)


@rule(forgetting.choose_forgotten)
def choose_forgotten(given: Forgetting) -> Forgotten:
    """Choose the memories that say what the message wants forgotten."""
    wish = FORGET.sub("", given.message)
    numbers = [number for number, memory in enumerate(given.memories) if says(memory, wish, 1.0)]
    found = f"{len(numbers)} memories say what is to be forgotten." if numbers else "No memory says so."
    return Forgotten(rationale=found, numbers=numbers[:MOST])


@rule(paper_versions.compose_memories)
def compose_memories(given: Composing) -> Candidates:
    """Keep each statement in the user's own words, said of the user."""
    return Candidates(memories=_written(given))


def _written(given: Incoming) -> list[Candidate]:
    facts = compose(given.message, given.preceding, given.time)
    return [
        Candidate(
            content=fact.content,
            quote=fact.quote[:LONGEST],
            kind="episodic" if fact.episodic else "semantic",
            entities=entities_of(fact.content),
        )
        for fact in facts
        if len(fact.content) <= LONGEST
    ][:MOST]


@rule(paper_versions.check_conflict)
def check_conflict(given: Pair) -> Verdict:
    """Compare what the fact and the memory claim about whom."""
    comparison = compare(given.fact, given.memory, given.message)
    if comparison.relation == "addition" and len(given.memory) + len(given.fact) >= LONGEST:
        return Verdict(rationale="It would fit, but the memory is full.", relation="unrelated")
    return Verdict(
        rationale=comparison.rationale,
        relation=comparison.relation,
        outdated=_outdated(given) if comparison.relation == "conflict" else "",
    )


def _outdated(given: Pair) -> str:
    """Return the memory's words that the fact makes false; all of them where it is not clear which."""
    said = " … ".join(outdated(given.fact, given.memory, given.message))
    return said if said and located(said, given.memory) else given.memory


@rule(rewriting.rewrite_memory)
def rewrite_memory(given: Pair) -> Rewritten:
    """Put the fact in place of the statements that it contradicts, or append it as a further statement."""
    content = rewrite(given.fact, given.memory, given.message)
    return Rewritten(content=content, entities=entities_of(content))


@rule(paper_versions.route_upsert)
def route_upsert(given: Upsert) -> UpsertRoute:
    """Update the memory most in conflict, else the one the fact completes; insert where there is none."""
    # Version 2 asks about the message as it was said.
    facts = [each.content for each in _written(Incoming(message=given.fact))] or [given.fact]
    for wanted in ("conflict", "addition", "duplicate"):
        for index, memory in enumerate(given.memories):
            for fact in facts:
                comparison = compare(fact, memory, given.message)
                if comparison.relation == wanted:
                    return UpsertRoute(rationale=comparison.rationale, route="update", index=index)
    return UpsertRoute(
        rationale="No memory is about the same subject and attribute.", route="insert", index=-1
    )


@rule(paper_versions.manage_memory)
def manage_memory(given: ToolGiven) -> ToolCalls:
    """Route, compose, compare and rewrite in one go, as the agent with tools is asked to."""
    if route_message(given).route == "discard":
        return ToolCalls(calls=[])
    found = _written(given)
    return ToolCalls(calls=[call for candidate in found for call in _calls(given, candidate)])


@rule(paper_versions.choose_tools)
def choose_tools(given: ToolGiven) -> ToolChoices:
    """Call the same tools, without what to write."""
    calls = manage_memory(given).calls
    return ToolChoices(
        calls=[ToolChoice(name=each.name, quote=each.quote, index=each.index) for each in calls]
    )


def _calls(given: ToolGiven, candidate: Candidate) -> list[ToolCall]:
    pairs = [Pair(fact=candidate.content, message=given.message, memory=memory) for memory in given.memories]
    relations = [check_conflict(pair).relation for pair in pairs]
    touched = [n for n, relation in enumerate(relations) if relation in {"conflict", "addition"}]
    if touched:
        return [_update(candidate, pairs[number], number) for number in touched]
    if "duplicate" in relations:
        return []
    return [
        ToolCall(name="insert_memory", content=candidate.content, quote=candidate.quote, kind=candidate.kind)
    ]


def _update(candidate: Candidate, pair: Pair, index: int) -> ToolCall:
    content = rewrite_memory(pair).content
    return ToolCall(
        name="update_memory", content=content, quote=candidate.quote, kind=candidate.kind, index=index
    )


@rule(memory_updater.find_updates)
def find_updates(given: Batch) -> FoundUpdates:
    """Compare each new memory with every memory before it."""
    pairs = [(newer, older) for newer in range(given.new, len(given.memories)) for older in range(newer)]
    found = [_found(given, newer, older) for newer, older in pairs]
    return FoundUpdates(updates=[each for each in found if each][:MOST_PAIRS])


def _found(given: Batch, newer: int, older: int) -> FoundUpdate | None:
    fact = given.memories[newer]
    verdict = check_conflict(Pair(fact=fact.content, message=fact.said, memory=given.memories[older].content))
    if verdict.relation == "unrelated":
        return None
    return FoundUpdate(
        reason=verdict.rationale,
        newer=newer,
        older=older,
        relation=verdict.relation,
        outdated=verdict.outdated,
    )
