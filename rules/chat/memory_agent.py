"""Rules that answer the memory agents' questions, in `prompts/chat/`: keep, link, never overwrite."""

import re
from functools import reduce
from typing import Literal

from mneme.prompts.chat import paper_versions as paper
from mneme.prompts.chat.evidence import sentences
from mneme.prompts.chat.memory_agent import comparing, forgetting, reading, rewriting
from mneme.prompts.chat.memory_agent.comparing import Relation
from mneme.prompts.chat.memory_agent.reading import MAX_ITEMS, MAX_MEMORY_CHARS
from mneme.rules.chat.comparison import corrected, correction, count, opening, relations, stems
from mneme.rules.chat.english import CLAUSES, IS, MAX_READ, asks, content_of, entities_of, says, statements
from mneme.rules.registry import rule

FORGET_WISH = re.compile(
    r"(?i)^\W*(?:(?:please|can you|could you|you can|now|oh|ok|and|also|so|but|btw|just|actually|hey|sorry"
    r"|i want you to|i(?: would|['’]?d) like you to)[, ]+)*(?:forget|(?:don['’]t|stop|no longer) remember\w*"
    r"|(?:delete|erase)(?= .*\b(?:about|memor\w+|remember\w*|told|said|know)\b))\b(?!-| (?:to|it|about it)\b)"
)
TOLD_ALL = re.compile(r"(?i)\b(?:what|all|(?:any|every)thing)(?: that)? i (?:\w+ )?(?:told|said|mentioned)\b")
OWN = re.compile(r"(?i)\b(?:i|the user)\b")
"""A wish about oneself, as in `Forget where I live`, does not mean the memory `Maria lives in Ghent`."""
CLAUSE = re.compile(r"(?i)(?:[,;]?\s+(?:and|but)|[,;])\s+(?=(?:i|we|my|our|he|she|they|his|her|their)\b)")
LISTED = re.compile(r"(?i)(,? (?:and|or) |, )")
OPENING = re.compile(r"(?i)(?:if|when|since|after|before|while|as|because|although|once|in|on|at|for|by)\b")
REASONS: dict[Relation, str] = {
    "duplicate": "The memory says so already, word for word.",
    "correction": "An explicit correction, which only this memory can mean.",
    "unclear": "It may contradict the memory.",
}


def read_message(given: reading.Incoming, most: int = reading.MAX_STATED) -> reading.Reading:
    """Keep each statement in the user's own words, in at most `most` memories."""
    wishes = _wishes(given.message)
    told = [each for each in sentences(given.message) if each not in wishes]
    found = statements(" ".join(told) if wishes else given.message, given.preceding)
    step = max(1, -(-len(found) // most))  # rounded up: several to a memory rather than one left out
    memories = list[reading.Read]()
    for together in [found[at : at + step] for at in range(0, len(found), step)]:
        content = " ".join(each.content for each in together)[:MAX_MEMORY_CHARS]
        quote = " … ".join(each.quote for each in together)[:MAX_MEMORY_CHARS]
        ended = content if content[-1] in ".!?…。！？" else f"{content}."[:MAX_MEMORY_CHARS]
        read = reading.Read(content=ended, quote=quote, kind="semantic", entities=entities_of(content))
        memories.append(read)
    cut = f" Only its first {MAX_READ} characters." if len(given.message) > MAX_READ else ""
    kept = f"It states something; kept in the user's own words.{cut}"
    if wishes:
        why = f"The user wants something forgotten.{f' {kept}' if found else ''}"
        return reading.Reading(rationale=why, route="forget", memories=memories)
    nothing = "It states nothing: a question, a greeting, thanks."
    route: Literal["store", "discard"] = "store" if found else "discard"
    return reading.Reading(rationale=kept if found else nothing, route=route, memories=memories)


rule(reading.read_message)(read_message)


def _wishes(message: str) -> list[str]:
    """Return the sentences that only ask to forget something."""
    wishes = {each: FORGET_WISH.sub("", each) for each in sentences(message) if FORGET_WISH.search(each)}
    return [
        each
        for each, wish in wishes.items()
        if not any(says(part, bool(IS.search(part))) and not asks(part) for part in CLAUSES.split(wish)[1:])
    ]


@rule(comparing.compare_memories)
def compare_memories(given: comparing.Comparing) -> comparing.Judgements:
    """Find exact repetitions and unmistakable corrections; link what may contradict."""
    turns = ["", *(each[6:] for each in given.preceding if each.startswith("user: "))]
    found = [
        comparing.Judgement(
            fact=n, memory=at, reason=REASONS[how], relation=how, outdated=old, updated=new[:MAX_MEMORY_CHARS]
        )
        for n, fact in enumerate(given.facts)
        for at, how, old, new in relations(fact.content, fact.said, given.memories, turns)
    ]
    return comparing.Judgements(judgements=found[: comparing.MAX_JUDGEMENTS])


@rule(rewriting.rewrite_memory)
def rewrite_memory(given: rewriting.Pair) -> rewriting.Rewritten:
    """Put the right words in place of the wrong ones; without an unmistakable correction, append the fact."""
    meant = correction(given.fact, given.message, [given.memory], [given.memory if given.outdated else ""])
    content = corrected(given.memory, given.fact, *meant[1:]) if meant else f"{given.memory} {given.fact}"
    return rewriting.Rewritten(content=content, entities=entities_of(content))


@rule(forgetting.choose_forgotten)
def choose_forgotten(given: forgetting.Forgetting) -> forgetting.Forgotten:
    """Choose the memories with a statement that contains everything the message asks to forget."""
    said = [TOLD_ALL.sub(" ", FORGET_WISH.sub("", each)) for each in _wishes(given.message)]
    told = {at: _statements(memory) for at, memory in enumerate(given.memories[: given.known])}
    stays = {at: [*filter(None, (reduce(_left, said, each) for each in told[at]))] for at in told}
    left = {at: stay for at, stay in stays.items() if stay != told[at]}
    found = f"Memories that say what is to be forgotten: {len(left)}." if left else "None says it by itself."
    rest = [forgetting.Rest(memory=at, content=" ".join(stay)) for at, stay in left.items() if stay]
    return forgetting.Forgotten(rationale=found, numbers=[*left][:MAX_ITEMS], rest=rest[:MAX_ITEMS])


def _statements(memory: str) -> list[str]:
    """Return the main clauses of a memory: `…, and my wife sings`."""
    found = list[str]()
    for sentence in sentences(memory):
        cuts = [each.span() for each in CLAUSE.finditer(sentence) if opening(sentence[: each.start()])[1]]
        cuts = [] if OPENING.match(sentence) else cuts  # `When I …, I …` and `My wife and I …` stay one
        starts, ends = [0, *(end for _, end in cuts)], [*(start for start, _ in cuts), len(sentence)]
        found += [sentence[start:end] for start, end in zip(starts, ends, strict=True)]
    return [each if each[-1] in ".!?" else f"{each}." for each in found]


def _left(statement: str, wish: str) -> str:
    """Return what of a statement is not to be forgotten: all of it if it does not contain the whole wish."""
    # Of a list, the items that the wish does not name stay: nobody asked to forget them.
    named, is_of_one = stems(wish), OWN.search(statement) is not None or not OWN.search(wish)
    if not (is_of_one and named and named <= stems(statement)):
        return statement
    head, *rest = LISTED.split(statement)
    begun, _, first = head.rpartition(" ")
    listed = [(" ", first), *zip(rest[::2], rest[1::2], strict=True)]
    items = [stems(item) for _, item in listed]
    meant = [each for each in items if each & named]
    is_whole = OPENING.match(statement) or OWN.search("".join(rest)) or named <= stems(opening(statement)[0])
    if is_whole or not meant or len(meant) == len(items):  # `my allergies` are all of them
        return ""
    are_words = len(items) > 2 and all(len(each) == 1 for each in items)
    is_first = are_words and not content_of(begun.rpartition(" ")[2])  # `allergic to nuts, eggs and figs`
    if not all(each <= named for each in meant) or (items[0] in meant and not is_first):
        return statement  # it cannot be told where the item begins or ends
    (_, kept), *others = [pair for pair, each in zip(listed, items, strict=True) if each not in meant]
    left = f"{begun} {kept}{''.join(map(''.join, others))}".strip()
    return left if left[-1] in ".!?" else f"{left}."


# The paper's versions, kept for comparison: the same rules with other types.


@rule(paper.check_conflict)
def check_conflict(given: rewriting.Pair) -> paper.Verdict:
    """Find an exact repetition, or a correction that means this memory."""
    for _, relation, wrong, _ in relations(given.fact, given.message, [given.memory], [given.memory]):
        if relation != "unclear":
            as_printed = "conflict" if relation == "correction" else "duplicate"
            return paper.Verdict(rationale=REASONS[relation], relation=as_printed, outdated=wrong)
    return paper.Verdict(rationale="No repetition, no correction of it.", relation="unrelated")


@rule(paper.route_upsert)
def route_upsert(given: paper.Upsert) -> paper.UpsertRoute:
    """Update the memory that is corrected or repeated; else insert."""
    found = relations(given.fact, given.message, given.memories, [" ".join(given.memories)])
    for index, relation, *_ in found:
        if relation != "unclear":
            return paper.UpsertRoute(rationale=REASONS[relation], route="update", index=index)
    return paper.UpsertRoute(rationale="No memory is repeated or corrected.", route="insert", index=-1)


@rule(paper.choose_tools)
def choose_tools(given: paper.ToolGiven) -> paper.ToolChoices:
    """Route and compare in one go, as the agent with tools is asked to."""
    calls = []
    for new in read_message(given, MAX_ITEMS).memories:
        upsert = paper.Upsert(fact=new.content, message=given.message, memories=given.memories)
        index = route_upsert(upsert).index
        name = "update_memory" if index >= 0 else "insert_memory"
        if index < 0 or not count(new.content, given.memories[index]):
            calls.append(paper.ToolChoice(name=name, index=index, quote=new.quote))
    return paper.ToolChoices(calls=calls)


rule(paper.route_message)(lambda given: reading.Route.model_validate(dict(read_message(given))))
rule(paper.compose_memories)(
    lambda given: paper.Candidates(memories=[*read_message(given, MAX_ITEMS).memories])
)
