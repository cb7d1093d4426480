"""Short answers to the assistant's questions, said in full: `What is your sister's name?` – `Emily`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from prompts.language import lexicon as lx
from prompts.language.grammar import sentences
from prompts.language.statements import without_openers
from prompts.language.tagging import tag
from prompts.language.words import Token, inflect, tokenize, verb_lemma

LONGEST_REPLY = 80
"""Characters that a short answer may have."""

_YES = re.compile(
    r"^\W*(?:yes|yeah|yea|ya|yep|yup|sure do|i do|i am|correct|right|indeed|of course)\b[\s,.!]*", re.I
)
_NO = re.compile(
    r"^\W*(?:no|nope|nah|never|not really|i don'?t|i'?m not)\b(?:\s+(?:never|really|at all))?[\s,.!]*", re.I
)
_POINTING = re.compile(
    r"^(?:(?:it|he|she|they|that|this)(?:['’]?s|\s+is|\s+are|['’]re|\s+was)|i['’]?m|i am)\s+", re.I
)
_YOURS = {"you": "I", "your": "my", "yours": "mine", "yourself": "myself"}
_PHRASE = frozenset(["PRP", "PRP$", "DT", "NN", "NNP", "POS", "JJ", "CD"])
_OFFERS = lx.bag("want need mean know think remember see understand mind agree wonder hear care try feel")
_TALK = lx.bag("question idea preference thought suggestion plan budget luck favourite time trouble")


@dataclass(frozen=True)
class Reply:
    """A question and its answer as one statement of the user's; `value` is the answer's own part."""

    said: str
    value: str
    quote: str


def replied(message: str, preceding: Sequence[str]) -> Reply | None:
    """Return what a short message states as the answer to the assistant's last question."""
    question = _question(preceding)
    if not question or not message.strip() or len(message) > LONGEST_REPLY or "?" in message:
        return None
    tokens = [_turned(token) for token in tag(tokenize(question)) if token.tag != "PUNCT"]
    quote = message.strip()
    said, value = _polar(tokens, quote) or _open(tokens, _value(message)) or ("", "")
    return Reply(f"{said}.", value, quote) if said else None


def _question(preceding: Sequence[str]) -> str:
    """Return the question that ends the turn before, where the assistant asks one."""
    speaker, _, said = preceding[-1].partition(":") if preceding else ("", "", "")
    last = [said[start:end] for start, end in sentences(said[-1000:])][-1:] if len(said) <= 1000 else []
    asked = speaker.strip().lower() == "assistant" and bool(last) and last[0].rstrip().endswith("?")
    return re.sub(r"^(?:and|so|but|oh|nice|great|cool)\b[\s,!]*", "", last[0], flags=re.I) if asked else ""


def _turned(token: Token) -> Token:
    """Say a question's `you` as the user says `I`."""
    return Token(_YOURS.get(token.low, token.text), token.start, token.end, token.tag)


def _value(message: str) -> str:
    start, _ = without_openers(message, 0, len(message))
    value = _POINTING.sub("", message[start:].strip()).strip(" .,!;:\n")
    tokens = tag(tokenize(value))
    vague = bool(tokens) and tokens[-1].low in {"one", "it", "that", "works"}
    return (
        "" if vague or len(tokens) > 9 or any(token.tag in {"VF", "UH", "WH"} for token in tokens) else value
    )


def _polar(tokens: Sequence[Token], answer: str) -> tuple[str, str] | None:
    """Read yes or no to `Do you have any pets?`, with what follows it (`yeah, two cats`)."""
    yes, no = _YES.match(answer), _NO.match(answer)
    parts = _inverted(tokens) if yes or no else None
    if parts is None or {verb_lemma(token.low) for token in parts[2][:2]} & _OFFERS:
        return None
    auxiliary, subject, rest = parts
    if any(token.lemma in _TALK or token.low in {"me", "this", "that"} for token in rest):
        return None
    more = answer[(yes or no).end() :].strip(" .,!") if yes or no else ""  # type: ignore[union-attr]
    any_at = next((number for number, token in enumerate(rest) if token.low in {"any", "a", "an"}), len(rest))
    further = bool(more) and more.split(maxsplit=1)[0].lower() in lx.PREPOSITIONS
    if more and (len(tokenize(more)) > 6 or (any_at == len(rest) and not further) or no):
        return None
    any_at = len(rest) if further else any_at
    predicate = f"{_text(rest[:any_at])} {more}" if more else _text(rest)
    return f"{_text(subject)} {_verbal(auxiliary, subject, predicate, denied=no is not None)}", more


def _inverted(tokens: Sequence[Token]) -> tuple[Token, list[Token], list[Token]] | None:
    """Part `does your sister live alone` into auxiliary, subject and the rest."""
    if len(tokens) < 3 or tokens[0].low not in lx.BE | {"do", "does", "did"}:
        return None
    end = 1
    while end < len(tokens) and _in_subject(tokens, end):
        end += 1
    return (tokens[0], list(tokens[1:end]), list(tokens[end:])) if 1 < end < len(tokens) else None


def _in_subject(tokens: Sequence[Token], number: int) -> bool:
    """Say whether a token belongs to the subject that starts after the auxiliary."""
    token, first = tokens[number], tokens[1]
    if number == 1:
        return token.tag in _PHRASE or token.low in _YOURS.values()
    one_word = first.low in lx.SUBJECT_PRONOUNS or (first.tag == "NNP" and token.tag != "NNP")
    return not one_word and token.tag in {"NN", "NNP", "POS"} and token.tag in _PHRASE


def _verbal(auxiliary: Token, subject: Sequence[Token], predicate: str, *, denied: bool) -> str:
    low = auxiliary.low
    mine = subject[0].low == "i" and len(subject) == 1
    if low in lx.BE:
        being = "am" if mine and low == "are" else low
        return f"{being}{' not' if denied else ''} {predicate}"
    if denied:
        return f"{'do' if mine else low} not {predicate}"
    verb, _, rest = predicate.partition(" ")
    form = {"did": "VBD", "does": "VBZ"}.get(low, "")
    return f"{inflect(verb_lemma(verb.lower()), form) if form else verb} {rest}".strip()


def _open(tokens: Sequence[Token], value: str) -> tuple[str, str] | None:
    """Put the answer where a question with `what`, `when`, `where`, `who`, `how` leaves a gap."""
    asked = tokens[0].low if tokens else ""
    if not value or asked not in {"what", "which", "when", "where", "who", "how"}:
        return None
    start = next((n for n, t in enumerate(tokens) if n and t.low in lx.BE | lx.DO | {"'s"}), 0)
    parts = _gapped(tokens[start:]) if start else None
    if parts is None:
        return None
    auxiliary, subject, rest = parts
    noun = [token.lemma for token in tokens[1:start]]
    filled = _filled(asked, noun, value)
    if auxiliary.low in lx.BE | {"'s"}:
        being = "am" if _text(subject) == "I" else "are" if auxiliary.low == "are" else "is"
        return f"{_text(subject)} {being} {_text(rest)} {filled}".replace("  ", " "), value
    verbs = _text([token for token in rest if token.low not in {"now", "exactly", "for", "living", "a"}])
    if asked == "what" and not noun and verbs == "do":
        verbs, filled = "work", f"as {value}"
    return f"{_text(subject)} {_verbal(auxiliary, subject, verbs, denied=False)} {filled}", value


def _gapped(tokens: Sequence[Token]) -> tuple[Token, list[Token], list[Token]] | None:
    """Part what follows the question word; after `is` all may be the subject (`is your sister's name`)."""
    found = _inverted([Token("is", 0, 0, "VF"), *tokens[1:], Token(".", 0, 0, "PUNCT")])
    if found is None:
        return None
    rest = [token for token in found[2] if token.tag != "PUNCT"]
    return tokens[0], found[1], rest


def _filled(asked: str, noun: Sequence[str], value: str) -> str:
    """Return the answer with the preposition or unit that the question implies."""
    first = value.split(maxsplit=1)[0].lower().rstrip(",")
    if asked == "how" and noun[:1] == ["old"]:
        return f"{value} years old" if value.isdigit() else value
    if asked == "how" and noun[1:] and value.replace(" ", "").isalnum() and len(value.split()) == 1:
        return f"{value} {noun[-1]}"
    if first in lx.PREPOSITIONS:
        return value
    if asked == "when":
        return f"at {value}" if re.match(r"\d{1,2}(?::\d\d)?\s*(?:am|pm)", first) else f"on {value}"
    return f"in {value}" if asked == "where" else value


def _text(tokens: Sequence[Token]) -> str:
    words = " ".join(token.text for token in tokens)
    return words.replace(" 's", "'s").replace(" n't", "n't")
