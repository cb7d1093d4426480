"""How a fact stands to a memory: conflict, addition, duplicate, or unrelated."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from prompts.language import lexicon as lx
from prompts.language.attributes import Claim
from prompts.language.claims import claims_of
from prompts.language.entities import Entity, kind_of, same_entity
from prompts.language.grammar import parse
from prompts.language.predicates import content

Relation = Literal["conflict", "addition", "duplicate", "unrelated"]
Stand = Literal["conflict", "same", ""]

_REPLACING = re.compile(
    r"\b(?:now|instead|switched|changed|actually|correction|i meant|i mean|sorry|replaced|rather than|new|"
    r"not|no longer|"
    r"anymore|upgraded|swapped|these days|nowadays|moved on)\b",
    re.IGNORECASE,
)
_REPLACEABLE = frozenset(
    f"do:{verb}"
    for verb in [
        "drive",
        "use",
        "wear",
        "read",
        "take",
        "drink",
        "ride",
        "own",
        "teach",
        "manage",
        "lead",
        "commute",
        "wake",
        "sleep",
        "see",
        "watch",
        "practice",
        "practise",
        "play",
        "run",
        "cost",
        "weigh",
        "pay",
    ]
)
_KEEPING = frozenset(
    f"do:{verb}" for verb in ["keep", "own", "raise", "drive", "ride", "breed", "use", "have"]
)
_PARTNERS = lx.bag("boyfriend girlfriend husband wife partner fiance fiancee")
_CONSUMING = lx.bag("like do:eat do:drink do:like do:love do:enjoy do:smoke do:cook")
_LISTED = lx.bag(
    "age kind colour size height name is measure occupation birthday marital time:day time:clock place "
    "handedness is-a religion diet"
)  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """The relation, why, and the claims of fact and memory that exclude one another."""

    relation: Relation
    rationale: str
    clashes: tuple[tuple[Claim, Claim], ...] = ()


def compare(fact: str, memory: str, message: str) -> Comparison:
    """Compare what a fact and a memory claim; `message` tells whether the user corrects or replaces."""
    new, old = claims_of(fact), claims_of(memory)
    replacing = _REPLACING.search(message) is not None
    denied = _denied(message)
    clashes = tuple(
        (f, m) for f in new for m in old if stand(f, m, replacing) == "conflict" or _is_denied(f, m, denied)
    )
    if clashes:
        return Comparison("conflict", _clash_words(*clashes[0]), clashes)
    if _all_known(fact, memory, new, old) or _all_said(fact, memory, new, old):
        return Comparison("duplicate", "The memory already says this.")
    if enriches(fact, memory):
        return Comparison("addition", "It says all that the memory says, and more.")
    if _completes(new, old):
        return Comparison(
            "addition", "A further attribute of what the memory describes; nothing in it becomes false."
        )
    if any(same_entity(f.subject, m.subject) for f in new for m in old):
        return Comparison("unrelated", "The same subject, but another matter that stands by itself.")
    return Comparison("unrelated", "The memory is about another subject.")


_DENIAL = re.compile(r"\bnot (?:an? |the |my )?([\w'-]{1,40}(?: [\w'-]{1,40}){0,2})")


def _denied(message: str) -> frozenset[str]:
    """Return the words that a message denies (`diabetic, not prediabetic`)."""
    found = _DENIAL.findall(message[:2000])
    return frozenset[str]().union(*(words_of(words) for words in found))


def _is_denied(fact: Claim, memory: Claim, denied: frozenset[str]) -> bool:
    """Say whether the memory gives the very value that the message denies in favour of the fact's."""
    same = fact.attribute == memory.attribute and fact.positive and memory.positive
    named = bool(memory.value) and memory.value <= denied and not fact.value & memory.value
    return same and named and bool(fact.value) and same_entity(fact.subject, memory.subject)


def _clash_words(fact: Claim, memory: Claim) -> str:
    said, held = " ".join(sorted(fact.value)) or "an end", " ".join(sorted(memory.value)) or memory.attribute
    negation = "" if fact.positive else "not "
    return f'Both are about the same subject, and "{negation}{said}" and "{held}" cannot both be true.'


def stand(fact: Claim, memory: Claim, replacing: bool = False) -> Stand:
    """Say how one claim of the fact stands to one claim of the memory."""
    if _ends_possession(fact, memory):
        return "conflict"
    if not same_entity(fact.subject, memory.subject):
        return ""
    for judge in (_by_attribute, _by_ending, _by_exclusion, _by_life, _by_number):
        found = judge(fact, memory)
        if found:
            return found
    return "conflict" if replacing and _replaces(fact, memory) else ""


def _by_attribute(fact: Claim, memory: Claim) -> Stand:
    if _bare(fact.attribute) != _bare(memory.attribute):
        return ""
    if fact.positive == memory.positive:
        return _agreeing(fact, memory)
    if not fact.value and not fact.positive:
        return "conflict"
    within = fact.value <= memory.value or (memory.value and memory.value <= fact.value and fact.single)
    return "conflict" if within else ""


def _bare(attribute: str) -> str:
    return attribute.removeprefix("plan:").removeprefix("do:")


def _agreeing(fact: Claim, memory: Claim) -> Stand:
    if fact.attribute == "age":
        return "same" if _numbers(fact.value) == _numbers(memory.value) else "conflict"
    if fact.value <= memory.value and (fact.value or not memory.value):
        return "same" if fact.attribute == memory.attribute else ""
    if not (fact.single and memory.single and fact.positive):
        return ""
    return "conflict" if not _wider(fact, memory) else "same"


def _wider(fact: Claim, memory: Claim) -> bool:
    """Say whether the fact only names the kind of which the memory holds the breed."""
    return fact.attribute == "kind" and kind_of(memory.value) != "" and fact.value == {kind_of(memory.value)}


def _by_ending(fact: Claim, memory: Claim) -> Stand:
    """An end of something (`gave up X`, `sold X`) excludes every claim that has it."""
    kept = memory.attribute in _KEEPING and memory.positive
    if fact.attribute.startswith("have:") and not fact.positive and kept:
        return "conflict" if fact.attribute.removeprefix("have:") in memory.value else ""
    if fact.attribute == "any" and not fact.positive and memory.positive:
        held = memory.value | {memory.attribute.rpartition(":")[2]}
        return "conflict" if fact.value and fact.value <= held else ""
    consuming = fact.attribute in _CONSUMING and memory.attribute in _CONSUMING
    if consuming and not fact.positive and memory.positive:
        return (
            "conflict"
            if fact.value and (fact.value <= memory.value or _covers(fact.value, memory.value))
            else ""
        )
    return ""


def _covers(general: frozenset[str], special: frozenset[str]) -> bool:
    return bool(("meat" in general and special & lx.MEAT) or ("dairy" in general and special & lx.DAIRY)
                or (("fish" in general or "seafood" in general) and special & lx.FISH))  # fmt: skip


def _ends_possession(fact: Claim, memory: Claim) -> bool:
    """Say whether the fact says that somebody no longer has whom or what the memory is about."""
    if memory.subject.owner != fact.subject.key:
        return False
    if fact.attribute.startswith("have:") and not fact.positive:
        return memory.subject.head == fact.attribute.removeprefix("have:")
    if fact.attribute != "partner" or fact.positive or memory.subject.head not in _PARTNERS:
        return False
    names = memory.value | {memory.subject.name}
    return not fact.value or bool(fact.value & names) or memory.subject.head in fact.value


def _excluded_food(diet: frozenset[str]) -> frozenset[str]:
    if "vegan" in diet:
        return lx.MEAT | lx.FISH | lx.DAIRY
    if "vegetarian" in diet:
        return lx.MEAT | lx.FISH
    return lx.MEAT if "pescatarian" in diet else frozenset()


def _by_exclusion(fact: Claim, memory: Claim) -> Stand:
    """Exclusions between different attributes, in either direction."""
    return "conflict" if _excludes(fact, memory) or _excludes(memory, fact) else ""


def _excludes(one: Claim, other: Claim) -> bool:
    if not (one.positive and other.positive):
        return False
    rules: tuple[Callable[[Claim, Claim], bool], ...] = (_diet, _single, _jobless, _allergy)
    return any(rule(one, other) for rule in rules)


def _diet(one: Claim, other: Claim) -> bool:
    return (
        one.attribute == "diet"
        and other.attribute in _CONSUMING
        and bool(_excluded_food(one.value) & other.value)
    )


def _single(one: Claim, other: Claim) -> bool:
    alone = one.attribute == "marital" and bool(one.value & {"single", "divorced", "widowed"})
    return alone and (
        other.attribute == "partner"
        or other.attribute
        in {"have:girlfriend", "have:boyfriend", "have:partner", "have:wife", "have:husband"}
    )


def _jobless(one: Claim, other: Claim) -> bool:
    idle = one.attribute == "employment" and bool(one.value & {"retired", "unemployed", "jobless"})
    return idle and other.attribute in {"employer", "occupation"}


def _allergy(one: Claim, other: Claim) -> bool:
    return (
        one.attribute == "state:allergic"
        and other.attribute in _CONSUMING
        and not one.value & lx.ANIMALS
        and one.value <= other.value
    )


def _by_life(fact: Claim, memory: Claim) -> Stand:
    """What has died does nothing any more."""
    dead = fact.attribute == "life" and "dead" in fact.value and fact.positive
    return "conflict" if dead and memory.attribute != "life" and memory.positive else ""


def _replaces(fact: Claim, memory: Claim) -> bool:
    """Said as a replacement, another value of the same doing excludes the old one."""
    same = fact.attribute == memory.attribute and fact.attribute in _REPLACEABLE
    return (
        same
        and fact.positive
        and memory.positive
        and bool(fact.value)
        and bool(memory.value)
        and not fact.value <= memory.value
    )


def _all_known(fact: str, memory: str, new: list[Claim], old: list[Claim]) -> bool:
    telling = [claim for claim in new if not claim.attribute.startswith("do:")] or new
    known = bool(telling) and all(any(stand(f, m) == "same" for m in old) for f in telling)
    return known and words_of(fact) - _WEAK <= words_of(memory)


_WEAK = lx.LIKING | lx.bag("live work do reside really get old year call favourite also so much lot base")


def enriches(fact: str, memory: str) -> bool:
    """Say whether the fact repeats the whole memory and says more."""
    new, old = claims_of(fact), claims_of(memory)
    same = any(stand(f, m) == "same" for f in new for m in old)
    agree = all(claim.positive for claim in [*new, *old])
    return same and agree and words_of(memory) - _WEAK < words_of(fact) - _WEAK


def _all_said(fact: str, memory: str, new: list[Claim], old: list[Claim]) -> bool:
    """Say whether every meaningful word of the fact is in the memory, about the same subject, as positive."""
    if not any(same_entity(f.subject, m.subject) and f.positive == m.positive for f in new for m in old):
        return False
    if len({claim.positive for claim in [*new, *old]}) > 1:
        return False
    weak = _WEAK if any(stand(f, m) == "same" for f in new for m in old) else frozenset()
    return words_of(fact) - weak <= words_of(memory)


def words_of(text: str) -> frozenset[str]:
    """Return the lemmas of a text that carry meaning."""
    light = {"be", "have", "name", "call", "'s", "do"}
    return frozenset[str]().union(*(content(clause.tokens) for clause in parse(text))) - light


def _completes(new: list[Claim], old: list[Claim]) -> bool:
    """Say whether the fact tells what something is, and the memory holds what it is."""
    telling = [claim for claim in new if not claim.attribute.startswith("do:")]
    fits = [
        claim
        for claim in telling
        if claim.profile and claim.attribute in _LISTED and not claim.subject.is_user
    ]
    return bool(fits) and len(fits) == len(telling) and any(_profiled(claim.subject, old) for claim in fits)


def _profiled(entity: Entity, old: list[Claim]) -> bool:
    """Say whether the memory tells what this entity is (and does not name it otherwise)."""
    same = [claim for claim in old if same_entity(claim.subject, entity)]
    otherwise = any(
        c.attribute == "name" and entity.name and not set(entity.name.split()) & c.value for c in same
    )
    return not otherwise and any(claim.profile and claim.attribute in _LISTED for claim in same)


def _by_number(fact: Claim, memory: Claim) -> Stand:
    """The same doing with another number (`takes 50 minutes`, `takes 20 minutes`) excludes the old one."""
    if (
        fact.attribute != memory.attribute
        or not fact.attribute.startswith("do:")
        or not fact.positive
        or not memory.positive
    ):
        return ""
    new, old = _numbers(fact.value), _numbers(memory.value)
    rest, kept = fact.value - new, memory.value - old
    measured = len(new) == len(old) == 1 and new != old and bool(rest & kept or not (rest or kept))
    return "conflict" if measured and (rest <= kept or kept <= rest) else ""


def _numbers(value: frozenset[str]) -> frozenset[str]:
    return frozenset(word for word in value if word[0].isdigit() or word[0] in "$€£")
