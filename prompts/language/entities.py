"""Who or what a noun phrase means, and whether two phrases can mean the same."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from prompts.language import lexicon as lx
from prompts.language.words import Token

ANYBODY = "?"
"""The owner that a third-person possessive leaves open."""

_EMPTY_MODIFIERS = lx.bag(
    "new old own current former previous young little big dear beloved late favourite-ish upcoming next "
    "last first only good great best same"
) - {"best", "first", "only"}
_CHILDREN = frozenset({"son", "daughter", "child", "baby", "twin"})
_PARTNERS = frozenset({"wife", "husband", "partner"})
_SIBLINGS = frozenset({"brother", "sister", "sibling", "twin"})
_FAMILIES = (_CHILDREN, _PARTNERS, _SIBLINGS, frozenset({"girlfriend", "partner", "fiancee", "wife"}),
             frozenset({"boyfriend", "partner", "fiance", "husband"}))  # fmt: skip


@dataclass(frozen=True)
class Entity:
    """A person, animal or thing: its name, its kind, whose it is."""

    name: str = ""
    head: str = ""
    owner: str = ""
    modifiers: frozenset[str] = field(default_factory=frozenset)
    plural: bool = False

    @property
    def key(self) -> str:
        """Name this entity as an owner of others."""
        return self.name or ".".join(part for part in (self.owner, self.head) if part)

    @property
    def is_user(self) -> bool:
        return self.head == "user"


USER = Entity(head="user")


def canonical(lemma: str) -> str:
    """Return the word that stands for a word and its synonyms."""
    return lx.SYNONYMS.get(lemma, lemma)


def entity_of(tokens: Sequence[Token]) -> Entity:
    """Return who or what a tagged noun phrase means; an empty phrase means the user."""
    core = _core(tokens)
    if not core or (
        any(token.low in {"i", "me", "we", "us", "user"} for token in core[:2]) and not _possessor(core)
    ):
        return USER
    owner, rest = _split_owner(core)
    owner = "user" if not owner and rest and rest[0].low in lx.BARE_KIN else owner
    name = " ".join(token.low for token in _name_tokens(rest))
    nouns = [token for token in rest if token.tag == "NN" and token.low not in {"named", "called"}]
    head = canonical(nouns[-1].lemma) if nouns else _pronoun(rest)
    if head in {"date", "time", "day"} and len(nouns) > 1:
        nouns = nouns[:-1]
        head = canonical(nouns[-1].lemma)
    modifiers = frozenset(
        canonical(token.lemma)
        for token in rest
        if token.tag in {"JJ", "NN", "NNP"} and token.low not in name.split()
    )
    plural = bool(nouns) and nouns[-1].low != nouns[-1].lemma and nouns[-1].low.endswith("s")
    return Entity(name, head, owner, modifiers - {head} - _EMPTY_MODIFIERS, plural)


def _possessor(core: Sequence[Token]) -> bool:
    return any(token.tag == "POS" for token in core[:3])


def _pronoun(rest: Sequence[Token]) -> str:
    return rest[0].low if rest and rest[0].tag in {"PRP", "PRPO"} else ""


def _core(tokens: Sequence[Token]) -> list[Token]:
    """Cut a noun phrase before its apposition, relative clause or adjunct."""
    core = list[Token]()
    for token in tokens:
        stops = token.tag in {"PUNCT", "WH", "TO", "SUB", "VF"} or (token.tag == "IN" and token.low != "of")
        if stops and core:
            break
        if token.tag not in {"PUNCT", "RB", "UH"}:
            core.append(token)
    return core


def _split_owner(core: list[Token]) -> tuple[str, list[Token]]:
    """Return the owner's key and the rest of the phrase."""
    of = next((n for n, token in enumerate(core) if token.low == "of" and 0 < n < len(core) - 1), None)
    if of is not None and core[0].low in {"the", "a"} and not any(token.tag == "POS" for token in core[:of]):
        return entity_of(core[of + 1 :]).key, core[:of]
    for number in range(len(core) - 1, -1, -1):
        if core[number].tag == "POS" and number + 1 < len(core):
            return entity_of(core[:number]).key, core[number + 1 :]
    if core[0].tag != "PRP$":
        return "", core
    return {"my": "user", "our": "user"}.get(core[0].low, ANYBODY), core[1:]


def _name_tokens(rest: Sequence[Token]) -> list[Token]:
    """Return the proper name: the capitals at the end, or alone; capitals before a noun only qualify it."""
    last_noun = max((n for n, token in enumerate(rest) if token.tag == "NN"), default=-1)
    return [token for token in rest[last_noun + 1 :] if token.tag == "NNP"]


def same_entity(one: Entity, other: Entity) -> bool:
    """Say whether two mentions can mean the same person, animal or thing."""
    if one.is_user or other.is_user:
        return one.is_user and other.is_user
    if not _same_owner(one, other):
        return False
    if one.name and other.name:
        return _same_name(one.name, other.name) and (
            not one.head or not other.head or _same_head(one.head, other.head)
        )
    if one.name or other.name:
        return bool(one.head) and _same_head(one.head, other.head) and one.plural == other.plural
    here, there = _qualities(one, other), _qualities(other, one)
    compatible = here <= there or there <= here
    return bool(one.head) and _same_head(one.head, other.head) and compatible


def _same_name(one: str, other: str) -> bool:
    return one == other or set(one.split()) <= set(other.split()) or set(other.split()) <= set(one.split())


def _same_head(one: str, other: str) -> bool:
    return one == other or any(
        one in family and other in family and _general(one, other) for family in _FAMILIES
    )


def _general(one: str, other: str) -> bool:
    return bool({one, other} & {"child", "partner", "sibling", "twin", "baby"})


def _same_owner(one: Entity, other: Entity) -> bool:
    if one.owner == other.owner or ANYBODY in {one.owner, other.owner}:
        return True
    if one.name and other.name:
        return not (one.owner and other.owner) or _owner_alias(one.owner, other.owner)
    return _owner_alias(one.owner, other.owner) or (
        not (one.owner and other.owner) and not _relational(one, other)
    )


def _owner_alias(one: str, other: str) -> bool:
    return bool(one and other) and (one.rsplit(".", maxsplit=1)[-1] == other.rsplit(".", maxsplit=1)[-1])


def _relational(one: Entity, other: Entity) -> bool:
    """Say whether such a thing is always somebody's, so that an unnamed owner is not the same."""
    return bool({one.head, other.head} & (lx.KIN | lx.ANIMALS)) and not (one.name or other.name)


def kind_of(lemmas: frozenset[str]) -> str:
    """Return the animal that a breed belongs to; nothing for other words."""
    return next((animal for animal, breeds in lx.BREEDS.items() if lemmas & breeds), "")


def _qualities(entity: Entity, beside: Entity) -> frozenset[str]:
    """Return the modifiers, the owner too where the other has none (`the deadline of the project`)."""
    owner = (
        frozenset(entity.owner.split(".")) - {"user"} if not beside.owner or not entity.owner else frozenset()
    )
    return entity.modifiers | owner - {""}
