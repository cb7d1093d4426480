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
    **dict.fromkeys(["something", "everything", "nothing", "anything", "someone", "everyone", "nobody", "anyone", "mine", "yours"], "NN"),
    **dict.fromkeys(["yes", "yeah", "yep", "no", "nope", "oh", "hey", "hi", "hello", "wow", "ugh", "please", "thanks", "sorry", "well", "okay", "ok", "hmm"], "UH"),
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


def tag(tokens: list[Token]) -> list[Token]:
    """Give every token of a sentence its tag, left to right."""
    state, done = _State(), list[Token]()
    for number, token in enumerate(tokens):
        following = tokens[number + 1] if number + 1 < len(tokens) else None
        after = tokens[number + 2] if number + 2 < len(tokens) else None
        found = _tag_of(token, done, following, after, state)
        if found == "VF" and done and _mistaken_verb(done[-1], token):
            done[-1] = done[-1].tagged("NN")
        done.append(token.tagged(found))
        _advance(state, done[-1], done)
    return done


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


def _tag_of(
    token: Token, done: list[Token], following: Token | None, after: Token | None, state: _State
) -> str:
    low, previous = token.low, done[-1] if done else None
    if low in {"'s", "'"}:
        return _clitic_s(low, done, following, after)
    if SIGN.match(token.text) and low not in {"'m", "'re", "'ve", "'ll", "'d"}:
        return "PUNCT"
    if low[0].isdigit() or low[0] in "$€£":
        return "CD"
    special = _special(token, previous, following, after, state)
    if special:
        return special
    if low in lx.NUMBER_WORDS:
        return "CD"
    if low in _CLOSED and not _capital_inside(token, previous):
        return _CLOSED[low]
    return _open(token, done, following, state)


def _clitic_s(low: str, done: list[Token], following: Token | None, after: Token | None) -> str:
    previous = done[-1] if done else None
    if previous is None or low == "'":
        return "POS" if previous is not None and previous.tag in NOUNISH else "PUNCT"
    if previous.tag not in NOUNISH or following is None:
        return "VF"
    return "POS" if _heads_noun(following, after) else "VF"


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


def _special(
    token: Token, previous: Token | None, following: Token | None, after: Token | None, state: _State
) -> str:
    """Tag the function words whose tag depends on their neighbours; nothing for others."""
    low, before = token.low, previous.tag if previous else ""
    if low == "to":
        return _to(previous, following)
    if low == "her":
        return "PRP$" if following is not None and _nounish(following) else "PRPO"
    if low == "that":
        return _that(before, following)
    if low == "no" and following is not None and following.low in {"longer", "more"}:
        return "NEG"
    if low in {"wow", "sorry", "hi", "hey", "please", "thanks"} and before not in {"", "PUNCT", "UH", "CC"}:
        return "JJ" if low == "sorry" else "NN"
    if low == "one" and before in {"JJ", "DT"}:
        return "NN"
    if low in {"no", "well", "ok", "okay", "right"} and (
        following is None or following.text in ",.!" or previous is None
    ):
        return "UH" if low != "no" or following is None or following.text in ",.!" else "DT"
    if (
        low in {"since", "until", "till", "before", "after", "as", "like", "once", "cause"}
        and following is not None
    ):
        return _preposition_or_clause(low, previous, following, state)
    if low in {"so", "plus"} and following is not None and low == "so":
        return "RB" if before == "VF" or following.low in {"much", "many", "far"} else "CC"
    if low in lx.BE | lx.HAVE | lx.DO | lx.MODALS | {"'d"}:
        return _auxiliary(token, before, following)
    return ""


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


def _preposition_or_clause(low: str, previous: Token | None, following: Token, state: _State) -> str:
    if low == "like":
        before = previous.tag if previous else ""
        verbal = before in {"PRP", "TO", "NEG", "RB"} or (
            before in {"NNP", "NN", "VF"} and _does(previous, state)
        )
        return ("V" if state.finite else "VF") if verbal and not _is_be(state.finite) else "IN"
    clause = following.low in lx.SUBJECT_PRONOUNS or (following.low in lx.POSSESSIVES and low not in {"as"})
    return "SUB" if clause and (low != "until" or following.low in lx.SUBJECT_PRONOUNS) else "IN"


def _does(previous: Token | None, state: _State) -> bool:
    assert previous is not None
    return not state.finite or previous.low in lx.DO | lx.MODALS


def _is_be(word: str) -> bool:
    return word in lx.BE | {"'s"}


def _auxiliary(token: Token, before: str, following: Token | None) -> str:
    low = token.low
    if low in {"can", "will", "may", "might", "must"} and before in {"DT", "PRP$", "IN", "JJ"}:
        return "NNP" if token.text[0].isupper() else "NN"
    if low in {"will", "may"} and token.text[0].isupper() and before not in {"", "PUNCT"}:
        return "NNP"
    if low == "been" and before in {"", "PUNCT"}:
        return "VF"
    if low in {"be", "been", "being", "having"}:
        return "V"
    if low in {"have", "do"} and before in {"TO", "NEG"}:
        return "V"
    return "VF"


def _capital_inside(token: Token, previous: Token | None) -> bool:
    return token.text[0].isupper() and token.low != "i" and previous is not None and previous.tag != "PUNCT"


def _nounish(token: Token) -> bool:
    low = token.low
    if SIGN.match(token.text):
        return False
    if low in _CLOSED or low in lx.BE | lx.HAVE | lx.DO | lx.MODALS:
        return low in {"own", "favourite"}
    pos = parts_of_speech(low)
    return not pos or bool(pos & {"NOUN", "ADJ"})


def _open(token: Token, done: list[Token], following: Token | None, state: _State) -> str:
    low, previous = token.low, done[-1] if done else None
    before = previous.tag if previous else ""
    pos = parts_of_speech(low)
    if _is_name(token, before, pos, previous, following):
        return "NNP"
    if not pos:
        return _unknown(token, before, state)
    if "VERB" in pos:
        verbal = _verbal(token, done, following, state, pos)
        if verbal:
            return verbal
    if pos == {"ADV"} or ("ADV" in pos and low.endswith("ly")):
        return "RB"
    if before == "PRP$" and pos == {"ADJ"} and (following is None or not _nounish(following)):
        return "NN"
    return _noun_or_adjective(pos, following)


def _noun_or_adjective(pos: frozenset[str], following: Token | None) -> str:
    if "ADJ" not in pos:
        return "NN"
    if "NOUN" not in pos:
        return "JJ"
    if following is None or not _nounish(following) or following.low in lx.TIME_NOUNS:
        return "NN"
    verbal = "VERB" in parts_of_speech(following.low) and verb_form(following.low) == "VBZ"
    return "NN" if verbal else "JJ"


def _is_name(
    token: Token, before: str, pos: frozenset[str], previous: Token | None, following: Token | None
) -> bool:
    low, capital = token.low, token.text[0].isupper()
    if low in lx.WEEKDAYS | lx.MONTHS and (
        capital or low not in {"sun", "sat", "may", "mar", "wed", "march"}
    ):
        return True
    inner = token.text[1:] != token.text[1:].lower() and not token.text.isupper()
    if (capital and before not in {"", "PUNCT", "UH"}) or inner:
        return True
    first = low in lx.FIRST_NAMES["male"] | lx.FIRST_NAMES["female"]
    if capital and low not in lx.BARE_NOUNS and pos and following is not None:
        if _after_name(following, plural=low.endswith("s")):
            return True
    if capital:
        return (
            not pos
            or first
            or (following is not None and following.text[0].isupper() and following.text != "I")
        )
    kin = previous is not None and previous.low in lx.PEOPLE | lx.ANIMALS | {"named", "called"}
    return (first and not pos & {"VERB", "ADJ"}) or (kin and not pos and not low.endswith(("ed", "ing")))


def _after_name(following: Token, plural: bool) -> bool:
    """Say whether what follows a bare word shows it to be a name: a singular verb."""
    if following.low in {"is", "was", "has", "does", "'s"}:
        return True
    finite = parts_of_speech(following.low) >= {"VERB"} and verb_form(following.low) == "VBZ"
    return not plural and (finite or following.low in {",", "("})


def _unknown(token: Token, before: str, state: _State) -> str:
    low = token.low
    if low.endswith("ing") and len(low) > 5:
        return "V"
    if low.endswith("ed") and len(low) > 4:
        return "VF" if not state.finite and before in {"PRP", "NN", "NNP"} else "V"
    return "RB" if low.endswith("ly") else "NN"


def _verbal(
    token: Token, done: list[Token], following: Token | None, state: _State, pos: frozenset[str]
) -> str:
    """Return VF or V where a word that can be a verb is one here; nothing where it is not."""
    form, before = verb_form(token.low), _before_adverbs(done)
    if before is not None and before.tag == "TO":
        return "V"
    if before is not None and before.tag == "VF" and before.low in lx.MODALS | lx.DO | {"'d", "let"}:
        return "V"
    if state.finite:
        return _after_finite(token, before, form, pos, state, following)
    return _as_finite(token, done, following, state, form, pos)


def _before_adverbs(done: list[Token]) -> Token | None:
    for token in reversed(done[-4:]):
        if token.tag not in {"RB", "NEG", "UH"}:
            return token
    return None


def _after_finite(
    token: Token, before: Token | None, form: str, pos: frozenset[str], state: _State, following: Token | None
) -> str:
    tag_before = before.tag if before is not None else ""
    if (
        state.finite in lx.DO | lx.MODALS
        and not state.main
        and tag_before in {"PRP", "NN", "NNP"}
        and form == "VB"
    ):
        return "V"
    if tag_before in {"DT", "PRP$", "POS", "JJ", "CD"}:
        return "" if pos - {"VERB"} else "V" if form == "VBG" else ""
    if form == "VBG":
        return "" if tag_before == "IN" and _joins_noun(following) and "NOUN" in pos else "V"
    if form in {"VBD", "VBN"} and tag_before in {"VF", "V", "NN", "NNP", "PRP"}:
        return "V" if "ADJ" not in pos or tag_before != "VF" or not _is_be(state.finite) else "V"
    if (
        tag_before in {"VF", "V"}
        and _is_perfect(state.finite)
        and token.low in {"put", "quit", "cut", "set", "become"}
    ):
        return "V"
    return "V" if pos == {"VERB"} else ""


def _joins_noun(following: Token | None) -> bool:
    return following is not None and following.low not in _CLOSED and not SIGN.match(following.text)


def _is_perfect(word: str) -> bool:
    return word in lx.HAVE | {"'s", "'d"}


def _as_finite(
    token: Token, done: list[Token], following: Token | None, state: _State, form: str, pos: frozenset[str]
) -> str:
    previous = _before_adverbs(done)
    before = previous.tag if previous is not None else ""
    if form == "VBG":
        return "V" if "NOUN" not in pos or before not in _OPENS_NOUN else ""
    if before in {"PRP", "WH"}:
        return "VF"
    if before in _OPENS_NOUN:
        return "" if pos - {"VERB"} or before == "POS" else "V"
    if before in {"NN", "NNP"} or (before == "PUNCT" and state.noun):
        return _after_noun(done, previous, following, form, pos)
    if before == "CC":
        return _after_coordinator(token, done, following, form, pos)
    return "VF" if before in {"", "PUNCT", "UH"} and _opens_sentence(form, pos, following) else ""


def _after_noun(
    done: list[Token],
    previous: Token | None,
    following: Token | None,
    form: str,
    pos: frozenset[str],
) -> str:
    assert previous is not None
    if form in {"VBZ", "VBD", "VBN"}:
        ambiguous = form == "VBZ" and "NOUN" in pos and (previous.tag == "PUNCT" and following is None)
        return "" if ambiguous else "VF"
    plural = (
        previous.low.endswith("s")
        or previous.low
        in {
            "people",
            "children",
            "family",
            "men",
            "women",
        }
        or _coordinated(done)
    )
    if "NOUN" not in pos and "ADJ" not in pos:
        return "VF"
    return "VF" if plural and following is not None and not SIGN.match(following.text) else ""


def _coordinated(done: list[Token]) -> bool:
    """Say whether the noun phrase before is the last of several (`me and Jason`)."""
    return any(token.tag == "CC" for token in done[-4:-1])


def _after_coordinator(
    token: Token, done: list[Token], following: Token | None, form: str, pos: frozenset[str]
) -> str:
    verb = next((earlier for earlier in reversed(done[-40:]) if earlier.tag == "VF"), None)
    if verb is None:
        return ""
    if "NOUN" not in pos and "ADJ" not in pos:
        return "V" if form == "VB" and _before_conjunct(done).tag == "V" else "VF"
    past = verb_form(verb.low) in {"VBD", "VBN"} or verb.low in {"was", "were", "had", "did"}
    agrees = form == "VBD" and past if form != "VBZ" else verb.low.endswith("s")
    if form == "VB":
        plain = any(earlier.low in {"i", "we", "they"} for earlier in done)
        agrees = (verb_form(verb.low) == "VB" and not _is_be(verb.low)) or (plain and not _is_be(verb.low))
    adjacent = len(done) > 1 and done[-2].tag == "VF"
    continues = (
        following is not None and not SIGN.match(following.text) and following.low not in lx.COORDINATORS
    )
    continues = continues and (form != "VB" or following is None or following.low in _CLOSED)
    return "VF" if agrees and (adjacent or continues) else ""


def _before_conjunct(done: list[Token]) -> Token:
    for token in reversed(done[-40:]):
        if token.tag in {"VF", "V"}:
            return token
    return done[-1]


def _opens_sentence(form: str, pos: frozenset[str], following: Token | None) -> bool:
    if following is None or SIGN.match(following.text):
        return pos == {"VERB"}
    if following.low in lx.BE | lx.HAVE | lx.MODALS | {"'s"}:
        return False
    if "NOUN" not in pos and "ADJ" not in pos:
        return True
    return following.low in _CLOSED and following.low not in lx.COORDINATORS
