"""Whom a pronoun means: the people, animals and things mentioned before it."""

from collections.abc import Sequence
from dataclasses import dataclass

from prompts.language import lexicon as lx
from prompts.language.entities import Entity, entity_of, same_entity
from prompts.language.grammar import Clause
from prompts.language.words import Token, verb_lemma

PRONOUNS = {
    "he": "male", "him": "male", "his": "male", "she": "female", "her": "female", "hers": "female",
    "it": "thing", "its": "thing", "they": "many", "them": "many", "their": "many",
}  # fmt: skip
_PHRASE = {"DT", "PRP$", "POS", "JJ", "NN", "NNP", "CD"}
_PLACE = {"in", "at", "to", "from", "near"}


_ACQUIRING = frozenset(["have", "get", "adopt", "buy", "own", "rescue"])
_TIME_OPENERS = frozenset(
    ["last", "next", "this", "every", "each", "yesterday", "today", "tomorrow", "tonight"]
)


@dataclass(frozen=True)
class Mention:
    """A noun phrase that a later pronoun can mean; `acquired` where somebody comes to have it."""

    entity: Entity
    tokens: tuple[Token, ...]
    genders: frozenset[str]
    subject: bool
    oblique: bool
    acquired: bool
    text: str = ""
    by_user: bool = True
    before: str = ""  # the preposition
    place: int = -1  # where it ends in the message; -1 in earlier turns


def mentions_of(clause: Clause) -> list[Mention]:
    """Return the noun phrases of a clause in order; predicate nouns (`is a nurse`) are none."""
    copula = any(verb.low in lx.BE | {"'s", "became", "become"} for verb in clause.verbs[-1:])
    acquiring = any(verb_lemma(verb.low) in _ACQUIRING or verb.low in lx.HAVE for verb in clause.verbs[-1:])
    found = list[Mention | None]()
    for tokens, subject in ((clause.lead, False), (clause.subject, True), (clause.rest, False)):
        predicate = tokens is clause.rest
        for before, phrase in _phrases(tokens):
            found.append(_mention(_owner_phrase(phrase), before or "of", False, False))
            if not (copula and predicate and not before):
                found.append(_mention(phrase, before, subject, acquiring and predicate and not before))
    return [mention for mention in found if mention is not None]


def _owner_phrase(phrase: Sequence[Token]) -> list[Token]:
    """Return `my brother` of `my brother's wife`; nothing where nobody owns."""
    owns = max((number for number, token in enumerate(phrase) if token.tag == "POS"), default=0)
    return list(phrase[:owns])


def _phrases(tokens: Sequence[Token]) -> list[tuple[str, list[Token]]]:
    """Return the noun phrases, each with the preposition before it."""
    found, current, before = list[tuple[str, list[Token]]](), list[Token](), ""
    for number, token in enumerate(tokens):
        called = _joins_names(tokens, number) or (token.low in {"named", "called"} and bool(current))
        timed = token.low in _TIME_OPENERS
        starts_anew = (token.tag in {"PRP$", "DT"} or timed) and any(t.tag in {"NN", "NNP"} for t in current)
        if (token.tag in _PHRASE or called) and not starts_anew:
            current.append(token)
            continue
        if current:
            found.append((before, current))
        current = [token] if starts_anew and not timed else []
        before = token.low if token.tag in {"IN", "TO"} else ""
    return [*found, (before, current)] if current else found


def _joins_names(tokens: Sequence[Token], number: int) -> bool:
    """Say whether `and` stands between two names (`Ken and Barb`)."""
    inside = tokens[number].low == "and" and 0 < number < len(tokens) - 1
    return inside and tokens[number - 1].tag == tokens[number + 1].tag == "NNP"


def _mention(phrase: list[Token], before: str, subject: bool, acquired: bool) -> Mention | None:
    if not any(token.tag in {"NN", "NNP"} for token in phrase) or phrase[-1].low.rstrip("s") in lx.TIME_NOUNS:
        return None
    entity = entity_of(phrase)
    if entity.is_user or not (entity.name or entity.head):
        return None
    return Mention(
        entity, tuple(phrase), genders_of(entity, before), subject, bool(before), acquired, before=before
    )


def genders_of(entity: Entity, before: str = "") -> frozenset[str]:
    """Return by which pronouns something can be meant: male, female, thing, many."""
    first = entity.name.split()[0] if entity.name else ""
    person = entity.head in lx.PEOPLE | lx.PROFESSIONS
    bare_name = bool(first) and not entity.head and before not in _PLACE
    cases = (
        (entity.plural, {"many"}),
        (entity.head in lx.MALE & lx.FEMALE, {"male", "female"}),
        (entity.head in lx.MALE, {"male", "many"}),
        (entity.head in lx.FEMALE, {"female", "many"}),
        (entity.head in lx.ANIMALS, {"male", "female", "thing"}),
        (bare_name or (person and bool(first)), _of_name(first)),
        (person, {"male", "female", "many"}),
    )
    return frozenset(next((genders for fits, genders in cases if fits), {"thing"}))


def _of_name(first: str) -> frozenset[str]:
    if first in lx.FIRST_NAMES["male"] and first not in lx.FIRST_NAMES["female"]:
        return frozenset({"male", "many"})
    if first in lx.FIRST_NAMES["female"] and first not in lx.FIRST_NAMES["male"]:
        return frozenset({"female", "many"})
    return frozenset({"male", "female", "thing", "many"})


def antecedent(pronoun: str, mentions: Sequence[Mention], before: int | None = None) -> Mention | None:
    """Return what a pronoun most likely means: the latest fitting subject, else the latest fitting phrase.

    With `before`, only what is mentioned before that place of the message.
    """
    wanted = PRONOUNS.get(pronoun)
    if wanted is None:
        return None
    near = [m for m in mentions[-60:] if before is None or m.place <= before]
    recent = [mention for mention in near if wanted in mention.genders]
    if wanted == "many":
        recent = [mention for mention in recent if mention.genders == {"many"}] or recent
    if not recent:
        return None
    known = [m for m in recent if not any(_is_place(other, m) for other in near)] or recent
    ranked = enumerate(known[-5:])
    return _fullest(max(ranked, key=lambda one: one[0] + _salience(one[1]))[1], near)


def _is_place(other: Mention, mention: Mention) -> bool:
    """Say whether the same bare name was mentioned as a place (`in Oslo`)."""
    return (
        other.genders == {"thing"}
        and not other.entity.head
        and other.entity.name == mention.entity.name
        and (mention.genders != {"thing"})
    )


def _salience(mention: Mention) -> float:
    vague = len(mention.genders) > 3
    return 1.5 * mention.subject - 1.0 * vague + 0.5 * bool(mention.entity.owner) - 1.2 * mention.oblique


def _fullest(mention: Mention, mentions: Sequence[Mention]) -> Mention:
    """Return the mention of the same entity that says most about it."""
    same = [other for other in mentions[-60:] if same_entity(other.entity, mention.entity)]
    return max(same, key=lambda other: (bool(other.entity.owner), bool(other.entity.name)), default=mention)
