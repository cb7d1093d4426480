"""Predicates: a clause read as verb, arguments, polarity and time."""

from collections.abc import Sequence
from dataclasses import dataclass

from prompts.language import lexicon as lx
from prompts.language.entities import Entity, canonical, entity_of
from prompts.language.grammar import Clause
from prompts.language.words import Token, verb_form, verb_lemma

_TEXT_ONLY = {"NEG", "PUNCT", "DT", "UH", "CC", "PRP$", "POS"}


_NOT_CONTENT = lx.bag(
    "originally mostly now currently anymore longer already just also still really very actually recently "
    "officially finally instead nowadays too these days"
)  # fmt: skip


_PARTICLES = frozenset(["up", "down", "out", "off", "away", "back", "over", "on", "in", "around", "along"])


_PARTICLE_VERBS = frozenset(
    [
        "give away",
        "throw away",
        "throw out",
        "trade in",
        "give up",
        "take up",
        "pick up",
        "call off",
        "cut out",
        "put down",
        "drop out",
        "break up",
        "pass away",
    ]
)


_PLANNING = lx.bag(
    "want plan hope intend decide need wish aim expect go prepare agree promise consider think"
)


_RUNNING_ON = lx.bag("keep continue love like enjoy hate prefer try learn manage dislike")


_TIME_PREPOSITIONS = frozenset(
    ["", "on", "at", "in", "for", "to", "by", "from", "before", "after", "around", "during"]
)


@dataclass(frozen=True)
class Argument:
    """A complement or adjunct: its preposition (or none) and its words."""

    preposition: str
    tokens: tuple[Token, ...]
    opening: Token | None = None

    @property
    def whole_start(self) -> int:
        return self.opening.start if self.opening is not None else self.start

    @property
    def lemmas(self) -> frozenset[str]:
        return content(self.tokens)

    @property
    def start(self) -> int:
        return self.tokens[0].start

    @property
    def end(self) -> int:
        return self.tokens[-1].end


def content(tokens: Sequence[Token]) -> frozenset[str]:
    """Return the lemmas that carry meaning."""
    return frozenset(
        canonical(token.lemma)
        for token in tokens
        if token.tag not in _TEXT_ONLY | {"IN", "TO", "COMP"} and token.low not in _NOT_CONTENT | {"user"}
    )


@dataclass(frozen=True)
class Predicate:
    """A clause read as verb, arguments, polarity and time."""

    clause: Clause
    subject: Entity
    verb: str
    arguments: tuple[Argument, ...]
    positive: bool
    planned: bool
    liked: bool | None
    progressive: bool
    passive: bool
    past: bool
    perfect: bool

    def argument(self, *prepositions: str) -> Argument | None:
        return next((found for found in self.arguments if found.preposition in prepositions), None)

    @property
    def object(self) -> Argument | None:
        return self.argument("")


def predicate_of(clause: Clause, inherited: Entity) -> Predicate | None:
    """Read a clause; nothing where it has no verb."""
    if not clause.group:
        return None
    subject = entity_of(clause.subject) if clause.subject else inherited
    negated = any(token.tag == "NEG" for token in clause.group) or _denied(clause)
    ended = any(token.low in {"anymore"} for token in clause.tokens) and not negated
    verbs = [token for token in clause.verbs if token.low not in lx.MODALS | {"'d"}]
    chain = _Chain(verbs, clause)
    positive = (not negated) != chain.flipped and not ended
    return Predicate(
        clause, subject, chain.verb, _arguments(chain.rest), positive, chain.planned, chain.liked,
        chain.progressive, chain.passive, chain.past, chain.perfect,
    )  # fmt: skip


def _denied(clause: Clause) -> bool:
    return any(
        one.low == "no" and two.low == "longer"
        for one, two in zip(clause.tokens, clause.tokens[1:], strict=False)
    )


class _Chain:
    """The verbs of a clause from auxiliary to content verb, and what the ones before it make of it."""

    def __init__(self, verbs: list[Token], clause: Clause) -> None:
        self.rest = list(clause.rest)
        self.flipped = self.planned = self.progressive = self.passive = False
        self.liked: bool | None = None
        self.past = any(
            verb_form(token.low) == "VBD" or token.low in {"was", "were", "had", "did"} for token in verbs[:1]
        )
        self.perfect = (
            len(verbs) > 1 and verbs[0].low in lx.HAVE | {"'s"} and verb_form(verbs[1].low) in {"VBD", "VBN"}
        )
        self.past = self.past and not self.perfect
        self.planned = any(token.low in {"will", "'ll", "shall"} for token in clause.group)
        main = self._main(verbs)
        self.verb = verb_lemma(main.low) if main else "be"
        if main is not None and main.low in {"'s", "'m", "'re", "is", "are", "am", "was", "were", "been"}:
            self.verb = "be"
        if main is not None and main.low in {"'ve", "has", "had"}:
            self.verb = "have"
        self._follow()

    def _main(self, verbs: list[Token]) -> Token | None:
        light = lx.BE | lx.DO | lx.HAVE | {"'s", "'d"}
        content_verbs = [v for n, v in enumerate(verbs) if v.low not in light or (v.low == "being" and n)]
        auxiliaries = [v for v in verbs if v not in content_verbs]
        if not content_verbs:
            return auxiliaries[-1] if auxiliaries else None
        main = content_verbs[0]
        be = any(v.low in lx.BE | {"'s"} for v in auxiliaries)
        if (
            verb_lemma(main.low) == "get"
            and len(content_verbs) > 1
            and verb_form(content_verbs[1].low) in {"VBD", "VBN"}
        ):
            main, be = content_verbs.pop(1), True
        if main.low == "got" and self.perfect and len(content_verbs) == 1:
            return auxiliaries[0]
        self.progressive = be and verb_form(main.low) == "VBG"
        self.passive = be and verb_form(main.low) in {"VBD", "VBN"}
        for later in content_verbs[1:]:
            self.rest.insert(0, later)
        return main

    def _follow(self) -> None:
        """Walk from a verb that only frames the content verb to the content verb itself."""
        self._take_particle()
        for _ in range(4):
            following = self._framed()
            if following is None:
                return
            self._frame(self.verb)
            self.verb = verb_lemma(self.rest[following].low)
            self.rest = self.rest[following + 1 :]
            self._take_particle()

    def _framed(self) -> int | None:
        """Return where the verb that this one frames stands in the rest."""
        skip = 0
        while skip < len(self.rest) and self.rest[skip].tag in {"RB", "NEG"}:
            skip += 1
        if skip >= len(self.rest):
            return None
        token = self.rest[skip]
        if self.verb == "be" and "back" in [t.low for t in self.rest[: skip + 1]] and token.low == "to":
            return (
                skip + 1
                if skip + 1 < len(self.rest) and verb_form(self.rest[skip + 1].low) == "VBG"
                else None
            )
        if token.tag == "TO" and self.verb in _PLANNING | _RUNNING_ON | lx.BEGINNING | {
            "use",
            "have",
            "get",
            "be",
        }:
            return self._verb_from(skip + 1)
        gerund = verb_form(token.low) == "VBG" and token.tag in {"V", "NN"}
        return skip if gerund and self.verb in lx.BEGINNING | lx.CEASING | _RUNNING_ON else None

    def _take_particle(self) -> None:
        """Make one verb of `get up`, `break up`, `give up`."""
        if not self.rest or self.rest[0].low not in _PARTICLES:
            return
        joined = f"{self.verb} {self.rest[0].low}"
        closes = len(self.rest) == 1 or self.rest[1].tag in {"IN", "PUNCT", "CC", "TO"}
        if closes or joined in _PARTICLE_VERBS:
            self.verb = joined
            self.rest = self.rest[1:]

    def _verb_from(self, number: int) -> int | None:
        while number < len(self.rest) and self.rest[number].tag in {"RB", "NEG"}:
            number += 1
        return number if number < len(self.rest) and self.rest[number].tag in {"V", "VF"} else None

    def _frame(self, verb: str) -> None:
        if verb in lx.CEASING | {"use"}:
            self.flipped = not self.flipped
            self.past = False
        elif verb in lx.BEGINNING:
            self.past = False
        elif verb in _PLANNING:
            self.planned = True
        elif verb in lx.LIKING | lx.DISLIKING and self.liked is None:
            self.liked = verb in lx.LIKING


def _arguments(rest: Sequence[Token]) -> tuple[Argument, ...]:
    """Cut what follows the verb at prepositions, clause words, asides and time words."""
    found, opening, current = list[Argument](), None, list[Token]()
    timed = False
    for number, token in enumerate(rest):
        if (token.tag in {"IN", "TO", "SUB", "WH", "COMP"} and token.low != "of") or _aside(rest, number):
            _close(found, opening, timed, current)
            opening, timed, current = token, False, []
        elif _time_opens(token, current):
            _close(found, opening, timed, current)
            opening, timed, current = None, True, [token]
        else:
            current.append(token)
    _close(found, opening, timed, current)
    return tuple(found)


def _time_opens(token: Token, current: list[Token]) -> bool:
    """Say whether a bare time phrase (`next week`, `tomorrow`, `every Friday`) starts after an argument."""
    opener = token.low in {"yesterday", "tomorrow", "tonight", "today", "next", "last", "every", "each"}
    return opener and all(earlier.tag not in {"DT", "PRP$"} or len(current) > 1 for earlier in current[-1:])


def _close(found: list[Argument], opening: Token | None, timed: bool, current: list[Token]) -> None:
    trimmed = list(current)
    while trimmed and (trimmed[-1].tag in {"PUNCT", "UH"} or trimmed[-1].low in _NOT_CONTENT):
        trimmed.pop()
    while trimmed and (trimmed[0].tag in {"PUNCT", "UH"} or trimmed[0].low in _NOT_CONTENT):
        trimmed.pop(0)
    preposition = "@" if timed else opening.low if opening is not None else ""
    if trimmed:
        found.append(Argument(preposition, tuple(trimmed), opening))


def is_time(argument: Argument) -> bool:
    """Say whether an argument names a point or period in time."""
    if argument.preposition in {"@", "since", "until", "till"}:
        return True
    if argument.preposition not in _TIME_PREPOSITIONS:
        return False
    nouns = [token for token in argument.tokens if token.tag in {"NN", "NNP"}]
    clock = any(_is_clock(token) for token in argument.tokens)
    if not nouns or (all(_names_time(token) for token in nouns) and _is_ordinal(argument)):
        return clock or _is_year(argument) or _is_ordinal(argument) or _is_hour(argument)
    return clock or (
        all(_names_time(token) for token in nouns) and not any(t.low == "old" for t in argument.tokens)
    )


def _is_clock(token: Token) -> bool:
    low = token.low
    return low[0].isdigit() and (
        low.endswith(("am", "pm")) or (":" in low and low.replace(":", "").isdigit())
    )


def _is_year(argument: Argument) -> bool:
    low = argument.tokens[0].low
    return len(argument.tokens) == 1 and low.isdigit() and len(low) == 4 and low[:2] in {"19", "20"}


def grain(argument: Argument) -> str:
    """Return what a time argument fixes: the clock, the day, the month, or a period."""
    lows = {token.low for token in argument.tokens}
    if (
        any(_is_clock(token) for token in argument.tokens)
        or (argument.preposition == "at" and any(token.tag == "CD" for token in argument.tokens))
        or lows & {"noon", "midnight"}
    ):
        return "clock"
    return "day"


def _names_time(token: Token) -> bool:
    return token.low in lx.TIME_NOUNS or token.low.rstrip("s") in lx.TIME_NOUNS | {
        "end",
        "beginning",
        "start",
        "middle",
    }


def _is_ordinal(argument: Argument) -> bool:
    """Say whether an argument is `the 17th`, `on the 3rd of May`."""
    ordinals = [
        token
        for token in argument.tokens
        if token.low[0].isdigit() and token.low.endswith(("st", "nd", "rd", "th"))
    ]
    return bool(ordinals) and (argument.preposition != "" or argument.tokens[0].low == "the")


def _is_hour(argument: Argument) -> bool:
    return argument.preposition == "at" and len(argument.tokens) == 1 and argument.tokens[0].tag == "CD"


def _aside(rest: Sequence[Token], number: int) -> bool:
    """Say whether a comma opens something else than the next item of a list."""
    if rest[number].text != "," or number + 1 >= len(rest):
        return False
    return rest[number + 1].tag in {"V", "VF", "RB", "PRP", "UH"}
