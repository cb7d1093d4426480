"""Which statements of a message make one memory, and which are told only in passing."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from prompts.language import lexicon as lx
from prompts.language.attributes import Claim
from prompts.language.claims import claims_of
from prompts.language.entities import Entity, entity_of, same_entity
from prompts.language.grammar import Clause, parse
from prompts.language.words import Token, verb_form, verb_lemma

LONGEST_JOINED = 500
"""Characters up to which statements about one subject are made one memory."""


_DENIED = re.compile(r"\b(?:no longer|anymore)\b")
_SUCCEEDING = frozenset(["switch", "move", "join", "transfer"])
_ASIDE = lx.bag(
    "chat spot look laugh cry yell cave swap surprise shut miss freak nod joke say "
    "defend guess tell burn find feel think ask wait mention plan hope try "
    "wonder "
    "throw found proud thrilled manage need want get scare worry wipe know remember forget seem sound"
)
"""Verbs of what is told along with something else rather than for its own sake."""

_DONE_ASIDE = lx.bag("watch read drive go eat take call check talk cook meet stand make see")
"""Verbs of which that holds unless they tell of a habit (`I mostly read sci-fi`)."""

_MOODS = lx.bag(
    "proud thrilled excited happy glad sad heartbroken devastated stoked pumped hyped relieved grateful"
)

_SETTING_OFF = re.compile(
    r"\b(?:also|oh and|btw|by the way|unrelated|separately|in other news|plus|another thing)\b", re.I
)
_SENTENCE = re.compile(r"[.!?…\n;]|\b(?:also|oh and|plus)\b", re.I)


@dataclass(frozen=True)
class Draft:
    """A memory to be: of whom, in which words, where the message says so."""

    subject: Entity
    content: str
    start: int
    end: int
    episodic: bool
    ended: bool = False  # whether it says that something is over
    succeeding: bool = False  # whether it says what came instead
    pointing: bool = False  # whether a pronoun for what the draft before introduced is its subject
    weight: int = 2  # 2: stands by itself; 1: told in passing
    linked: bool = False  # whether a pronoun of it means what the draft before mentions


def selected(drafts: Sequence[Draft], message: str) -> list[Draft]:
    """Return the memories: asides dropped where something weightier is said, what belongs together joined."""
    told = _weighty(_without_denials(list(drafts)), message)
    return _joined(told, message)


def weight(clause: Clause, content: str) -> int:
    """Return 2 for a statement that stands by itself, 1 for one that is told in passing."""
    if any(token.low in _MOODS for token in clause.rest) and any(
        token.low in {"i", "we"} for token in clause.subject
    ):
        return 1
    if not clause.verbs or any(not claim.attribute.startswith(_DOINGS) for claim in claims_of(content)):
        return 2
    main = next((verb for verb in reversed(clause.verbs) if verb.low not in lx.BE | lx.HAVE | lx.DO), None)
    verb = verb_lemma((main or clause.verbs[-1]).low)
    background = (
        len(clause.verbs) > 1
        and clause.verbs[0].low in {"was", "were"}
        and verb_form(main.low if main else "") == "VBG"
    )
    present = verb_form(clause.verbs[0].low) in {"VB", "VBZ"}
    named = any(_is_name_or_time(token, present) for token in clause.rest)
    aside = verb in _ASIDE or (verb in _DONE_ASIDE and not (present and main is clause.verbs[0]))
    bare = not present and not is_end(clause) and all(t.tag in {"RB", "PUNCT", "UH"} for t in clause.rest)
    return 1 if background or (aside and not named) or bare else 2


def _is_name_or_time(token: Token, present: bool) -> bool:
    """Say whether a word makes a doing worth a memory: a name, or in the present a time."""
    timely = token.low.rstrip("s") in lx.TIME_NOUNS
    return (token.tag == "NNP" and not timely) or (present and timely)


_DOINGS = ("do:", "plan:", "was:")


def _weighty(drafts: list[Draft], message: str) -> list[Draft]:
    if len(drafts) < 2 or all(draft.weight < 2 for draft in drafts):
        return drafts[:1]
    return [
        draft
        for number, draft in enumerate(drafts)
        if draft.weight > 1 or _is_set_off(message, drafts[number - 1].end if number else 0, draft.start)
    ]


def _is_set_off(message: str, start: int, end: int) -> bool:
    return start > 0 and _SETTING_OFF.search(message, start, end) is not None


def _joined(drafts: list[Draft], message: str) -> list[Draft]:
    """Make one memory of neighbouring statements about the same person, animal or thing of the user's."""
    joined = list[Draft]()
    for draft in drafts:
        before = joined[-1] if joined else None
        if before is not None and _belongs(before, draft, message):
            joined[-1] = Draft(
                before.subject, _merged(before.content, draft.content), before.start, draft.end,
                before.episodic,
            )  # fmt: skip
        else:
            joined.append(draft)
    return joined


def _belongs(before: Draft, draft: Draft, message: str) -> bool:
    same = not draft.subject.is_user and same_entity(before.subject, draft.subject)
    fits = len(before.content) + len(draft.content) < LONGEST_JOINED
    gap = draft.start - before.end
    contrast = gap <= 2 and _DENIED.search(before.content) is not None
    replaced = before.ended and (contrast or (draft.succeeding and gap < 16))
    one_person = before.subject.is_user and draft.subject.is_user
    if _is_set_off(message, before.end, draft.start) and not draft.pointing:
        return False
    continued = draft.linked and _SENTENCE.search(message, before.end, draft.start) is None
    return fits and (same or draft.pointing or continued or (replaced and one_person))


def is_end(clause: Clause) -> bool:
    """Say whether a clause says that something is over: `no longer`, `anymore`, `stopped`, `sold`."""
    lows = {token.low for token in clause.tokens}
    verbs = {verb_lemma(token.low) for token in clause.verbs[:1]}
    over = "anymore" in lows or {"no", "longer"} <= lows
    return over or bool(verbs & (lx.CEASING | lx.LOSING)) or ("give" in verbs and "up" in lows)


def is_successor(clause: Clause) -> bool:
    """Say whether a clause says what came in the place of something."""
    verbs = {verb_lemma(token.low) for token in clause.verbs}
    return bool(verbs & _SUCCEEDING) or any(token.low in {"now", "instead"} for token in clause.tokens)


def _merged(first: str, second: str) -> str:
    """Join two sentences: with the same subject `A is b.` and `A does c.` to `A is b and does c.`"""
    one, two = parse(first), parse(second)
    alone = len(two) == 1 and bool(two[0].group) and not two[0].lead and len(one) <= 2 and bool(one)
    if not alone or not same_entity(entity_of(one[0].subject), entity_of(two[0].subject)):
        return f"{first} {second}"
    predicate = second[two[0].group[0].start :]
    return f"{first.rstrip('.')}{',' if ' and ' in first else ''} and {predicate}"


def _without_denials(drafts: list[Draft]) -> list[Draft]:
    """Drop `is not a` where the same message says `is b` of the same attribute."""
    said = [claims_of(draft.content) for draft in drafts]
    return [
        draft
        for number, draft in enumerate(drafts)
        if not _replaced(
            said[number], [claim for found in said[:number] + said[number + 1 :] for claim in found]
        )
    ]


def _replaced(claims: list[Claim], others: list[Claim]) -> bool:
    denied = [claim for claim in claims if not claim.positive and claim.single]
    return bool(denied) and all(any(_answers(other, claim) for other in others) for claim in denied)


def _answers(other: Claim, denied: Claim) -> bool:
    homes = {"residence", "dwelling", "place"}
    same = other.attribute == denied.attribute or {other.attribute, denied.attribute} <= homes
    return other.positive and same and same_entity(other.subject, denied.subject)
