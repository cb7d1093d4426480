"""Part-of-speech tags, given left to right from a dictionary and the neighbours.

Tags: PRP subject pronoun, PRPO object pronoun, PRP$ possessive, POS `'s`, DT determiner, NN noun, NNP name,
JJ adjective, RB adverb, NEG negator, CD number, IN preposition, SUB subordinator, COMP `that`, WH question or
relative word, CC coordinator, TO infinitive marker, VF finite verb (auxiliaries and modals too), V other verb
form, UH interjection, PUNCT.
"""

import re
from dataclasses import dataclass

from prompts.language import lexicon as lx
from prompts.language.words import Token, parts_of_speech, verb_form, verb_lemma

_CLOSED = {
    **dict.fromkeys(lx.DETERMINERS, "DT"),
    **dict.fromkeys(lx.ADVERBS, "RB"),
    **dict.fromkeys(lx.PREPOSITIONS, "IN"),
    **dict.fromkeys(lx.SUBORDINATORS, "SUB"),
    **dict.fromkeys(lx.COORDINATORS, "CC"),
    **dict.fromkeys(lx.WH, "WH"),
    **dict.fromkeys(lx.OBJECT_PRONOUNS, "PRPO"),
    **dict.fromkeys(lx.SUBJECT_PRONOUNS, "PRP"),
    **dict.fromkeys(lx.POSSESSIVES, "PRP$"),
    **dict.fromkeys(lx.NEGATORS, "NEG"),
    **dict.fromkeys(
        lx.bag("something everything nothing anything someone everyone nobody anyone mine yours"), "NN"
    ),
    **dict.fromkeys(
        lx.bag("yes yeah yep no nope oh hey hi hello wow ugh please thanks sorry well okay ok hmm"), "UH"
    ),
    "all": "DT", "so": "CC", "no": "DT", "no.": "UH", "well": "RB", "there": "RB", "like": "IN",
}  # fmt: skip


NOUNISH = {"NN", "NNP", "CD"}


_OPENS_NOUN = {"DT", "PRP$", "POS", "JJ", "CD", "IN"}


SIGN = re.compile(r"[^\w\s]+$")


_GOING = lx.bag("go come walk drive commute travel get head return move back")


@dataclass
class _State:
    """What the tagger knows of the clause it is in."""

    finite: str = ""  # the finite verb seen in this clause
    noun: bool = False  # whether a subject could have been seen
    main: bool = False  # whether the content verb after an auxiliary has been seen
    outer_open: bool = False  # a relative clause is open and its head has no verb yet


def _advance(state: _State, token: Token, done: list[Token]) -> None:
    previous = done[-2].tag if len(done) > 1 else ""
    state.main = token.tag == "V" or (state.main and token.tag != "VF")
    if token.tag == "VF":
        relative, state.outer_open = state.outer_open, False
        saying = verb_lemma(token.low) in lx.SAYING
        state.finite = "" if relative or saying else token.low
        state.noun = relative
    elif token.tag == "V" and verb_lemma(token.low) in lx.SAYING:
        state.finite, state.noun = "", False
    elif token.tag == "WH" and previous in NOUNISH | {"PUNCT"} and len(done) > 2 and not state.finite:
        state.outer_open = True
    elif token.tag in {"CC", "SUB", "COMP", "WH"} or token.text in {";", "—", "–", ":", "-", "(", ")"}:
        state.finite, state.noun = "", token.tag == "CC" and state.noun
    elif token.text == "," and state.finite:
        state.finite, state.noun = "", False
    elif token.tag in {"NN", "NNP", "PRP", "CD"}:
        state.noun = True


def _mistaken_verb(previous: Token, finite: Token) -> bool:
    """Say whether a word tagged as a finite verb was a noun after all: a finite verb follows it."""
    auxiliary = finite.low in lx.BE | lx.HAVE | lx.MODALS | {"does", "did"}
    return previous.tag == "VF" and auxiliary and "NOUN" in parts_of_speech(previous.low)


def _heads_noun(token: Token, after: Token | None) -> bool:
    """Say whether a noun phrase without determiner starts here."""
    low, pos = token.low, parts_of_speech(token.low)
    if low in lx.NUMBER_WORDS or low[0].isdigit():
        return False
    if low in _CLOSED or SIGN.match(token.text) or (low in lx.BE | lx.HAVE | lx.DO | lx.MODALS):
        return low == "favourite"
    if pos and "NOUN" not in pos:
        return after is not None and after.low not in _CLOSED and not SIGN.match(after.text) and "ADJ" in pos
    if verb_form(low) == "VBG" and after is not None and not SIGN.match(after.text) and after.low in _CLOSED:
        return False
    if "ADJ" in pos and (
        after is None or SIGN.match(after.text) or after.low in lx.PREPOSITIONS | lx.COORDINATORS | {"to"}
    ):
        return "VERB" not in pos and low not in lx.VALUE_CLASSES["diet"] and not low.endswith(("ic", "ed"))
    return True


def _to(previous: Token | None, following: Token | None) -> str:
    if following is None:
        return "IN"
    pos = parts_of_speech(following.low)
    if following.low in lx.BE | lx.HAVE | lx.DO:
        return "TO"
    if "VERB" not in pos or verb_lemma(following.low) != following.low or following.text[0].isupper():
        return "IN"
    moving = previous is not None and verb_lemma(previous.low) in _GOING and previous.low != "going"
    return "IN" if moving and "NOUN" in pos else "TO"


def _that(before: str, following: Token | None) -> str:
    if following is None or following.low in lx.BE | lx.HAVE | lx.MODALS | {"'s"}:
        return "WH" if before in {"NN", "NNP"} else "PRP"
    if before in {"NN", "NNP"}:
        return "WH"
    pos = parts_of_speech(following.low)
    if before in {"VF", "V", "JJ", "UH", ""} and (
        following.low in _CLOSED or not pos or following.text[0].isupper()
    ):
        return "COMP"
    return "DT" if "NOUN" in pos or "ADJ" in pos else "PRP"


def _is_be(word: str) -> bool:
    return word in lx.BE | {"'s"}


def _nounish(token: Token) -> bool:
    low = token.low
    if SIGN.match(token.text) or low.startswith("'"):
        return False
    if low in _CLOSED or low in lx.BE | lx.HAVE | lx.DO | lx.MODALS:
        return low in {"own", "favourite"}
    pos = parts_of_speech(low)
    return not pos or bool(pos & {"NOUN", "ADJ"})


def _noun_or_adjective(pos: frozenset[str], following: Token | None) -> str:
    if "ADJ" not in pos:
        return "NN"
    if "NOUN" not in pos:
        return "JJ"
    if following is None or not _nounish(following) or following.low in lx.TIME_NOUNS:
        return "NN"
    verbal = "VERB" in parts_of_speech(following.low) and verb_form(following.low) == "VBZ"
    return "NN" if verbal else "JJ"


def _after_name(following: Token, plural: bool) -> bool:
    """Say whether what follows a bare word shows it to be a name: a singular verb."""
    if following.low in {"is", "was", "has", "does", "'s"}:
        return True
    finite = parts_of_speech(following.low) >= {"VERB"} and verb_form(following.low) == "VBZ"
    return not plural and (finite or following.low in {",", "("})


def _before_adverbs(done: list[Token]) -> Token | None:
    for token in reversed(done[-4:]):
        if token.tag not in {"RB", "NEG", "UH"}:
            return token
    return None


def _is_perfect(word: str) -> bool:
    return word in lx.HAVE | {"'s", "'d"}


def _coordinated(done: list[Token]) -> bool:
    """Say whether the noun phrase before is the last of several (`me and Jason`)."""
    return any(token.tag == "CC" for token in done[-4:-1])


def _before_conjunct(done: list[Token]) -> Token:
    for token in reversed(done[-40:]):
        if token.tag in {"VF", "V"}:
            return token
    return done[-1]


@dataclass(frozen=True)
class _Here:
    """A word among its neighbours: what was tagged before it, what follows, and the clause so far."""

    token: Token
    done: list[Token]
    following: Token | None
    after: Token | None
    state: _State

    @property
    def low(self) -> str:
        return self.token.low

    @property
    def previous(self) -> Token | None:
        return self.done[-1] if self.done else None

    @property
    def before(self) -> str:
        """Return the tag of the word before; nothing at the start."""
        return self.done[-1].tag if self.done else ""

    @property
    def subject_side(self) -> Token | None:
        """Return the word before, adverbs aside."""
        return next(
            (token for token in reversed(self.done[-4:]) if token.tag not in {"RB", "NEG", "UH"}), None
        )

    @property
    def next_low(self) -> str:
        return self.following.low if self.following is not None else ""

    @property
    def ends_here(self) -> bool:
        return self.following is None or bool(SIGN.match(self.following.text))

    @property
    def pos(self) -> frozenset[str]:
        return parts_of_speech(self.token.low)

    @property
    def form(self) -> str:
        return verb_form(self.token.low)


def tag(tokens: list[Token]) -> list[Token]:
    """Give every token of a sentence its tag, left to right."""
    state, done = _State(), list[Token]()
    for number, token in enumerate(tokens):
        following = tokens[number + 1] if number + 1 < len(tokens) else None
        after = tokens[number + 2] if number + 2 < len(tokens) else None
        here = _Here(token, done, following, after, state)
        found = next(tagged for rule in _RULES if (tagged := rule(here)))
        if found == "VF" and done and _mistaken_verb(done[-1], token):
            done[-1] = done[-1].tagged("NN")
        done.append(token.tagged(found))
        _advance(state, done[-1], done)
    return done


def _sign_or_figure(here: _Here) -> str:
    if here.low in {"'s", "'"}:
        return _clitic_s(here)
    if SIGN.match(here.token.text) and here.low not in {"'m", "'re", "'ve", "'ll", "'d"}:
        return "PUNCT"
    return "CD" if here.low[0].isdigit() or here.low[0] in "$€£" else ""


def _clitic_s(here: _Here) -> str:
    if here.previous is None or here.low == "'":
        return "POS" if here.before in NOUNISH else "PUNCT"
    if here.before in NOUNISH and here.state.finite and here.ends_here:
        return "POS"
    if here.before not in NOUNISH or here.following is None:
        return "VF"
    return "POS" if _heads_noun(here.following, here.after) else "VF"


def _function_word(here: _Here) -> str:
    """Tag the function words whose tag depends on their neighbours."""
    low = here.low
    if low == "to":
        return _to(here.previous, here.following)
    if low == "her":
        return "PRP$" if here.following is not None and _nounish(here.following) else "PRPO"
    if low == "that":
        return _that(here.before, here.following)
    if low == "so":
        return "RB" if here.before == "VF" or here.next_low in {"much", "many", "far"} else "CC"
    return "NN" if low == "one" and here.before in {"JJ", "DT"} else ""


def _interjection(here: _Here) -> str:
    """Tell `no, …` from `no dog` and `no longer`, and `sorry, …` from `I am sorry`."""
    low, inside = here.low, here.before not in {"", "PUNCT", "UH", "CC"}
    if low == "no" and here.next_low in {"longer", "more"}:
        return "NEG"
    if low in {"wow", "sorry", "hi", "hey", "please", "thanks"} and inside:
        return "JJ" if low == "sorry" else "NN"
    stops = here.following is None or here.following.text in ",.!"
    if low in {"well", "ok", "okay", "right"} and (stops or here.previous is None):
        return "UH"
    return "UH" if low == "no" and stops else ""


_CLAUSE_OR_PHRASE = frozenset(["since", "until", "till", "before", "after", "as", "once", "cause"])


def _preposition_or_clause(here: _Here) -> str:
    """Tell `since May` from `since I moved`, and `like tea` from `I like tea`."""
    if here.following is None:
        return ""
    if here.low == "like":
        return _like(here)
    if here.low not in _CLAUSE_OR_PHRASE:
        return ""
    clause = here.next_low in lx.SUBJECT_PRONOUNS or (
        here.next_low in lx.POSSESSIVES and here.low not in {"as", "until"}
    )
    return "SUB" if clause else "IN"


def _like(here: _Here) -> str:
    named = here.before in {"NNP", "NN", "VF"} and (
        not here.state.finite
        or (here.previous is not None and here.previous.low in lx.DO | lx.MODALS | {"'d"})
    )
    verbal = here.before in {"PRP", "TO", "NEG", "RB"} or named
    if not verbal or _is_be(here.state.finite):
        return "IN"
    return "V" if here.state.finite else "VF"


def _auxiliary(here: _Here) -> str:
    low, before = here.low, here.before
    if low not in lx.BE | lx.HAVE | lx.DO | lx.MODALS | {"'d"}:
        return ""
    if low in {"can", "will", "may", "might", "must"} and before in {"DT", "PRP$", "IN", "JJ"}:
        return "NNP" if here.token.text[0].isupper() else "NN"
    if low in {"will", "may"} and here.token.text[0].isupper() and before not in {"", "PUNCT"}:
        return "NNP"
    bare = low in {"be", "being", "having"} or (low in {"have", "do"} and before in {"TO", "NEG"})
    return "V" if bare or (low == "been" and before not in {"", "PUNCT"}) else "VF"


def _closed(here: _Here) -> str:
    if here.low in lx.NUMBER_WORDS:
        return "CD"
    capital = here.token.text[0].isupper() and here.low != "i" and here.before not in {"", "PUNCT"}
    return "" if capital else _CLOSED.get(here.low, "")


def _name(here: _Here) -> str:
    named = _is_calendar(here) or _is_capital_inside(here) or _is_opening_name(here) or _is_small_name(here)
    return "NNP" if named else ""


def _is_calendar(here: _Here) -> bool:
    small = here.low not in {"sun", "sat", "may", "mar", "wed", "march"}
    return here.low in lx.WEEKDAYS | lx.MONTHS and (here.token.text[0].isupper() or small)


def _is_capital_inside(here: _Here) -> bool:
    """Say whether a capital stands where no sentence starts, or inside the word (`iPhone`)."""
    text = here.token.text
    inner = text[1:] != text[1:].lower() and not text.isupper()
    return inner or (text[0].isupper() and here.before not in {"", "PUNCT", "UH"})


def _is_opening_name(here: _Here) -> bool:
    """Say whether a capital that opens a sentence is a name's."""
    if not here.token.text[0].isupper():
        return False
    if not here.pos or here.low in _FIRST_NAMES:
        return True
    if here.following is None or here.low in _IMPERATIVES:
        return False
    listed = "VERB" in here.pos and "NOUN" in parts_of_speech(here.next_low)
    verb_follows = not listed and _after_name(here.following, plural=here.low.endswith("s"))
    goes_on = here.following.text[0].isupper() and here.following.text != "I"
    return goes_on or (verb_follows and here.low not in lx.BARE_NOUNS)


def _is_small_name(here: _Here) -> bool:
    """Say whether a word without capital is a name: a first name, or unknown after `sister` or `named`."""
    kin = here.previous is not None and here.previous.low in lx.PEOPLE | lx.ANIMALS | {"named", "called"}
    known = here.low in _FIRST_NAMES and not here.pos & {"VERB", "ADJ"}
    return known or (kin and not here.pos and not here.low.endswith(("ed", "ing")))


def _unknown(here: _Here) -> str:
    """Guess the tag of a word that no dictionary has, by its ending."""
    low = here.low
    if here.pos:
        return ""
    if low.endswith("ing") and len(low) > 5:
        return "V"
    if low.endswith("ed") and len(low) > 4:
        return "VF" if not here.state.finite and here.before in {"PRP", "NN", "NNP"} else "V"
    return "RB" if low.endswith("ly") else "NN"


def _verb(here: _Here) -> str:
    """Return VF or V where a word that can be a verb is one here."""
    if "VERB" not in here.pos:
        return ""
    before = here.subject_side
    framed = before is not None and before.tag == "VF" and before.low in lx.MODALS | lx.DO | {"'d", "let"}
    if framed or (before is not None and before.tag == "TO"):
        return "V"
    return _after_finite(here) if here.state.finite else _as_finite(here)


def _after_finite(here: _Here) -> str:
    """Return V where a word is a further verb of a clause that has its finite verb."""
    before = here.subject_side.tag if here.subject_side is not None else ""
    inverted = here.state.finite in lx.DO | lx.MODALS and not here.state.main
    if before in {"DT", "PRP$", "POS", "JJ", "CD"}:
        return "V" if here.pos == {"VERB"} and here.form == "VBG" else ""
    if here.form == "VBG":
        return (
            ""
            if before == "IN" and not here.ends_here and here.next_low not in _CLOSED and "NOUN" in here.pos
            else "V"
        )
    participle = here.form in {"VBD", "VBN"} and before in {"VF", "V", "NN", "NNP", "PRP"}
    question = inverted and before in {"PRP", "NN", "NNP"} and here.form == "VB"
    perfect = before in {"VF", "V"} and here.state.finite in lx.HAVE | {"'s", "'d"} and here.low == "become"
    return "V" if participle or question or perfect or here.pos == {"VERB"} else ""


def _as_finite(here: _Here) -> str:
    """Return VF where a word is the finite verb that the clause still lacks."""
    before = here.subject_side.tag if here.subject_side is not None else ""
    if here.form == "VBG":
        return "V" if "NOUN" not in here.pos or before not in _OPENS_NOUN else ""
    if before in _OPENS_NOUN:
        return "V" if here.pos == {"VERB"} and before != "POS" else ""
    finite = before in {"PRP", "WH"}
    finite = finite or (
        _follows_noun(here) if before in {"NN", "NNP"} or (before == "PUNCT" and here.state.noun) else False
    )
    if before == "CC":
        return _after_coordinator(here)
    opens = before in {"", "UH"} or (before == "PUNCT" and not here.state.noun)
    return "VF" if finite or (opens and _opens_sentence(here)) else ""


def _follows_noun(here: _Here) -> bool:
    """Say whether a word after a noun is its verb: an inflected one, or a bare one after a plural."""
    previous = here.subject_side
    if previous is None:
        return False
    if here.form in {"VBZ", "VBD", "VBN"}:
        return not (
            here.form == "VBZ" and "NOUN" in here.pos and previous.tag == "PUNCT" and here.following is None
        )
    plural = previous.low.endswith("s") or previous.low in _PLURALS or _coordinated(here.done)
    return here.pos == {"VERB"} or (plural and not here.ends_here)


_IMPERATIVES = lx.bag(
    "tell ask call text email remind show give send help let meet thank write add make keep"
)
_PLURALS = frozenset(["people", "children", "family", "men", "women"])
_FIRST_NAMES = lx.FIRST_NAMES["male"] | lx.FIRST_NAMES["female"]


def _after_coordinator(here: _Here) -> str:
    """Return VF or V where a word after `and` is a verb that goes with the one before, not a further noun."""
    verb = next((earlier for earlier in reversed(here.done[-40:]) if earlier.tag == "VF"), None)
    if verb is None:
        return ""
    if not here.pos & {"NOUN", "ADJ"}:
        return "V" if here.form == "VB" and _before_conjunct(here.done).tag == "V" else "VF"
    adjacent = len(here.done) > 1 and here.done[-2].tag == "VF"
    continues = not here.ends_here and here.next_low not in lx.COORDINATORS
    continues = continues and (here.form != "VB" or here.next_low in _CLOSED)
    return "VF" if _agrees(here, verb) and (adjacent or continues) else ""


def _agrees(here: _Here, verb: Token) -> bool:
    """Say whether a verb form can share the subject of an earlier verb."""
    if here.form == "VBZ":
        return verb.low.endswith("s")
    if here.form != "VB":
        return verb_form(verb.low) in {"VBD", "VBN"} or verb.low in {"was", "were", "had", "did"}
    plain = any(earlier.low in {"i", "we", "they"} for earlier in here.done)
    return not _is_be(verb.low) and (plain or verb_form(verb.low) == "VB")


def _opens_sentence(here: _Here) -> bool:
    """Say whether a verb can open the sentence: a request, or a statement without `I`."""
    if here.ends_here:
        return here.pos == {"VERB"}
    if here.next_low in lx.BE | lx.HAVE | lx.MODALS | {"'s"}:
        return False
    return not here.pos & {"NOUN", "ADJ"} or (
        here.next_low in _CLOSED and here.next_low not in lx.COORDINATORS
    )


def _other(here: _Here) -> str:
    """Tag what is left: adverb, adjective or noun."""
    if here.pos == {"ADV"} or ("ADV" in here.pos and here.low.endswith("ly")):
        return "RB"
    alone = here.following is None or not _nounish(here.following)
    if here.before == "PRP$" and here.pos == {"ADJ"} and alone:
        return "NN"
    return _noun_or_adjective(here.pos, here.following)


_RULES = (
    _sign_or_figure, _function_word, _interjection, _preposition_or_clause, _auxiliary, _closed,
    _name, _unknown, _verb, _other,
)  # fmt: skip
