"""What a message states that is worth keeping: questions, requests, moods and small talk fall away."""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from prompts.language import lexicon as lx
from prompts.language.grammar import Clause, clause_of, parse_sentence, phrase_before, sentences
from prompts.language.words import Token, verb_form, verb_lemma

LONGEST_READ = 8_000
"""Characters of a message that are read: what lies beyond is pasted text, not somebody talking."""


MOST_CLAUSES = 80
"""Clauses of a message that are kept at most."""


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


_STEP = r"[\s,!.:;…—–*-]*"
_OPENER = re.compile(
    rf"(?:{_STEP}\b(?:oh|wait|hang on|hold on|no(?! longer| more| one|body)|nope|hey|hi|hiya|hello|ok|okay|yeah|yes|yep|yup|"
    r"btw|by the way|sorry|sry|apologies|oops|whoops|my bad|my mistake|ugh|omg|lol|lmao|haha+|well|hmm+|um+|uh+|erm|anyways?|"
    r"fyi|(?:quick |big |small |little |just a )?(?:update|news|correction|typo|reminder)|good news|bad news|guess what|"
    r"scratch that|tbh|to be honest|honestly|actually|just so you know|heads up|so|fun fact|long story short|"
    r"(?:as|like) (?:i|you) (?:said|mentioned|know)|turns out(?: that)?|it turns out(?: that)?|(?:i|what i) mean(?:t)?(?: was| is)?(?: to say)?(?: that)?|"
    r"you(?:'ve| have)? got (?:it|that) wrong|that(?:'s| is| was) (?:wrong|not right|not true|incorrect)|"
    r"(?:please )?be advised that|please note that|i misspoke|in fact|also|"
    r"i(?: would|'d)? (?:like|want|wanted) to (?:inform|tell|let) you(?: know)?(?: that)?)(?![\w'’-]))+"
    + _STEP,
    re.IGNORECASE,
)
_NOTED = re.compile(
    rf"{_STEP}\b(?:please )?(?:note that|keep in mind|bear in mind|write (?:this|that|it) down|make a note|take note|note to self|"
    rf"for (?:future|your) reference|for the record|(?:do not|don't|dont) forget(?! to\b)|remember this)(?: that)?\b{_STEP}",
    re.IGNORECASE,
)
_FILLED = re.compile(
    r"\b(?:tbh|lol|lmao|rofl|btw|fyi|imo|imho|haha+|omg|ngl|smh|xd|by the way|you know what)\b(?!['’])"
    r"|[\U0001F300-\U0001FAFF\u2600-\u27BF\uFE0F]|(?<!\w)[:;]-?[)(DP](?!\w)",
    re.IGNORECASE,
)
_TAIL = re.compile(r",\s*(?:any|some)\b[^,?]{0,60}\?\s*$", re.IGNORECASE)
_SUPPOSED = re.compile(
    r"\b(?:let's say|let us say|suppose|supposing|imagine|let's pretend|pretend|assume|assuming|what if|hypothetically|in theory|"
    r"if i were|if i was)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(
    r"```.{0,20000}?(?:```|\Z)|^[ \t]*>[^\n]*|[“\"][^“”\"\n]{12,2000}[”\"]", re.DOTALL | re.MULTILINE
)
_PASTED = re.compile(
    r"\b(?:translate|summari[sz]e|proofread|rewrite|correct|rephrase|edit|following|text|article|email|e-mail|"
    r"paragraph|passage|letter|message|code|log|quote|lyrics|poem|essay|excerpt|says|said|wrote|goes|reads)\b"
    r"[^\n:.!?]{0,80}:(?=\s)",
    re.IGNORECASE,
)
_JEST = re.compile(
    r"\b(?:just kidding|just joking|jk|kidding|i'm joking|im joking|only joking|as a joke)\b", re.IGNORECASE
)
_REMEMBER = frozenset(["remember", "note", "remind"])
_FILLERS = lx.bag(
    "think guess believe know mean say tell mention realize realise notice find hear see remember note forget"
)
_TALKING = lx.bag(
    "thank agree understand see appreciate wonder ask apologize apologise guess bet promise swear need "
    "think know mean hear say tell mention hope try look wish mix confuse misspeak misremember mistake"
)
_ASKED_FOR = lx.bag(
    "help advice recipe recommendation suggestion information info idea tip summary answer explanation "
    "list example question favor favour hand opinion thought joke story poem"
)
_MASS_FACTS = lx.bag("inhabitant million billion percent resident citizen")
_FLEETING = lx.bag(
    "tired hungry bored sleepy exhausted thirsty cold hot busy fine good great ok okay well ready sure "
    "glad happy sad back home here late confused curious excited sorry stuck done full awake annoyed "
    "upset angry stressed starving nervous freezing alone available free right wrong afraid kidding "
    "joking drunk hungover lost impressed amazed grateful thankful interested surprised lazy cranky mad "
    "grumpy wet sweaty serious able"
)
_MOMENT = re.compile(
    r"\b(?:right now|at the moment|just now|today|tonight|this (?:morning|afternoon|evening|minute|second))\b",
    re.IGNORECASE,
)
_TRIVIAL = lx.bag(
    "eat drink sleep wake nap shower watch sit wait cook rain snow feel yawn relax chill walk listen"
)
_WEATHER = frozenset(["rain", "snow", "hail", "storm", "drizzle", "pour"])
_EVALUATIVE = lx.bag(
    "great good nice cool awesome amazing interesting funny true right wrong fine okay ok perfect "
    "helpful lovely weird crazy hilarious sad bad terrible fun hard easy difficult sure clear important "
    "beautiful fair enough delicious tasty wonderful fantastic correct exciting annoying strange odd "
    "raining snowing sunny cloudy cold hot warm late early time possible better best worth day morning "
    "question idea point shame pity joke"
)
_WORLDLY = lx.bag(
    "capital planet country continent ocean mountain language city president inventor element metal "
    "mammal reptile theory equation war population currency river author programming framework species "
    "animal star galaxy"
)


def read(message: str) -> Reading:
    """Read a message clause by clause and say of each whether it states something worth keeping."""
    text = _spoken(message[:LONGEST_READ])
    if _JEST.search(text):
        return Reading((), "it is a joke")
    found = [one for start, end in sentences(text) for one in _of_sentence(text, start, end)]
    found = found[:MOST_CLAUSES]
    reasons = [one.reason for one in found if one.reason]
    return Reading(tuple(found), reasons[-1] if reasons else _NOTHING)


_NOTHING = "it states nothing lasting about the user or their world"


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
        reason = reason or _unfit(clause, subject, shares, asked or noted, asks and number == len(parsed) - 1)
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
    """Take a fact out of `remember that …`, `I think …`, `I wanted to say that …`; deny it after `forget that`."""
    inner = _inner(clause) if depth else None
    if inner is None:
        return clause, False
    if _retracts(clause):
        return _denied(inner), True
    unwrapped, deeper = _unwrapped(inner, depth - 1)
    return unwrapped, _asks_to_remember(clause) or deeper


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


def _unfit(clause: Clause, subject: Sequence[Token], shares: bool, asked: bool, asks: bool) -> str:
    """Say why a clause is nothing to keep; nothing where it is."""
    if asks or _is_question(clause, shares):
        return "it asks a question"
    if not clause.group:
        return "it states nothing lasting about the user or their world"
    if _is_imperative(clause, shares):
        return "it asks the assistant to do something"
    if _is_hypothetical(clause):
        return "it is hypothetical"
    if asked:
        return ""
    advised = any(token.low in {"should", "ought"} for token in clause.rest)
    if advised and verb_lemma(clause.verbs[-1].low) in lx.SAYING if clause.verbs else False:
        return "it is somebody's advice"
    for judge in (_vacuous, _about_assistant, _about_talk, _fleeting, _about_nothing, _about_the_world):
        reason = judge(clause, subject)
        if reason:
            return reason
    return ""


def _words_of(clause: Clause) -> list[Token]:
    return [token for token in clause.tokens if token.tag not in {"UH", "PUNCT", "CC"}]


def _is_question(clause: Clause, shares: bool) -> bool:
    words = _words_of(clause)
    if not words:
        return False
    if words[0].tag == "WH" and words[0].low != "that":
        return True
    if words[0].low == "any" and any(token.tag == "WH" or token.lemma in _ASKED_FOR for token in words):
        return True
    if clause.subject or shares or not clause.group:
        return False
    first = clause.group[0]
    following = [token for token in [*clause.group[1:], *clause.rest] if token.tag not in {"NEG", "RB"}]
    auxiliary = first.low in lx.BE | lx.HAVE | lx.DO | lx.MODALS
    return (
        auxiliary
        and bool(following)
        and following[0].tag in {"PRP", "DT", "PRP$", "NNP", "NN"}
        and not _is_there(clause)
    )


def _is_there(clause: Clause) -> bool:
    return any(token.low == "there" for token in clause.lead)


def _is_imperative(clause: Clause, shares: bool) -> bool:
    if clause.subject or shares or not clause.verbs or is_naming(clause):
        return False
    first = clause.verbs[0]
    low = first.low
    given = bool(clause.rest) and (clause.rest[0].tag in {"DT", "PRPO", "CD"})
    bare = verb_form(low) == "VB" or (
        verb_form(low) == "VBD" and verb_lemma(low) == low and low != "quit" and given
    )
    return low == "let" or (
        bare and low not in {"'s", "'m"} and low not in lx.LIKING | lx.DISLIKING - {"like"}
    )


def is_naming(clause: Clause) -> bool:
    """Say whether a clause is `call me Sam` or `you can call me Sam`."""
    lows = [token.low for token in clause.tokens]
    return any(one == "call" and two == "me" for one, two in itertools.pairwise(lows))


def _is_hypothetical(clause: Clause) -> bool:
    words = _words_of(clause)
    if any(
        token.low in {"if", "unless", "imagine", "suppose", "supposing", "whatif", "maybe", "perhaps"}
        for token in words
    ):
        return True
    if any(token.low in {"could", "might", "may", "should"} and token.tag == "VF" for token in clause.group):
        return True
    conditional = any(token.low in {"would", "'d"} and token.tag == "VF" for token in clause.group)
    wished = any(verb_lemma(token.low) in {"like", "love", "prefer"} for token in clause.verbs)
    return (conditional and not wished) or any(verb_lemma(token.low) == "wish" for token in clause.verbs)


def _first_person(tokens: Sequence[Token]) -> bool:
    return any(token.low in lx.FIRST_PERSON for token in tokens)


def _vacuous(clause: Clause, subject: Sequence[Token]) -> str:
    """Recognise `we did it`, `I like that`, `they say`: there is no saying what is meant."""
    pointing = {"it", "that", "this", "so"}
    words = [token.low for token in clause.rest if token.tag not in {"PUNCT", "RB", "UH"}]
    verb = verb_lemma(clause.verbs[-1].low) if clause.verbs else ""
    empty = not words and verb in lx.SAYING
    bare = bool(words) and all(word in pointing for word in words)
    return _NOTHING if empty or (bare and verb in {"do", "know", "make", "get", "have", "say"}) else ""


def _about_assistant(clause: Clause, subject: Sequence[Token]) -> str:
    if subject and subject[0].low in {"you", "your"} and not is_naming(clause):
        return "it is about the assistant"
    return ""


def _about_talk(clause: Clause, subject: Sequence[Token]) -> str:
    """Recognise requests and remarks on the conversation that are made as statements."""
    if subject and subject[0].low not in {"i", "we"}:
        return ""
    rest = {token.lemma for token in clause.rest}
    lemmas = [verb_lemma(token.low) for token in clause.verbs]
    if rest & (_ASKED_FOR | _ARTEFACTS) and set(lemmas) & {
        "need",
        "want",
        "have",
        "like",
        "look",
        "love",
        "seek",
        "get",
        "be",
    }:
        return "it asks for something"
    if next((verb_lemma(t.low) for t in clause.rest if t.tag == "V"), "") in {
        "ask",
        "say",
        "tell",
        "mention",
    }:
        return "it remarks on the conversation"
    if any(
        token.low in {"wrong", "right", "mistaken", "correct", "sure", "curious"} for token in clause.rest[:2]
    ):
        return "it remarks on the conversation"
    addressed = any(token.low in {"you", "your"} for token in clause.rest)
    wanting = set(lemmas) & {"need", "want", "like", "love"}
    next_verb = next((verb_lemma(token.low) for token in clause.rest if token.tag == "V"), "")
    if wanting and (
        addressed
        or next_verb in {"know", "ask", "hear", "see", "understand", "order", "find", "figure", "discuss"}
    ):
        return "it asks for something"
    if any(token.low in {"'d", "would"} for token in clause.group) and not next_verb:
        return "it asks for something"
    return "it remarks on the conversation" if lemmas and lemmas[-1] in _TALKING and next_verb == "" else ""


_SPOTS = lx.bag(
    "meeting car bus train gym airport store shop bed bath kitchen bathroom queue line hurry way phone "
    "call traffic break mood couch sofa park beach station supermarket restaurant cafe door moment"
)


def _fleeting(clause: Clause, subject: Sequence[Token]) -> str:
    """Recognise moods, whereabouts and doings of the moment."""
    reason = "it is a passing state"
    text = " ".join(token.low for token in clause.tokens)
    if re.search(r"\b(?:right now|at the moment|this (?:minute|second))\b", text):
        return reason
    main = clause.verbs[-1] if clause.verbs else clause.tokens[-1]
    being = any(token.low in lx.BE | {"'s"} for token in clause.verbs)
    state = (
        (being and main.tag == "V" and verb_form(main.low) != "VBG")
        or verb_lemma(main.low) in {"be", "feel", "get", "look", "seem"}
        or main.low in lx.BE | {"'s"}
    )
    words = _described_as(clause)
    if (
        state
        and any(token.low in _FLEETING for token in words[:3])
        and len(words) <= 5
        and not _lasting(clause)
    ):
        return reason
    progressive = verb_form(main.low) == "VBG"
    ailing = verb_lemma(main.low) == "have" and any(token.low in _AILMENTS for token in clause.rest[:3])
    if ailing or (progressive and any(token.low in _FLEETING for token in clause.rest[:1])):
        return reason
    if (state or progressive) and _MOMENT.search(text):
        return reason
    if state and any(token.lemma in _SPOTS for token in clause.rest) and clause.rest[0].tag in {"IN", "RB"}:
        return reason
    trivial = verb_lemma(main.low) in _TRIVIAL and not any(token.tag == "NEG" for token in clause.group)
    past = verb_form(main.low) == "VBD" and "used" not in text
    recent = _MOMENT.search(text) or any(token.low == "just" for token in clause.group)
    return reason if trivial and (progressive or (past and recent)) else ""


def _described_as(clause: Clause) -> list[Token]:
    """Return the content words of a state, up to a clause inside it (`so hungry I could …`)."""
    tokens = [*clause.verbs[-1:], *clause.rest]
    end = next((n for n, token in enumerate(tokens) if n and token.tag in {"PRP", "WH", "SUB"}), len(tokens))
    back = any(one.low == "back" and two.low in {"to", "in"} for one, two in itertools.pairwise(tokens))
    return (
        []
        if back
        else [
            t
            for t in tokens[:end]
            if t.tag in {"JJ", "NN", "V", "RB"} and t.low not in {"a", "bit", "so", "very", "really"}
        ]
    )


def _lasting(clause: Clause) -> bool:
    lows = {token.low for token in clause.tokens}
    return bool(
        lows & {"always", "usually", "often", "allergic", "of", "anymore", "never", "about", "every", "years"}
    )


def _about_nothing(clause: Clause, subject: Sequence[Token]) -> str:
    """Recognise `it's raining`, `that's great`, `there is …`."""
    if _is_there(clause) and not subject:
        return "it is no statement about the user"
    if (
        not subject
        or subject[0].low not in {"it", "that", "this", "what", "these", "those"}
        or len(subject) > 1
    ):
        return ""
    lemmas = {token.lemma for token in clause.rest} | {verb_lemma(token.low) for token in clause.verbs}
    if subject[0].low != "it" or lemmas & (
        _EVALUATIVE | _WEATHER | {"sound", "make", "depend", "matter", "seem"}
    ):
        return "it is small talk"
    return ""


def _about_the_world(clause: Clause, subject: Sequence[Token]) -> str:
    """Recognise general knowledge: nobody of the user's world is in it."""
    if not subject or _first_person([*clause.tokens, *subject]) or subject[0].tag in {"PRP", "PRP$"}:
        return ""
    if subject[0].low in lx.BARE_KIN:
        return ""
    reason = "it is general knowledge, not about the user"
    name = [token for token in subject if token.tag == "NNP"]
    if name:
        lemmas = {token.lemma for token in [*clause.rest, *subject]}
        article = subject[0].low == "the" and name[0].low not in lx.TIME_NOUNS
        made = verb_lemma(clause.verbs[-1].low) in _MAKING and any(token.low == "by" for token in clause.rest)
        known = lemmas & (_WORLDLY | _MASS_FACTS) or article or made
        return reason if known or subject[0].low in _PLURAL_WORLD else ""
    definite = subject[0].low in {"the", "this"} and len(subject) <= 6
    placed = any(
        token.tag in {"NNP", "CD"} or token.low.rstrip("s") in lx.TIME_NOUNS for token in clause.rest
    )
    of = any(token.low == "of" for token in subject)
    return "" if definite and placed and not of else reason


_MAKING = lx.bag("create invent discover write found build compose paint direct develop design")
_AILMENTS = lx.bag("headache cold fever hangover cough lunch dinner breakfast brunch snack")
_ARTEFACTS = lx.bag("table chart image picture photo code script version translation paragraph outline")
_PLURAL_WORLD = lx.bag("scientists experts researchers people everyone many most")
