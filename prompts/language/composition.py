"""Memories from messages: third person, pronouns and dates resolved, each with the words it rests on."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from prompts.language import lexicon as lx
from prompts.language.attributes import Claim
from prompts.language.claims import claims_of
from prompts.language.coreference import PRONOUNS, Mention, antecedent, mentions_of
from prompts.language.corrections import corrected
from prompts.language.dates import absolute, parse_time
from prompts.language.entities import USER, Entity, canonical, entity_of, same_entity
from prompts.language.grammar import Clause, parse
from prompts.language.relevance import is_naming
from prompts.language.statements import Statement, read
from prompts.language.words import Token, inflect, verb_form, verb_lemma

CONTEXT = 12
"""Earlier turns that are read for what pronouns mean."""

_ATTACHED = lx.bag("/ . , ; : ! ? ) ] % 's n't 're 've 'll 'm 'd '")
_OPENING = frozenset(["/", "(", "[", "$", "€"])
_LEFT_OUT = lx.bag(
    "now actually currently already just also still really honestly basically literally fyi btw"
)


LONGEST_JOINED = 500
"""Characters up to which statements about one subject are made one memory."""


_DENIED = re.compile(r"\b(?:no longer|anymore)\b")
_SUCCEEDING = frozenset(["switch", "move", "join", "transfer"])
_OWN = lx.bag("kid child baby dog cat wife husband puppy kitten twin boy girl parent in-law")
_SPELT = {
    "me": "the user", "us": "the user", "myself": "themselves", "ourselves": "themselves",
    "'m": "is", "'re": "are", "'ve": "have", "'ll": "will",
}  # fmt: skip
_AT = {"in": "in", "at": "at", "to": "in", "from": "in", "near": "near", "on": "on"}
_NAMES = lx.FIRST_NAMES["male"] | lx.FIRST_NAMES["female"]
_LITTLE = frozenset(["boy", "girl", "one", "family", "team", "crew"])


@dataclass(frozen=True)
class Fact:
    """One memory to be: its words, the span of the message it rests on, whether it is an event."""

    content: str
    quote: str
    episodic: bool


@dataclass(frozen=True)
class _Draft:
    subject: Entity
    content: str
    start: int
    end: int
    episodic: bool
    ended: bool = False  # whether it says that something is over
    succeeding: bool = False  # whether it says what came instead
    pointing: bool = False  # whether a pronoun for what the draft before introduced is its subject


def compose(message: str, preceding: Sequence[str], time: str) -> list[Fact]:
    """Return the memories that a message gives, in the order of its statements."""
    reading = read(message)
    writer = _Writer(parse_time(time))
    writer.hear(preceding)
    drafts = [draft for statement in reading.statements if (draft := writer.draft(statement)) is not None]
    drafts = _joined(_without_denials(drafts))
    facts = [Fact(draft.content, message[draft.start : draft.end], draft.episodic) for draft in drafts]
    return _of_fragment(message, preceding, time, exact=bool(facts)) or facts


def _of_fragment(message: str, preceding: Sequence[str], time: str, *, exact: bool) -> list[Fact]:
    """Read `Thursday, not Tuesday` as a correction of what was said before (`exact`: of these very words)."""
    found = corrected(message, preceding)
    if found is None or (exact and not found.exact):
        return []
    facts = compose(found.said, preceding[: found.turn], time)
    return [Fact(fact.content, found.quote, fact.episodic) for fact in facts if found.value in fact.content]


def worth_storing(message: str, preceding: Sequence[str], time: str = "") -> tuple[bool, str]:
    """Say whether a message gives a memory, and why or why not."""
    facts = compose(message, preceding, time)
    if facts:
        return True, f"The user states: {facts[0].content}"
    return False, f"Nothing to remember: {read(message).dropped}."


class _Writer:
    """Write statements one after another; each one's mentions serve the pronouns after it."""

    def __init__(self, today: date | None) -> None:
        self.mentions = list[Mention]()
        self.introduced = list[Entity]()  # what the draft before came to have
        self.subject = USER
        self.today = today

    def hear(self, preceding: Sequence[str]) -> None:
        """Note whom and what earlier turns mention."""
        for turn in preceding[-CONTEXT:]:
            speaker, _, said = turn.partition(":")
            words = said if speaker.strip().lower() in {"user", "assistant"} else turn
            for clause in parse(words.strip()[:4000]):
                self._note(clause, earlier=True, by_user=speaker.strip().lower() != "assistant")

    def draft(self, statement: Statement) -> _Draft | None:
        """Return the memory of one statement; nothing where it is not kept or a pronoun stays open."""
        clause, pointing = statement.clause, self._points_back(statement)
        found, words = (None, "") if statement.reason else self._subject(statement)
        introduced = self._note(clause)
        self.subject = found or USER
        content = self._sentence(statement, found, words) if found is not None else ""
        self.introduced = introduced or (self.introduced if pointing else [])
        if not content:
            return None
        ended, succeeding = _is_end(clause), _is_successor(clause)
        place = self._start(clause), clause.end
        return _Draft(self.subject, content, *place, _is_event(clause), ended, succeeding, pointing)

    def _points_back(self, statement: Statement) -> bool:
        if not statement.subject or statement.subject[0].low not in PRONOUNS:
            return False
        meant = antecedent(statement.subject[0].low, self.mentions)
        return meant is not None and any(same_entity(meant.entity, known) for known in self.introduced)

    def _note(self, clause: Clause, *, earlier: bool = False, by_user: bool = True) -> list[Entity]:
        """Add a clause's mentions with the words for them; return those that somebody came to have."""
        introduced = list[Entity]()
        for mention in mentions_of(clause):
            if not by_user and self._is_exclamation(mention):
                continue
            mine = mention.acquired and (not clause.subject or entity_of(clause.subject).is_user)
            entity = replace(mention.entity, owner=mention.entity.owner or "user") if mine else mention.entity
            text = _as_known(self._words(mention.tokens, subject_is_user=False), mine)
            place = -1 if earlier else mention.tokens[-1].end
            self.mentions.append(replace(mention, entity=entity, text=text, place=place, by_user=by_user))
            introduced += [entity] if mention.acquired else []
        return introduced

    def _is_exclamation(self, mention: Mention) -> bool:
        """Say whether a capital that opens the assistant's sentence is no name (`Congrats on …`)."""
        entity = mention.entity
        known = entity.name in _NAMES or any(same_entity(other.entity, entity) for other in self.mentions)
        return bool(entity.name) and not entity.head and mention.tokens[0].start == 0 and not known

    def _start(self, clause: Clause) -> int:
        kept = [t for t in clause.tokens if t.tag not in {"CC", "PUNCT", "UH"} and t.low not in _LEFT_OUT]
        return min((token.start for token in kept), default=clause.start)

    def _subject(self, statement: Statement) -> tuple[Entity | None, str]:
        tokens = statement.subject
        if is_naming(statement.clause) or not tokens:
            return USER, "The user"
        pronoun = tokens[0].low
        if pronoun in PRONOUNS:
            meant = antecedent(pronoun, self.mentions)
            if meant is None:
                return None, ""
            if len(tokens) == 1:
                return meant.entity, meant.text
        if tokens[0].low in {"me", "i"} or _is_first_person(tokens):
            return USER, self._words(tokens, subject_is_user=False)
        return entity_of(tokens), self._words(tokens, subject_is_user=False)

    def _sentence(self, statement: Statement, subject: Entity, words: str) -> str:
        """Return the statement as a sentence in the third person; nothing where a pronoun stays open."""
        clause = statement.clause
        if is_naming(clause):
            name = clause.rest[-1].text if clause.rest else clause.tokens[-1].text
            return f"The user goes by {name}."
        if any(self._is_open(token) for token in clause.rest):
            return ""
        several = " and " in words
        predicate = self._predicate(clause, subject.is_user and not several, subject.is_user)
        closing = "," if any(token.text == "," for token in statement.subject) else ""
        return _capital(f"{self._lead(clause)}{words}{closing} {predicate}".strip()).rstrip(" ,;:-—*") + "."

    def _is_open(self, token: Token) -> bool:
        pronoun = token.low in PRONOUNS and token.tag in {"PRP", "PRPO", "PRP$"}
        if not pronoun:
            return False
        meant = antecedent(token.low, self.mentions, token.start)
        return meant is None or (token.low == "it" and not meant.by_user)

    def _lead(self, clause: Clause) -> str:
        """Keep a fronted adjunct (`In May,`), drop discourse words."""
        adjunct = [t for t in clause.lead if t.tag not in {"CC", "UH"} and t.low not in _LEFT_OUT]
        while adjunct and adjunct[0].tag == "PUNCT":
            adjunct = adjunct[1:]
        if not any(
            token.tag in {"IN", "SUB", "NN", "NNP", "RB", "V"} for token in adjunct
        ) or not _opens_adjunct(adjunct):
            return ""
        return self._words(adjunct, subject_is_user=False).rstrip(" ,") + ", "

    def _predicate(self, clause: Clause, agree: bool, user: bool) -> str:
        group = _plain([token for token in clause.group if token.low not in _LEFT_OUT])
        group, corrected_rest = _affirmed(group, list(clause.rest))
        rest = _without_tail(
            [t for n, t in enumerate(corrected_rest) if t.tag != "UH" and not _is_left_out(corrected_rest, n)]
        )
        words = self._words([*group, *rest], subject_is_user=user, agree=agree)
        if len(rest) == 1 and _is_be(clause.verbs) and self._is_age(rest[0]):
            words += " years old"
        return words

    def _is_age(self, token: Token) -> bool:
        living = self.subject.is_user or self.subject.name or self.subject.head in lx.PEOPLE | lx.ANIMALS
        return bool(living) and token.tag == "CD" and token.lemma.isdigit() and int(token.lemma) < 120

    def _words(self, tokens: Sequence[Token], *, subject_is_user: bool, agree: bool = False) -> str:
        """Render tokens in the third person."""
        out, number = list[str](), 0
        while number < len(tokens):
            dated = absolute(tokens, number, self.today) if self.today is not None else None
            if dated is not None:
                out.append(_after_preposition(out[-1].lower() if out else "", dated[0]))
                number += dated[1]
                continue
            word, agree = self._word(tokens, number, subject_is_user, agree)
            out.append(word)
            number += 1
        return _spaced(out).replace("willn't", "won't").replace("shalln't", "shan't")

    def _word(
        self, tokens: Sequence[Token], number: int, subject_is_user: bool, agree: bool
    ) -> tuple[str, bool]:
        """Return a token's third-person word, and whether the next verb still has to agree with the user."""
        token, low = tokens[number], tokens[number].low
        if any(near.text == "/" for near in tokens[max(0, number - 1) : number + 2]):
            return token.text, agree
        if low in {"i", "we"} and token.tag == "PRP":
            return "the user", True
        if low in {"my", "our"} and token.tag == "PRP$":
            return ("their" if subject_is_user and _is_thing(tokens, number) else "the user's"), agree
        if low in PRONOUNS and token.tag in {"PRP", "PRPO", "PRP$"}:
            named = number + 1 < len(tokens) and tokens[number + 1].low == "name"
            return self._resolved(token, nameless=named), agree
        if agree and token.tag == "VF":
            return _third_person(token), False
        return self._plain_word(tokens, number), agree

    def _plain_word(self, tokens: Sequence[Token], number: int) -> str:
        """Return the word for a token that is no pronoun before a noun or verb."""
        token, low = tokens[number], tokens[number].low
        before = tokens[number - 1] if number else None
        if low in {"mine", "ours"}:
            heads = [
                mention.entity.head for mention in self.mentions if mention.subject and mention.entity.head
            ]
            return f"the user's {heads[-1] if heads else 'own'}"
        if low in lx.BARE_KIN and (before is None or before.tag not in {"DT", "PRP$", "POS", "JJ"}):
            return f"the user's {low}"
        if low == "the" and self._is_own(tokens, number):
            return "the user's"
        if low == "there" and before is not None:
            return self._place(token)
        if low == "'s" and token.tag == "VF":
            return _spelt_out(tokens[number + 1 :])
        return (
            "not"
            if low == "n't" and before is not None and before.low == "can"
            else _SPELT.get(low, token.text)
        )

    def _is_own(self, tokens: Sequence[Token], number: int) -> bool:
        """Say whether `the kids` or `the dog`, not mentioned before, can only be the user's own."""
        following = tokens[number + 1] if number + 1 < len(tokens) else None
        after = tokens[number + 2] if number + 2 < len(tokens) else None
        if (
            following is None
            or following.lemma not in _OWN
            or (after is not None and after.low in {"of", "'s", "'"})
        ):
            return False
        return not any(mention.entity.head == canonical(following.lemma) for mention in self.mentions[:-1])

    def _place(self, token: Token) -> str:
        """Return the place that `there` means."""
        places = [
            m for m in self.mentions if m.before in _AT and m.place <= token.start and m.genders == {"thing"}
        ]
        return f"{_AT[places[-1].before]} {places[-1].text}" if places else token.text

    def _resolved(self, token: Token, *, nameless: bool = False) -> str:
        """Return the words for a pronoun; without a name before `name` itself (`his name is …`)."""
        meant = antecedent(token.low, self.mentions, token.start)
        possessive = token.tag == "PRP$" or token.low == "his"
        if meant is None or (possessive and same_entity(meant.entity, self.subject)):
            return token.text
        words = meant.text
        if nameless and meant.entity.name and meant.entity.head:
            words = " ".join(word for word in words.split() if word.lower() not in meant.entity.name.split())
        return f"{words}'s" if possessive else words


def _is_thing(tokens: Sequence[Token], number: int) -> bool:
    """Say whether a possessive is before a thing rather than a person or animal."""
    phrase = list[Token]()
    for token in tokens[number + 1 :]:
        if token.tag not in {"JJ", "NN", "NNP", "CD", "RB"}:
            break
        phrase.append(token)
    heads = {token.lemma for token in phrase}
    named = (
        bool(phrase)
        and all(token.low in _NAMES for token in phrase if token.tag == "NNP")
        and phrase[0].tag == "NNP"
    )
    return not heads & (lx.PEOPLE | lx.ANIMALS | _LITTLE) and not named


def _as_known(text: str, mine: bool) -> str:
    """Say `a dog named Max` as something known: `the user's dog Max`, else `Max` or `the dog`."""
    article, _, rest = text.partition(" ")
    if article.lower() not in {"a", "an"} or not rest:
        return text
    noun, named, name = rest.replace(" called ", " named ").partition(" named ")
    if mine:
        return f"the user's {noun} {name}".strip()
    return name if named else f"the {noun}"


def _is_first_person(tokens: Sequence[Token]) -> bool:
    return any(token.low in {"i", "me"} for token in tokens) and any(token.tag == "CC" for token in tokens)


def _third_person(token: Token) -> str:
    low = token.low
    if low == "been":
        return "has been"
    if low in {"am", "'m", "are", "'re"}:
        return "is"
    if low in {"have", "'ve"}:
        return "has"
    fixed = {"do": "does", "were": "was", "'ll": "will", "'d": "would"}
    if low in fixed:
        return fixed[low]
    if (
        low in lx.MODALS
        or verb_form(low) != "VB"
        or low in {"quit", "put", "cut", "hit", "let", "set", "had", "was"}
    ):
        return token.text
    return inflect(verb_lemma(low), "VBZ")


def _spelt_out(following: Sequence[Token]) -> str:
    """Return whether `'s` stands for `is` or `has`."""
    after = next((token.low for token in following if token.tag not in {"RB", "NEG"}), "")
    return "has" if after in lx.INTRANSITIVE_PERFECT else "is"


def _affirmed(group: list[Token], rest: list[Token]) -> tuple[list[Token], list[Token]]:
    """Read `is not a Honda but a Mazda` as `is a Mazda`."""
    but = next((n for n, token in enumerate(rest) if token.low == "but"), None)
    if but is None or not any(token.tag == "NEG" for token in group):
        return group, rest
    return [token for token in group if token.tag != "NEG" and token.low not in lx.DO], rest[but + 1 :]


def _plain(group: list[Token]) -> list[Token]:
    """Read `do like` as `like`."""
    emphatic = len(group) > 1 and group[0].low in {"do", "does"} and group[1].tag == "V"
    return [group[1].tagged("VF"), *group[2:]] if emphatic else group


def _is_left_out(tokens: Sequence[Token], number: int) -> bool:
    """Say whether a word only marks the talk (`actually`, `now`); not so in `from now on`."""
    before = tokens[number - 1].low if number else ""
    return tokens[number].low in _LEFT_OUT and before != "from"


def _without_tail(tokens: list[Token]) -> list[Token]:
    """Drop a closing `, not a purebred`, `not the 12th`, `by the way`."""
    for number, token in enumerate(tokens):
        if token.tag == "NEG" and number and token.low == "not":
            return tokens[:number]
    return tokens


def _opens_adjunct(tokens: Sequence[Token]) -> bool:
    first = tokens[0]
    if first.low in {"being", "as"}:
        return True
    time = any(token.low.rstrip("s") in lx.TIME_NOUNS or token.tag == "CD" for token in tokens)
    return time and first.tag in {"IN", "SUB", "NN", "NNP", "DT", "JJ", "CD", "RB"}


def _is_be(verbs: Sequence[Token]) -> bool:
    return bool(verbs) and verbs[-1].low in lx.BE | {"'s"}


def _after_preposition(before: str, dated: str) -> str:
    """Drop a date's own preposition after one that stays (`until in 2025`, `on on 2026-11-20`)."""
    own = dated.split(" ", 1)[0]
    governs = before in {"on", "since", "by", "from", "until", "till", "before", "after"} or before == own
    return dated.removeprefix("on ").removeprefix("in ") if governs else dated


def _spaced(words: Sequence[str]) -> str:
    text = ""
    for word in words:
        glue = "" if not text or word in _ATTACHED or text[-1] in _OPENING else " "
        text += glue + word
    return text


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _is_event(clause: Clause) -> bool:
    """Say whether a clause tells a dated or one-off event rather than a standing fact."""
    main = clause.verbs[-1] if clause.verbs else None
    if main is None:
        return False
    dated = any(
        token.low.rstrip("s") in lx.TIME_NOUNS or token.low in {"ago", "yesterday", "tomorrow"}
        for token in clause.tokens
    )
    recurring = any(
        token.low in {"every", "each", "usually", "always", "birthday", "since"} or token.low.endswith("days")
        for token in clause.tokens
    )
    past = verb_form(main.low) == "VBD" and not any(token.low == "used" for token in clause.group)
    return (dated and not recurring) or (past and verb_lemma(main.low) not in {"be", "have", "like", "love"})


def _joined(drafts: list[_Draft]) -> list[_Draft]:
    """Make one memory of neighbouring statements about the same person, animal or thing of the user's."""
    joined = list[_Draft]()
    for draft in drafts:
        before = joined[-1] if joined else None
        if before is not None and _belongs(before, draft):
            joined[-1] = _Draft(
                before.subject, _merged(before.content, draft.content), before.start, draft.end,
                before.episodic,
            )  # fmt: skip
        else:
            joined.append(draft)
    return joined


def _belongs(before: _Draft, draft: _Draft) -> bool:
    same = not draft.subject.is_user and same_entity(before.subject, draft.subject)
    fits = len(before.content) + len(draft.content) < LONGEST_JOINED
    gap = draft.start - before.end
    contrast = gap <= 2 and _DENIED.search(before.content) is not None
    replaced = before.ended and (contrast or (draft.succeeding and gap < 16))
    one_person = before.subject.is_user and draft.subject.is_user
    return fits and (same or draft.pointing or (replaced and one_person))


def _is_end(clause: Clause) -> bool:
    """Say whether a clause says that something is over: `no longer`, `anymore`, `stopped`, `sold`."""
    lows = {token.low for token in clause.tokens}
    verbs = {verb_lemma(token.low) for token in clause.verbs[:1]}
    over = "anymore" in lows or {"no", "longer"} <= lows
    return over or bool(verbs & (lx.CEASING | lx.LOSING)) or ("give" in verbs and "up" in lows)


def _is_successor(clause: Clause) -> bool:
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


def _without_denials(drafts: list[_Draft]) -> list[_Draft]:
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
