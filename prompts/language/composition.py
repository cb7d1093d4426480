"""Memories from messages: third person, pronouns and dates resolved, each with the words it rests on."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from prompts.language import lexicon as lx
from prompts.language.claims import Claim, claims_of
from prompts.language.coreference import PRONOUNS, Mention, antecedent, mentions_of
from prompts.language.dates import absolute, parse_time
from prompts.language.entities import Entity, entity_of, same_entity
from prompts.language.grammar import Clause, parse
from prompts.language.statements import Statement, is_naming, read
from prompts.language.words import Token, inflect, verb_form, verb_lemma

CONTEXT = 12
"""Earlier turns that are read for what pronouns mean."""

_ATTACHED = lx.bag(". , ; : ! ? ) ] % 's n't 're 've 'll 'm 'd '")
_OPENING = frozenset(["(", "[", "$", "€"])
_LEFT_OUT = lx.bag(
    "now actually currently already just also still really honestly basically literally fyi btw"
)


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


def compose(message: str, preceding: Sequence[str], time: str) -> list[Fact]:
    """Return the memories that a message gives, in the order of its statements."""
    reading = read(message)
    writer = _Writer(_context(preceding), parse_time(time))
    drafts = [draft for statement in reading.statements if (draft := writer.draft(statement)) is not None]
    drafts = _without_denials(_joined(drafts))
    return [Fact(draft.content, message[draft.start : draft.end], draft.episodic) for draft in drafts]


def worth_storing(message: str, preceding: Sequence[str], time: str = "") -> tuple[bool, str]:
    """Say whether a message gives a memory, and why or why not."""
    facts = compose(message, preceding, time)
    if facts:
        return True, f"The user states: {facts[0].content}"
    return False, f"Nothing to remember: {read(message).dropped}."


def _context(preceding: Sequence[str]) -> list[Mention]:
    found = list[Mention]()
    for turn in preceding[-CONTEXT:]:
        speaker, _, said = turn.partition(":")
        user = speaker.strip().lower() != "assistant"
        words = said if speaker.strip().lower() in {"user", "assistant"} else turn
        found.extend(mentions_of(parse(words.strip()[:4000]), by_user=user))
    return found


class _Writer:
    """Write statements one after another; each one's mentions serve the pronouns after it."""

    def __init__(self, mentions: list[Mention], today: date | None) -> None:
        self.mentions = mentions
        self.today = today
        self.named = list[Entity]()  # entities that the memory being written has introduced

    def draft(self, statement: Statement) -> _Draft | None:
        """Return the memory of one statement; nothing where a pronoun stays open."""
        clause = statement.clause
        subject, subject_words = self._subject(statement)
        if subject is None:
            return None
        agree = subject.is_user or (not statement.subject)
        content = self._sentence(clause, subject_words, agree and " and " not in subject_words)
        self.mentions.extend(mentions_of([clause]))
        start = self._start(clause)
        return _Draft(subject, content, start, clause.end, _is_event(clause, content))

    def _start(self, clause: Clause) -> int:
        kept = [t for t in clause.tokens if t.tag not in {"CC", "PUNCT", "UH"} and t.low not in _LEFT_OUT]
        return kept[0].start if kept else clause.start

    def _subject(self, statement: Statement) -> tuple[Entity | None, str]:
        tokens = statement.subject
        if is_naming(statement.clause) or not tokens:
            return entity_of(()), "The user"
        pronoun = tokens[0].low
        if len(tokens) == 1 and pronoun in PRONOUNS:
            meant = antecedent(pronoun, self.mentions)
            if meant is None:
                return None, ""
            return meant.entity, self._mentioned(meant)
        return entity_of(tokens), self._words(tokens, subject_is_user=False)

    def _mentioned(self, mention: Mention) -> str:
        """Return the words for what a pronoun means."""
        words = self._words(_definite(mention.tokens), subject_is_user=False)
        if words.startswith(("a ", "an ")):
            words = mention.entity.name.title() or "the " + words.split(" ", 1)[1]
        return words

    def _sentence(self, clause: Clause, subject: str, agree: bool) -> str:
        user = subject.lower() in {"the user", "i", "we"}
        if is_naming(clause):
            name = clause.rest[-1].text if clause.rest else clause.tokens[-1].text
            return f"The user goes by {name}."
        predicate = self._predicate(clause, agree, user)
        lead = self._lead(clause)
        words = f"{lead}{subject} {predicate}".strip()
        return _capital(words).rstrip(" ,;:-—") + "."

    def _lead(self, clause: Clause) -> str:
        """Keep a fronted adjunct (`In May,`), drop discourse words."""
        adjunct = [t for t in clause.lead if t.tag not in {"CC", "UH"} and t.low not in _LEFT_OUT]
        while adjunct and adjunct[0].tag == "PUNCT":
            adjunct = adjunct[1:]
        if not any(token.tag in {"IN", "SUB", "NN", "NNP"} for token in adjunct) or not _opens_adjunct(
            adjunct
        ):
            return ""
        return self._words(adjunct, subject_is_user=False).rstrip(" ,") + ", "

    def _predicate(self, clause: Clause, agree: bool, user: bool) -> str:
        group = [token for token in clause.group if token.low not in _LEFT_OUT]
        rest = _without_tail(
            [token for token in clause.rest if token.tag != "UH" and token.low not in _LEFT_OUT]
        )
        words = self._words([*group, *rest], subject_is_user=user, agree=agree)
        if len(rest) == 1 and rest[0].tag == "CD" and rest[0].lemma.isdigit() and _is_be(clause.verbs):
            words += " years old"
        return words

    def _words(self, tokens: Sequence[Token], *, subject_is_user: bool, agree: bool = False) -> str:
        """Render tokens in the third person."""
        out, number = list[str](), 0
        while number < len(tokens):
            dated = absolute(tokens, number, self.today) if self.today is not None else None
            if dated is not None:
                if out and out[-1] in {"on", "since", "by", "from"}:
                    dated = dated[0].removeprefix("on "), dated[1]
                out.append(dated[0])
                number += dated[1]
                continue
            word, agree = self._word(tokens, number, subject_is_user, agree)
            out.append(word)
            number += 1
        return _spaced(out)

    def _word(
        self, tokens: Sequence[Token], number: int, subject_is_user: bool, agree: bool
    ) -> tuple[str, bool]:
        token, low = tokens[number], tokens[number].low
        if low in {"i", "we"} and token.tag == "PRP":
            return "the user", True
        if low in {"me", "us"}:
            return "the user", agree
        if low in {"my", "our"} and token.tag == "PRP$":
            return ("their" if subject_is_user and _is_thing(tokens, number) else "the user's"), agree
        if low in {"mine", "ours"}:
            return "the user's", agree
        if low in {"myself", "ourselves"}:
            return "themselves", agree
        if low in PRONOUNS and token.tag in {"PRP", "PRPO", "PRP$"}:
            return self._resolved(token), agree
        if agree and token.tag == "VF":
            return _third_person(token), False
        if low == "n't" and number and tokens[number - 1].low == "can":
            return "not", agree
        return {"'m": "is", "'re": "are", "'ve": "have", "'ll": "will"}.get(low, token.text), agree

    def _resolved(self, token: Token) -> str:
        meant = antecedent(token.low, self.mentions)
        if meant is None:
            return token.text
        words = self._mentioned(meant)
        possessive = token.tag == "PRP$" or token.low == "his"
        return f"{words}'s" if possessive else words


def _is_thing(tokens: Sequence[Token], number: int) -> bool:
    phrase = list[Token]()
    for token in tokens[number + 1 :]:
        if token.tag not in {"JJ", "NN", "NNP", "CD", "RB"}:
            break
        phrase.append(token)
    heads = {token.lemma for token in phrase}
    return not heads & (lx.PEOPLE | lx.ANIMALS) and not any(token.tag == "NNP" for token in phrase)


def _definite(tokens: Sequence[Token]) -> list[Token]:
    """Cut a mention after its name or noun."""
    return list(tokens)


def _third_person(token: Token) -> str:
    low = token.low
    if low in {"am", "'m", "are", "'re", "'s"}:
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


def _without_tail(tokens: list[Token]) -> list[Token]:
    """Drop a closing `, not a purebred`, `by the way`, `you know`."""
    for number, token in enumerate(tokens):
        if token.text == "," and number + 1 < len(tokens) and tokens[number + 1].tag == "NEG":
            return tokens[:number]
        if token.low == "by" and [t.low for t in tokens[number : number + 3]] == ["by", "the", "way"]:
            return tokens[:number]
    return tokens


def _opens_adjunct(tokens: Sequence[Token]) -> bool:
    first = tokens[0]
    time = any(token.low.rstrip("s") in lx.TIME_NOUNS or token.tag == "CD" for token in tokens)
    return time and first.tag in {"IN", "SUB", "NN", "NNP", "DT", "JJ", "CD", "RB"}


def _is_be(verbs: Sequence[Token]) -> bool:
    return bool(verbs) and verbs[-1].low in lx.BE | {"'s"}


def _spaced(words: Sequence[str]) -> str:
    text = ""
    for word in words:
        glue = "" if not text or word in _ATTACHED or text[-1] in _OPENING else " "
        text += glue + word
    return text


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _is_event(clause: Clause, content: str) -> bool:
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
    """Make one memory of neighbouring statements about the same named person, animal or thing."""
    joined = list[_Draft]()
    for draft in drafts:
        before = joined[-1] if joined else None
        if before is not None and not draft.subject.is_user and same_entity(before.subject, draft.subject):
            joined[-1] = _Draft(
                before.subject, _merged(before.content, draft.content), before.start, draft.end,
                before.episodic and draft.episodic,
            )  # fmt: skip
        else:
            joined.append(draft)
    return joined


def _merged(first: str, second: str) -> str:
    """Join two sentences with the same subject: `A is b.` and `A does c.` to `A is b and does c.`"""
    one, two = parse(first), parse(second)
    if len(two) != 1 or not two[0].group or two[0].lead or len(one) > 2:
        return f"{first} {second}"
    predicate = second[two[0].group[0].start :]
    return f"{first.rstrip('.')}{',' if ' and ' in first else ''} and {predicate}"


def _without_denials(drafts: list[_Draft]) -> list[_Draft]:
    """Drop `is not a` where the same message says `is b` of the same attribute."""
    said = [claims_of(draft.content) for draft in drafts]
    return [
        draft for number, draft in enumerate(drafts)
        if not _replaced(said[number], [claim for n, found in enumerate(said) if n != number for claim in found])
    ]  # fmt: skip


def _replaced(claims: list[Claim], others: list[Claim]) -> bool:
    denied = [claim for claim in claims if not claim.positive and claim.single]
    return bool(denied) and all(any(_answers(other, claim) for other in others) for claim in denied)


def _answers(other: Claim, denied: Claim) -> bool:
    return (
        other.positive and other.attribute == denied.attribute and same_entity(other.subject, denied.subject)
    )
