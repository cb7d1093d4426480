"""Which sentences of an English message say something, and how they read in the third person.

Nothing is composed, resolved or left out of a sentence: it stays as it was typed, but for `I` → `the user`.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sentencex import segment

from mneme.prompts.chat.evidence import words
from mneme.rules.words import base_of, lemmas_of, third_person, words_in

LONGEST_READ = 20_000
"""Characters of a message that are read: what is longer is a document."""
MAX_CHARS = 1000
"""Characters of a statement that stands in one memory; a longer one is split between words."""
SMALL_TALK = words_in(
    "hi hello hey heya hiya yo sup good morning afternoon evening night day thanks thank thx ty cheers ta "
    "you u so much very a lot for that this your the help again ok okay k kk cool great nice awesome "
    "perfect brilliant lovely amazing wonderful fantastic excellent splendid sweet neat super grand fine "
    "sure yes yep yeah yup no nope nah aye really lol lmao ha haha hahaha hehe rofl wow oh ah aha ooh hmm "
    "hm huh um mm eh phew yay ugh well right alright bye goodbye see ya later soon tomorrow then talk to "
    "ttyl one two three testing point true fair enough indeed exactly agreed makes make sense got it "
    "understood noted interesting funny hilarious is it's thats that's was of course problem worries np "
    "welcome please sorry oops whoops never mind nevermind nvm wait anyway appreciate obliged idea job work "
    "done how are doing going what's up there all too just be useful helpful clear you're youre best legend "
    "star lifesaver genius bot mate friend buddy partner dude man have weekend sounds like will do bit more "
    "on same and or but not bad quick question here back i i'll i'm off now luck gotcha whatever kidding "
    "totally absolutely definitely deal howdy hope sleep tight take care catch worked million kind poor "
    "dear thing things happen touché spot hear knock typical close moment sec hang hold onwards carry go in "
    "touch these button wrong ignore nite wassup"
)
"""A sentence of these words alone is small talk."""
POLITE = words_in("thanks thank thx ty cheers bless goodnight bye hello hi hey")
OPENING = (
    r"^(?:\W|(?:so|and|but|ok|okay|hey|hi|hello|well|also|oh|btw|um|sorry|please|pls|plz|kindly|thanks)\b)*"
)
AUXILIARY = r"(?:can|could|would|will|should|shall|may|might|do|does|did|is|are|am|was|were|has|have)"
ASKING = re.compile(
    OPENING + rf"(?:(?:when|where)(?:['’]?s\b|(?= {AUXILIARY}\b))"
    r"|(?:what|wat|wot|who|whose|whom|which|why|how|any\w*)(?:['’]?(?:s|re|d))?\b"
    rf"|{AUXILIARY}(?:n['’]?t)? (?:i|you|u|we|he|she|it|they|this|that|there|the|an?|my|your|his|her|any\w*|"
    r"some\w*|(?-i:[A-Z]\w+))\b)",
    re.IGNORECASE,
)
TASK = re.compile(
    OPENING
    + r"(?:(?:explain|translate|summari[sz]e|compare|define|describe|calculate|compute|convert|continue|"
    r"recommend|suggest|proofread|rephrase|rewrite|generate|compose|solve|elaborate|expand|clarify|repeat|remind|help)\b"
    r"|(?:write|tell|give|show|list|find|make|create|draft|sing|draw|plan|fix|debug|check|name|look up)"
    r"(?= (?:me |us )?(?:this|these|it|out|with|an?|the|some|another|more|about|how|what|"
    r"why|if|\d+|two|three|four|five|six|ten)\b))"
    r"(?!.*\b(?:always|never|every|whenever|from now on)\b)",
    re.IGNORECASE,
)
REACTION = re.compile(
    r"\W*(?:(?:and|so|but|ok|okay|well) )*(?:thanks?|thx|ty|cheers|good (?:morning|afternoon|evening|night|"
    r"day)|g['’]day|hello|hi|hey|howdy|"
    r"happy new year|happy \w+|merry \w+|see you|bye|talk to you|(?:ha)+|lol|wow|oh|ooh|aww?|sorry|ok|okay|"
    r"perfect|amazing|nice|great|lovely|brilliant|bless|well done|gold star|not bad|no way|fair|spot on|hope|"
    r"hang on|hold on|sure|you(?:['’]?re)?|that['’]?s|that (?:is|was|did|works|worked|helps|helped)|"
    r"(?:it['’]?s |so |bit |proper |too )*(?:raining|snowing|sunny|cold|hot|humid|gr[ea]y|windy|freezing))\b",
    re.IGNORECASE,
)
EVIDENCE = re.compile(
    r"\b(?:i|i['’]?m|i['’]?ve|my(?! dear| friend| love)|mine|we|our|us|he|she|they|his|her|their|"
    r"always|never|every|no|not|don['’]?t)\b"
    r"|\d|`|(?<=[a-z,] )(?-i:(?!God)[A-Z][a-z])",
    re.IGNORECASE,
)
"""What tells something in a sentence: a person, a number, a name, code, or how it is always to be done."""
COMMENT = re.compile(
    r"\W*(?:nice|omg|yum|neat|right|alright|wow|yay|phew|super|brilliant|good one)\W+"
    r"(?:that|those|off|back|take)(?:['’]?s)?\b[^,.;]{0,40}$",
    re.IGNORECASE,
)
"""A short reaction to an answer, or a leave-taking: `Nice, that compiled`, `Right, off for a run!`.

It counts only where the sentence has no `EVIDENCE`: `Right, that's my brother Tom` is a statement.
"""
STRETCHED = re.compile(r"(\w)\1{2,}")
COMMA = re.compile(r"[,;!–—]\s*")
TAG = re.compile(r",? (?:ok|okay|right|yeah|please|eh|innit)\?+$", re.IGNORECASE)
"""What makes a question of a statement or an instruction: `No jokes at work, ok?`"""
CLAUSES = re.compile(
    r"(?:[,;–—]|\s-)\s+"
    r"|\s+(?=(?:because|since|given|now|considering) |(?:but|and|as) (?:i|im|my|we|he|she|they)\b)",
    re.IGNORECASE,
)
STATING = re.compile(
    r"(?:(?:because|since|given that|now that|considering|but|and|as|so|btw) )*"
    r"(?:i|i['’]?m|i['’]?ve|my|we|our|he|she|it|they|his|her|their|there|been|(?-i:[A-Z]\w+))(?:['’]\w+)?\b",
    re.IGNORECASE,
)
TITLE = re.compile(r"\b(?:Mr|Mrs|Ms|Mx|Dr|Prof|St|Fr|Sr|Rev|Sgt|Lt|Capt|Col|Gen|Hon)\.\s*$")
OF_SELF = re.compile(r"\b(?:i|im|ive|my|mine|me|we|our|us)\b", re.IGNORECASE)
REFERRING = re.compile(
    r"\W*(?:(?:and|but|so|also|then|sorry|oops|no|wait|actually)\W+)*"
    r"(?:he|she|they|it|his|hers?|theirs?|its|him|them|ours|mine|there|that|this|these|both|i meant?)\b",
    re.IGNORECASE,
)
VERBATIM = re.compile(r"(`[^`]*`|\"[^\"]*\"|“[^”]*”|https?://\S+)")
ADVERBS = r"((?:\s+(?:\w+ly|also|always|never|just|still|often|sometimes|now|only|even|already))*)"
FIRST_PERSON = re.compile(
    rf"\b(i['’]?m|i['’]?ve|i['’]ll|i am|my|mine|myself|me)\b(?!['’-])"
    rf"|\bi\b(?!['’.]){ADVERBS}(?:\s+([a-z'’]+))?",
    re.IGNORECASE,
)
TURNED = {
    "im": "the user is", "i am": "the user is", "ive": "the user has", "ill": "the user will",
    "my": "the user's", "mine": "the user's", "myself": "themself", "me": "the user",
}  # fmt: skip
AFTER_USER = {"don't": "doesn't", "dont": "doesn't", "haven't": "hasn't", "will": "will", "need": "needs"}
SECOND_PERSON = re.compile(rf"\bthe user(?:(['’]s)\b|{ADVERBS}(\s+[\w']+)?)", re.IGNORECASE)
AFTER_YOU = {"is": "are", "was": "were", "has": "have", "isn't": "aren't", "doesn't": "don't"}


class Statement(NamedTuple):
    """What a message states in one go, as it was typed, and what it reads like in the third person."""

    quote: str
    content: str


def statements(message: str, preceding: Sequence[str] = ()) -> list[Statement]:
    """Return all that a message states, in its own words.

    What begins with a pronoun joins the statement before it; at the beginning, the user's turn before it.
    """
    found: list[Statement] = []
    for said in _stated(message):
        refers = REFERRING.match(said) is not None
        if found and refers and len(found[-1].quote) + len(said) < MAX_CHARS:
            quote, content = found[-1]
            found[-1] = Statement(f"{quote} … {said}", f"{content} {of_the_user(said)}")
        else:
            before = _last_said(preceding, message) if refers and not found else ""
            ended = (
                f"{before.rstrip('.')}. " if before[-1:].isalnum() or before.endswith(".") else f"{before} "
            )
            found.append(Statement(said, of_the_user(f"{ended.lstrip()}{said}")))
    return found


def _last_said(preceding: Sequence[str], message: str) -> str:
    """Return the last statement of the user's latest turn, if it is about somebody or something else."""
    turns = [turn.removeprefix("user: ") for turn in preceding if turn.startswith("user: ")]
    turns = [each for each in turns if each != message]
    said = [each for each in _stated(turns[-1]) if len(each) < MAX_CHARS // 2] if turns else []
    return said[-1] if said and not re.match(r"i\b|we\b", said[-1], re.IGNORECASE) else ""


def _stated(message: str) -> Iterator[str]:
    """Yield the sentences of a message that say something; questions where one of their clauses does.

    A question stays with the sentence after it where a pronoun there refers to it.
    """
    asked = ""
    for sentence in sentences(message[:LONGEST_READ]):
        parts = CLAUSES.split(sentence) if asks(sentence) else []
        if any(map(_states, parts)) if parts else not says_nothing(sentence):
            yield from _pieces(f"{asked} {sentence}" if asked and REFERRING.match(sentence) else sentence)
            asked = ""
        else:
            asked = sentence if parts else ""


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, without white space and list marks around them."""
    joined: list[str] = []
    for part in segment("en", text):
        is_open = joined and (joined[-1].count("`") % 2 or TITLE.search(joined[-1]))
        if is_open:  # a full stop in code or after a title ends no sentence
            joined[-1] += part
        else:
            joined.append(part)
    return [each for part in joined if (each := part.strip().lstrip("-*•> ").strip())]


def asks(sentence: str) -> bool:
    """Tell whether a sentence is a question or sets a task."""
    said = TAG.sub("", sentence).rstrip(")\"'”’ ")
    is_question = said.endswith(("?", "？"))
    return is_question or any(pattern.match(sentence) for pattern in (ASKING, TASK))


def says_nothing(sentence: str) -> bool:
    """Tell whether a sentence is a greeting, thanks or a reaction, or has no word at all."""
    read = [STRETCHED.sub(r"\1", each) for each in words(sentence)]
    if not EVIDENCE.search(sentence):
        is_short = len(read) < 3 or (len(read) < 4 and not any(map(_is_thing, read)))
        if is_short or (len(read) < 6 and not POLITE.isdisjoint(read)) or COMMENT.match(sentence):
            return True
    return all(
        SMALL_TALK.issuperset(words(STRETCHED.sub(r"\1", clause)))
        or ((found := REACTION.match(clause)) and not EVIDENCE.search(clause, found.end()))
        for clause in COMMA.split(sentence)
    )


def _is_thing(word: str) -> bool:
    return len(word) > 4 and "NOUN" in lemmas_of(word)


def _states(clause: str) -> bool:
    """Tell whether a clause of a question states something about the user or somebody they speak of."""
    clause = clause.strip(" .")
    if asks(clause.rstrip("?")) or says_nothing(clause) or len(words(clause)) < 3:
        return False
    return bool(OF_SELF.search(clause)) or (STATING.match(clause) is not None and clause[-1] != "?")


def _pieces(sentence: str) -> Iterator[str]:
    """Yield a sentence, in parts where it is too long for one memory."""
    while len(sentence) > MAX_CHARS:
        end = max(sentence.rfind(" ", 0, MAX_CHARS), 0) or MAX_CHARS
        yield sentence[:end].strip()
        sentence = sentence[end:].strip()
    yield sentence


def of_the_user(text: str) -> str:
    """Say of the user what the user says of themself; code, quotations and addresses stay."""
    parts = VERBATIM.split(text)
    parts[::2] = [FIRST_PERSON.sub(_turned, each) for each in parts[::2]]
    return capitalised("".join(parts))


def _turned(found: re.Match[str]) -> str:
    if found[1]:
        return TURNED[re.sub("['’]", "", found[1].lower())]
    verb = (found[3] or "").replace("’", "'")
    turned = AFTER_USER.get(verb.lower()) or third_person(verb.lower())
    return f"the user{found[2] or ''}{f' {verb if turned == verb.lower() else turned}' if verb else ''}"


def to_the_user(text: str) -> str:
    """Tell the user what is remembered of them: `The user's sister lives` → `Your sister lives`."""
    return capitalised(SECOND_PERSON.sub(_told, text))


def _told(found: re.Match[str]) -> str:
    verb = (found[3] or "").strip()
    told = AFTER_YOU.get(verb) or base_of(verb)
    return "your" if found[1] else f"you{found[2] or ''}{f' {told}' if verb else ''}"


def capitalised(text: str) -> str:
    """Return a text that begins with a capital, as does the user in each of its sentences."""
    return text[:1].upper() + re.sub(
        r"(?<=[.!?] )(the user|you)", lambda found: found[0].capitalize(), text[1:]
    )
