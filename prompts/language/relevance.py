"""Whether a clause is worth keeping: questions, requests, moods and small talk are not."""

import itertools
import re
from collections.abc import Sequence

from prompts.language import lexicon as lx
from prompts.language.grammar import Clause
from prompts.language.words import Token, verb_form, verb_lemma

_TALKING = lx.bag(
    "thank agree understand see appreciate wonder ask apologize apologise guess bet promise swear joke "
    "kid think know mean hear say tell mention hope try look wish mix confuse misspeak misremember "
    "mistake"
)


_ASKED_FOR = lx.bag(
    "help advice recipe recommendation suggestion information info idea tip summary answer explanation "
    "list example question favor favour hand opinion thought joke story poem"
)


_MASS_FACTS = lx.bag("inhabitant million billion percent resident citizen")


_FLEETING = lx.bag(
    "convinced tired hungry bored sleepy exhausted thirsty cold hot busy fine good great ok okay well "
    "ready sure glad happy sad back home here late confused curious excited sorry stuck done full awake "
    "annoyed upset angry stressed starving nervous freezing alone available free right wrong afraid "
    "kidding joking drunk hungover lost impressed amazed grateful thankful interested surprised lazy "
    "cranky mad grumpy wet sweaty serious able"
)


_MOMENT = re.compile(
    r"\b(?:right now|at the moment|just now|today|tonight|"
    r"this (?:morning|afternoon|evening|minute|second))\b",
    re.IGNORECASE,
)


_TRIVIAL = lx.bag(
    "arrive land head eat drink sleep wake nap shower watch sit wait cook rain snow feel yawn relax chill "
    "walk listen"
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


NOTHING = "it states nothing lasting about the user or their world"


_SPOTS = lx.bag(
    "middle meeting car bus train gym airport store shop bed bath kitchen bathroom queue line hurry way "
    "phone call traffic break mood couch sofa park beach station supermarket restaurant cafe door moment"
)


_MAKING = lx.bag("create invent discover write found build compose paint direct develop design")


_AILMENTS = lx.bag("headache cold fever hangover cough lunch dinner breakfast brunch snack day time night")


_ARTEFACTS = lx.bag(
    "direction table chart image picture photo code script version translation paragraph outline"
)


_SAID_HERE = frozenset(["question", "point", "prompt", "request"])
_MUDDLED = frozenset(["mix", "mixed", "misspoke", "misremembered", "confused", "muddled"])
_SEEKING = lx.bag("need want have like look love seek get be")
_FINDING_OUT = lx.bag("know ask hear see understand order find figure discuss book reserve")
_TRUTH = lx.bag("wrong right mistaken correct sure curious")
_PLURAL_WORLD = lx.bag("scientists experts researchers people everyone many most")


def unfit(clause: Clause, subject: Sequence[Token], shares: bool, asked: bool, asks: bool) -> str:
    """Say why a clause is nothing to keep; nothing where it is."""
    forms = (
        (asks or _is_question(clause, shares), "it asks a question"),
        (not clause.group, NOTHING),
        (_is_imperative(clause, shares), "it asks the assistant to do something"),
        (_is_hypothetical(clause), "it is hypothetical"),
    )
    reason = next((reason for holds, reason in forms if holds), "")
    if reason or asked:
        return reason
    judged = (judge(clause, subject) for judge in _JUDGES)
    return next((reason for reason in judged if reason), "")


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
    pronoun = bool(subject) and subject[0].tag == "PRP"
    empty = not words and (verb in {"say", "tell", "think", "mention"} or (verb in lx.SAYING and pronoun))
    bare = bool(words) and all(word in pointing for word in words)
    return NOTHING if empty or (bare and verb in {"do", "know", "make", "get", "have", "say"}) else ""


def _about_assistant(clause: Clause, subject: Sequence[Token]) -> str:
    if subject and subject[0].low in {"you", "your"} and not is_naming(clause):
        return "it is about the assistant"
    if subject and subject[-1].lemma in _SAID_HERE:
        return "it remarks on the conversation"
    if subject and subject[0].low in _PLURAL_WORLD and verb_lemma(clause.verbs[-1].low) in lx.SAYING:
        return "it is hearsay"
    return ""


def _about_talk(clause: Clause, subject: Sequence[Token]) -> str:
    """Recognise requests and remarks on the conversation that are made as statements."""
    if subject and subject[0].low not in {"i", "we"}:
        return ""
    if _asks_for(clause):
        return "it asks for something"
    if any(token.low in {"you", "your", "yours"} for token in clause.rest):
        return "it is about the assistant"
    next_verb = _next_verb(clause)
    about_truth = any(token.low in _TRUTH for token in clause.rest[:2])
    said = bool(clause.verbs) and verb_lemma(clause.verbs[-1].low) in _TALKING and not next_verb
    muddled = any(t.low in _MUDDLED for t in [*clause.verbs, *clause.rest])
    muddled = muddled or (next_verb in _FINDING_OUT and verb_lemma(clause.verbs[-1].low) == "try")
    remark = muddled or about_truth or said or next_verb in {"ask", "say", "tell", "mention"}
    return "it remarks on the conversation" if remark else ""


def _fleeting(clause: Clause, subject: Sequence[Token]) -> str:
    """Recognise moods, whereabouts and doings of the moment."""
    reason = "it is a passing state"
    text = " ".join(token.low for token in clause.tokens)
    if re.search(r"\b(?:right now|at the moment|this (?:minute|second))\b", text):
        return reason
    main = _main_verb(clause)
    being = any(token.low in lx.BE | {"'s"} for token in clause.verbs)
    state = (
        (being and main.tag == "V" and verb_form(main.low) != "VBG")
        or verb_lemma(main.low) in {"be", "feel", "get", "look", "seem"}
        or main.low in lx.BE | {"'s"}
    )
    words = [] if _names_thing(clause) else _described_as(clause)
    if (
        state
        and any(token.low in _FLEETING for token in words[:3])
        and len(words) <= 5
        and not _lasting(clause)
    ):
        return reason
    progressive = verb_form(main.low) == "VBG"
    ailing = verb_lemma(main.low) == "have" and any(token.low in _AILMENTS for token in clause.rest[:3])
    ailing = ailing or (
        verb_lemma(main.low) == "have" and any(t.low in {"day", "time", "night"} for t in clause.rest[:4])
    )
    ailing = ailing and not _lasting(clause)
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


def _names_thing(clause: Clause) -> bool:
    """Say whether a noun phrase follows (`got a hot tub`), not a degree (`a bit tired`)."""
    opens = [token.low for token in clause.rest[:2]]
    return len(opens) > 1 and opens[0] in {"a", "an", "the"} and opens[1] not in {"bit", "little", "tad"}


def _main_verb(clause: Clause) -> Token:
    """Return the first verb that is no auxiliary, else the last verb."""
    auxiliaries = lx.BE | lx.HAVE | lx.DO | lx.MODALS | {"'s", "'d"}
    main = next((token for token in clause.verbs if token.low not in auxiliaries), None)
    return main or (clause.verbs[-1] if clause.verbs else clause.tokens[-1])


def _lasting(clause: Clause) -> bool:
    lows = {token.low for token in clause.tokens}
    return bool(
        lows
        & {
            "always",
            "usually",
            "often",
            "allergic",
            "of",
            "anymore",
            "never",
            "about",
            "since",
            "every",
            "years",
        }
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
        article = (
            subject[0].low == "the"
            and not any(t.tag == "POS" for t in subject)
            and name[0].low not in lx.TIME_NOUNS
        )
        work = any(token.low == "by" or token.tag == "NNP" for token in clause.rest)
        made = (
            work and verb_lemma(clause.verbs[-1].low) in _MAKING and verb_form(clause.verbs[-1].low) == "VBD"
        )
        known = lemmas & (_WORLDLY | _MASS_FACTS) or article or made
        return reason if known or subject[0].low in _PLURAL_WORLD else ""
    definite = subject[0].low in {"the", "this"} and len(subject) <= 6
    placed = any(
        token.tag in {"NNP", "CD"} or token.low.rstrip("s") in lx.TIME_NOUNS for token in clause.rest
    )
    of = any(token.low == "of" for token in subject)
    return "" if definite and placed and not of else reason


def _about_advice(clause: Clause, subject: Sequence[Token]) -> str:
    advised = any(token.low in {"should", "ought"} for token in clause.rest)
    saying = bool(clause.verbs) and verb_lemma(clause.verbs[-1].low) in lx.SAYING
    return "it is somebody's advice" if advised and saying else ""


def _asks_for(clause: Clause) -> bool:
    """Recognise `I need a recipe`, `I want you to …`, `I'd like a …`."""
    lemmas = {verb_lemma(token.low) for token in clause.verbs}
    if {token.lemma for token in clause.rest} & (_ASKED_FOR | _ARTEFACTS) and lemmas & _SEEKING:
        return True
    addressed = any(token.low in {"you", "your"} for token in clause.rest)
    wanting = lemmas & {"need", "want", "like", "love"}
    next_verb = _next_verb(clause)
    if wanting and (addressed or next_verb in _FINDING_OUT):
        return True
    return any(token.low in {"'d", "would"} for token in clause.group) and not next_verb


def _next_verb(clause: Clause) -> str:
    return next((verb_lemma(token.low) for token in clause.rest if token.tag == "V"), "")


_JUDGES = (
    _about_advice, _vacuous, _about_assistant, _about_talk, _fleeting, _about_nothing, _about_the_world,
)  # fmt: skip
