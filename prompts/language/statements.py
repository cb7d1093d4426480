"""What a message states: clauses found, unwrapped, and judged one by one."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from prompts.language import lexicon as lx
from prompts.language.grammar import Clause, clause_of, parse_sentence, phrase_before, sentences
from prompts.language.relevance import NOTHING, unfit
from prompts.language.words import Token, verb_form, verb_lemma

LONGEST_READ = 8_000


MOST_CLAUSES = 80


_STEP = r"[\s,!.:;…—–*-]*"


_OPENER = re.compile(
    rf"(?:{_STEP}\b(?:oh|wait|hang on|hold on|no(?! longer| more| one|body)|nope|hey|hi|"
    r"hiya|hello|ok|okay|yeah|yes|yep|yup|"
    r"btw|by the way|sorry|sry|apologies|oops|whoops|my bad|my mistake|ugh|omg|lol|lmao|"
    r"haha+|well|hmm+|um+|uh+|erm|anyways?|"
    r"fyi|(?:quick |big |small |little |just a )?(?:update|news|correction|typo|reminder)|"
    r"good news|bad news|guess what|"
    r"scratch that|tbh|to be honest|honestly|actually|just so you know|heads up|so|"
    r"(?:just )?to (?:correct myself|clarify|be clear|be precise)|fun fact|long story short|"
    r"(?:as|like) (?:i|you) (?:said|mentioned|know)|turns out(?: that)?|it turns out(?: that)?|"
    r"(?:i|what i) mean(?:t)?(?: was| is)?(?: to say)?(?: that)?|"
    r"you(?:'ve| have)? got (?:it|that) wrong|that(?:'s| is| was) (?:wrong|not right|not true|incorrect)|"
    r"(?:please )?be advised that|please note that|i misspoke|in fact|also|"
    r"i(?: would|'d)? (?:like|want|wanted) to (?:inform|tell|let) you(?: know)?(?: that)?)(?![\w'’-]))+"
    + _STEP,
    re.IGNORECASE,
)


_NOTED = re.compile(
    rf"{_STEP}\b(?:please )?(?:note that|keep in mind|bear in mind|write (?:this|that|it) down|"
    rf"make a note|take note|note to self|"
    rf"for (?:future|your) reference|for the record|(?:do not|don't|dont) forget(?! to\b)|"
    rf"remember this)(?: that)?\b{_STEP}",
    re.IGNORECASE,
)


_FILLED = re.compile(
    r"\b(?:tbh|lol|lmao|rofl|btw|fyi|imo|imho|haha+|omg|ngl|smh|xd|by the way|you know what|"
    r",\s*(?:please )?remember (?:that|this)(?=[.!]|\s*$)|"
    r"(?:,\s*)?as (?:you|i) (?:know|said|mentioned|told you)(?=[.!,]|\s*$))\b(?!['’])"
    r"|[\U0001F300-\U0001FAFF\u2600-\u27BF\uFE0F]|(?<!\w)[:;]-?[)(DP](?!\w)",
    re.IGNORECASE,
)


_TAIL = re.compile(r",\s*(?:any|some)\b[^,?]{0,60}\?\s*$", re.IGNORECASE)


_SUPPOSED = re.compile(
    r"\b(?:let's say|let us say|suppose|supposing|imagine|let's pretend|"
    r"pretend|assume|assuming|what if|hypothetically|in theory|in case|"
    r"if i were|if i was)\b",
    re.IGNORECASE,
)


_QUOTED = re.compile(
    r"```.{0,20000}?(?:```|\Z)|^[ \t]*>[^\n]*|[“\"][^“”\"\n]{12,2000}[”\"]", re.DOTALL | re.MULTILINE
)


_PASTED = re.compile(
    r"\b(?:(?:translate|summari[sz]e|proofread|rewrite|correct(?! myself)|rephrase|edit|following)\b"
    r"[^\n:.!?]{0,80}:(?=\s)"
    r"|(?:text|article|email|e-mail|paragraph|passage|letter|message|code|log|quote|lyrics|poem|essay|excerpt|"
    r"says|said|wrote|goes|reads)\b[^\n:.!?]{0,80}:(?=\s[\s\S]{40}))",
    re.IGNORECASE,
)
_JEST = re.compile(
    r"\b(?:just kidding|just joking|jk|kidding|i'm joking|im joking|only joking|as a joke)\b", re.IGNORECASE
)


_REMEMBER = frozenset(["remember", "note", "remind"])


_FILLERS = lx.bag(
    "think guess believe know mean say tell mention realize realise notice find hear see remember note "
    "forget clarify admit confess"
)


@dataclass(frozen=True)
class Statement:
    """A clause and why it falls away (nothing where it is kept).

    `subject` is its own, or the one it shares with the clause before.
    """

    clause: Clause
    subject: tuple[Token, ...]
    reason: str = ""


@dataclass(frozen=True)
class Reading:
    """Every clause of a message in order, and in one phrase why the ones not kept fell away."""

    statements: tuple[Statement, ...]
    dropped: str


def read(message: str) -> Reading:
    """Read a message clause by clause and say of each whether it states something worth keeping."""
    text = _spoken(message[:LONGEST_READ])
    if _JEST.search(text):
        return Reading((), "it is a joke")
    found = [one for start, end in sentences(text) for one in _of_sentence(text, start, end)]
    found = found[:MOST_CLAUSES]
    reasons = [one.reason for one in found if one.reason]
    return Reading(tuple(found), reasons[-1] if reasons else NOTHING)


def _spoken(message: str) -> str:
    """Blank quoted and pasted text, keeping every place in the message as it was."""
    blanked = _QUOTED.sub(lambda match: " " * len(match.group()), message)
    blanked = _FILLED.sub(lambda match: " " * len(match.group()), blanked)
    pasted = _PASTED.search(blanked)
    return blanked if pasted is None else blanked[: pasted.start()] + " " * (len(blanked) - pasted.start())


def without_openers(text: str, start: int, end: int) -> tuple[int, bool]:
    """Return where a sentence starts after `oh wait, no,` and the like, and whether it asks to be noted."""
    asked = False
    for _ in range(4):
        noted = _NOTED.match(text, start, end)
        opened = noted or _OPENER.match(text, start, end)
        if opened is None or opened.end() == start:
            break
        asked, start = asked or noted is not None, opened.end()
    return start, asked


def _of_sentence(text: str, start: int, end: int) -> list[Statement]:
    asks = text[start:end].rstrip("\"')”’ ").endswith("?")
    supposed = _SUPPOSED.search(text, start, end) is not None
    start, noted = without_openers(text, start, end)
    tail = _TAIL.search(text, start, end) if asks else None
    asks, end = (False, tail.start()) if tail is not None else (asks, end)
    parsed = parse_sentence(text, start, end)
    found, subject = list[Statement](), tuple[Token, ...]()
    for number, whole in enumerate(parsed):
        clause, asked = _unwrapped(whole)
        shares = not clause.subject and number > 0 and bool(clause.group) and _coordinated(clause)
        supposed = supposed or (number > 0 and _opens_if(parsed[number - 1]) and not _coordinated(clause))
        subject = subject if shares else clause.subject
        reason = found[-1].reason if shares and found else ""
        reason = "it is hypothetical" if supposed else reason
        reason = reason or unfit(clause, subject, shares, asked or noted, asks and number == len(parsed) - 1)
        found += [] if supposed or not reason else _attached(whole)
        found.append(Statement(clause, tuple(subject), reason))
    return found


def _attached(clause: Clause) -> list[Statement]:
    """Return what a question or request says in passing: `my son, who is …`, `as a diabetic, …`."""
    found = list[Statement]()
    for number, token in enumerate(clause.tokens):
        if token.tag == "WH" and token.low in {"who", "which", "that"} and number:
            inner = _relative(clause.tokens, number)
            found += [Statement(inner, inner.subject)] if inner is not None else []
    return found + _as_someone(clause) + _asked_to_change(clause)


def _asked_to_change(clause: Clause) -> list[Statement]:
    """Read `update my shoe size to 43` as `my shoe size is 43`."""
    words = [token for token in clause.tokens if token.tag not in {"UH", "CC", "PUNCT"}]
    to = next((number for number, token in enumerate(words) if token.low == "to"), 0)
    asked = bool(words) and verb_lemma(words[0].low) in {"update", "change", "correct", "set"}
    if not asked or to < 3 or words[1].low not in {"my", "our"} or to + 1 >= len(words):
        return []
    value, subject = tuple(words[to + 1 :]), tuple(words[1:to])
    if not any(token.tag in {"CD", "NNP"} or "@" in token.text for token in value):
        return []
    place = words[to].start
    return [
        Statement(Clause((*subject, *value), (), subject, (Token("is", place, place, "VF"),), value), subject)
    ]


def _relative(tokens: Sequence[Token], number: int) -> Clause | None:
    phrase = phrase_before(tokens, number)
    mine = any(token.low in {"my", "our"} for token in phrase)
    if not mine or number + 1 >= len(tokens) or tokens[number + 1].tag not in {"VF", "RB"}:
        return None
    end = next((n for n in range(number + 1, len(tokens)) if tokens[n].tag == "PUNCT"), len(tokens))
    return clause_of([*phrase, *tokens[number + 1 : end]])


def _as_someone(clause: Clause) -> list[Statement]:
    tokens = [token for token in clause.tokens if token.tag not in {"UH", "CC"}]
    if len(tokens) < 3 or not any(token.low in {"i", "me", "my"} for token in tokens):
        return []
    opens = tokens[0].low == "being" or (tokens[0].low == "as" and tokens[1].low in {"a", "an", "someone"})
    end = next((number for number, token in enumerate(tokens) if token.text == ","), 0)
    if not opens or not end:
        return []
    start = tokens[1].start
    subject = (Token("I", start, start, "PRP"),)
    rest = tuple(tokens[1:end])
    return [Statement(Clause(rest, (), subject, (Token("am", start, start, "VF"),), rest), subject)]


def _opens_if(clause: Clause) -> bool:
    return any(token.low in {"if", "unless"} for token in clause.tokens[:2])


def _coordinated(clause: Clause) -> bool:
    listed = all(token.tag in {"PUNCT", "RB"} for token in clause.lead) and clause.tokens[0].text == ","
    joined = any(token.tag == "CC" or token.low == "then" for token in clause.lead)
    return joined or (listed and bool(clause.verbs) and verb_form(clause.verbs[0].low) in {"VBD", "VBZ"})


def _unwrapped(clause: Clause, depth: int = 4) -> tuple[Clause, bool]:
    """Take a fact out of `remember that …`, `I think …`, `I'm told that …`; deny it after `forget that`."""
    clause = _uncleft(clause)
    inner = _inner(clause) if depth else None
    if inner is None:
        return clause, False
    if _retracts(clause):
        return _denied(inner), True
    unwrapped, deeper = _unwrapped(inner, depth - 1)
    return unwrapped, _asks_to_remember(clause) or deeper


def _uncleft(clause: Clause) -> Clause:
    """Read `it was my uncle who left` as `my uncle left`, `it is a car that I drive` as `I drive a car`."""
    who = next((n for n, token in enumerate(clause.rest) if token.tag in {"WH", "COMP"}), 0)
    pointing = len(clause.subject) == 1 and clause.subject[0].low == "it"
    being = bool(clause.verbs) and clause.verbs[-1].low in lx.BE | {"'s"}
    if not (pointing and being and 0 < who < len(clause.rest) - 1):
        return clause
    but = next((n for n, token in enumerate(clause.rest[:who]) if token.low == "but"), -1)
    phrase, after = list(clause.rest[but + 1 : who]), list(clause.rest[who + 1 :])
    whole = [*after, *phrase] if after[0].tag in {"PRP", "DT", "PRP$", "NNP"} else [*phrase, *after]
    inner = clause_of(whole)
    return inner if inner is not None and inner.group and inner.subject else clause


def _retracts(clause: Clause) -> bool:
    verbs = [token for token in clause.tokens if token.tag in {"V", "VF"}]
    return not clause.subject and bool(verbs) and verb_lemma(verbs[0].low) == "forget"


def _denied(clause: Clause) -> Clause:
    """Say of a clause that it is no longer so."""
    verb = clause.group[0]
    no = (Token("no", verb.end, verb.end, "NEG"), Token("longer", verb.end, verb.end, "RB"))
    auxiliary = verb.low in lx.BE | lx.HAVE | lx.MODALS | {"'s"}
    group = (verb, *no, *clause.group[1:]) if auxiliary else (*no, *clause.group)
    return Clause(clause.tokens, clause.lead, clause.subject, group, clause.rest)


def _asks_to_remember(clause: Clause) -> bool:
    return any(verb_lemma(token.low) in _REMEMBER for token in clause.tokens[:8] if token.tag in {"V", "VF"})


def _inner(clause: Clause) -> Clause | None:
    """Return the clause inside a filler verb's, where there is one."""
    addressed = bool(clause.subject) and clause.subject[0].low == "you"
    speaker = not clause.subject or clause.subject[0].low == "i" or addressed or _expert(clause.subject)
    if (
        not clause.subject
        and clause.verbs
        and verb_lemma(clause.verbs[0].low) in {"tell", "say", "find", "hear", "see"}
    ):
        return None
    verbs = [number for number, token in enumerate(clause.tokens) if _is_filler(token)]
    if (
        verbs
        and addressed
        and verb_lemma(clause.tokens[verbs[0]].low) in {"say", "tell", "mention", "think", "mean"}
    ):
        return None
    if (
        verbs
        and any(token.tag == "NEG" for token in clause.tokens[: verbs[0]])
        and not _forgets(clause.tokens[verbs[0]])
    ):
        return None
    if not speaker or not verbs or any(token.tag == "WH" for token in clause.tokens[: verbs[0]]):
        return None
    rest = list(clause.tokens[verbs[0] + 1 :])
    while rest and (rest[0].tag in {"COMP", "PUNCT", "RB"} or rest[0].low in {"you", "to", "that", "this"}):
        rest.pop(0)
    inner = clause_of(rest) if rest and rest[0].tag not in {"WH", "IN", "VF", "SUB"} else None
    return inner if inner is not None and inner.group and inner.subject else None


def _forgets(token: Token) -> bool:
    return verb_lemma(token.low) == "forget"


def _expert(subject: Sequence[Token]) -> bool:
    return len(subject) <= 3 and subject[-1].lemma in {
        "doctor",
        "vet",
        "dentist",
        "gp",
        "therapist",
        "doc",
        "test",
    }


def _is_filler(token: Token) -> bool:
    return token.tag in {"V", "VF"} and verb_lemma(token.low) in _FILLERS
