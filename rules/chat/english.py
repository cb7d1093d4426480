"""Which sentences of a message state something, and how they read in the third person.

A sentence is kept unless it surely holds nothing: it asks or sets a task, or it has only words of grammar,
courtesy and reaction. One word more is enough where a clause points to the user's world (a person, a name, a
number, code, a standing wish), else two. It stays as it was typed, but for `I` → `the user`.
"""

import re
from collections.abc import Sequence
from textwrap import wrap
from typing import NamedTuple

from mneme.prompts.chat.evidence import WORD, sentences, words
from mneme.rules.words import base_of, lemmas_of, third_person, words_in

LONGEST_READ = 20_000  # characters of a message: what is longer is a document
MAX_CHARS = 1000  # characters of a statement that stands in one memory; a longer one is split between words
GRAMMAR = words_in(
    "a an the this that these those it its i im ive id ill me my mine you u ur your yours youre ya we us "
    "our he she they him her them his their one ones some any all more most much many lot lots bit less "
    "same user ask asked like be am is are was were been being isn aren wasn do does did done doing don "
    "didn doesn has have had having haven hasn can could ca cant will would wo wont shall should may might "
    "must won couldn get got getting go going gonna goes gotta make makes made let lets give say said tell "
    "told see saw look know think thought guess hope mean meant wait try need needed want find feel keep "
    "come back and or but if so as than then of to in on at by for from with without about up down out off "
    "over into again there here now today tomorrow later soon when where what who which why how not no "
    "never just only also too very really quite still already even ever actually exactly maybe probably "
    "thing things something anything everything nothing way time day night first while till until w n r "
    "sure believe follow agree disagree knew owe looking such next second expected wondering rephrase "
    "worked"
)
REACTION = words_in(
    "hi hello hey heya hiya yo sup morning afternoon evening thanks thank thx ty cheers ta please pls plz "
    "welcome sorry oops ok okay k okey right alright well oh ah aha ooh oof aw aww hmm hm huh um eh yay ugh "
    "wow omg lol lmao haha hahaha ha hehe yes yeah yep yup aye nope nah sure fine good great nice awesome "
    "cool perfect brilliant lovely amazing wonderful fantastic excellent splendid sweet neat super grand "
    "fair true best better bad funny happy glad odd typical love loved dear mate pal man bro dude friend "
    "god lord bless mercy darned bye goodbye gtg luck wish worries worry kind appreciate helpful helps "
    "helped help indeed definitely gotcha understand noted agreed care catch mind anyway interesting weird "
    "wonder idea quick question wild joking kidding testing bored confused curious pleasure goodness "
    "problem complain whatever"
)
EMPTY = GRAMMAR | REACTION
OPENING = REACTION | words_in("so and but now btw also kindly")
PERSON = re.compile(r"(?i)\b(?:i|im|ive|me|we|us|my|mine|our|ours|he|she|they|his|her|their)\b")
TIED = re.compile(  # what ties a clause to the user's world
    PERSON.pattern
    + r"|\b(?:always|never|every|each|only|no|not|dont|cant|wont|remember|please|pls|prefer|avoid|"
    r"\w{3,6}days?|mum|mom|dad|kids?|baby|wife|husband|boss|parents)\b|n['’]t\b|\d|`"
    r"|(?<=[\w,;:(] )(?-i:(?!I\b)[A-Z])"
    r"|^\W*(?:be|use|call|keep|answer|reply|stop|am|have|had|got|was|been|love|hate|like|live)\b"
)
THAT = re.compile(r"(?i)(?:that|this)(?:['’]?s)?\b(?!.*\b(?:my|our)\b)")  # a comment on an answer
ASKING = words_in(
    "what wat wot whit whats who whos whose whom which why how hows when's where's whens wheres"
)
INVERTED = words_in("is are does can could would should")
AUXILIARY = INVERTED | words_in("do did will shall may am was were has have had")
PRONOUN = words_in("i you u ya we he she it they this that there any")
DETERMINER = words_in("a an the my your his her our some")
TASK = words_in(
    "explain translate summarize summarise compare define describe calculate compute convert continue "
    "recommend suggest proofread rephrase rewrite generate compose solve elaborate expand clarify imagine "
    "pretend act meaning difference synonym synonyms examples ideas tips recipe advice suggestions"
)
MAKING = words_in(
    "write tell give show list find make create draft draw plan fix check name prepare help remind do turn "
    "pick correct"
)
OBJECT = words_in(
    "me us mi this these it out with a an the some another how what why if two three four five six ten"
)
STANDING = re.compile(  # what makes a lasting wish of a task
    r"(?i)\b(?:always|never|every ?time|whenever|from now on|(?:when|if) (?:i|you|we)|unless|only|without|"
    r"instead|not|none|everything|no|each|in future|don['’]?t)\b"
)
CLAUSES = re.compile(
    r"(?i)(?:[,;:!–—.]|\s-+)\s+|\s+(?=(?:because|cause|cuz|bc|given|now that|considering|(?:but|and|as|so) "
    r"(?:i|im|my|we|he|she|they))\b)|^\W*(?:did|have) i (?:mention|tell|told|sa)\w*(?: you)?\b"
)
PASTED = re.compile(r"(?i)\b(?:this|these|following|text|e?mail|sentence|code|spelling|grammar)\b[^:]{0,40}:")
WISHING = re.compile(
    r"(?i)^\W*i(?:(?: want| need| would like|['’]?d like)|['’]?m looking for)\b(?: (?:to know|an?|some)\b)?"
)
TAG = re.compile(r"(?i),? (?:ok|okay|right|yeah|please|eh|innit|can|no|yes|alright)\?+$")  # `No jokes, ok?`
REFERRING = re.compile(
    r"(?i)\W*(?:(?:and|but|so|also|then|sorry|oops|no|wait|actually)\W+)*(?:he|she|they|it|his|hers?|theirs?|its|"
    r"him|them|ours|mine|there|that|this|these|both|i meant?)\b"
)
VERBATIM = re.compile(r"(`[^`]*`|\"[^\"]*\"|“[^”]*”|https?://\S+)")
VERB = r"((?:\s+(?:\w+ly|also|always|never|just|still|often|sometimes|now|only|even))*)(?:\s+([a-z'’]+))?"
FIRST_PERSON = re.compile(
    rf"(?i)\b(i['’]?m|i['’]?ve|i['’]ll|my|mine|myself|me)\b(?!['’-])|\bi\b(?!['’.]){VERB}"
)
TURNED = {"im": "is", "ive": "has", "ill": "will", "my": "'s", "mine": "'s", "me": "", "myself": ""}
SECOND_PERSON = re.compile(rf"(?i)\bthe user(?:(['’]s)\b|{VERB})")


class Statement(NamedTuple):
    """What a message states in one go, as it was typed, and what it reads like in the third person."""

    quote: str
    content: str


def statements(message: str, preceding: Sequence[str] = ()) -> list[Statement]:
    """Return all that a message states, in its own words.

    What begins with a pronoun joins the statement before it, or has the question or turn before it in front.
    """
    turns = [each.removeprefix("user: ") for each in preceding if each.startswith("user: ")]
    before = statements(turns[-1])[-1:] if turns and turns[-1] != message else []
    context = "".join(each.quote for each in before if not re.match(r"(?i)(?:i|we)\b", each.quote))
    found: list[Statement] = []
    is_long = len(message) > LONGEST_READ
    for sentence in sentences(message[:LONGEST_READ].rpartition(" ")[0] if is_long else message):
        is_question, refers = asks(sentence), REFERRING.match(sentence) is not None
        if not (says_beside(sentence) if is_question else says(sentence, 1 if found else 2)):
            context = sentence if is_question else context
            if is_question and PASTED.search(sentence):
                break  # what follows is the text that the task is about
        elif refers and found and not context and len(found[-1].content) + len(sentence) < MAX_CHARS:
            quote, content = found[-1]
            found[-1] = Statement(f"{quote} … {sentence}", f"{content} {of_the_user(sentence)}")
        else:
            for part in wrap(sentence, MAX_CHARS, replace_whitespace=False):
                ended = f"{context}." if context[-1:].isalnum() else context
                found.append(Statement(part, of_the_user(f"{ended} {part}" if refers and context else part)))
            context = ""
    return found


def asks(sentence: str) -> bool:
    """Tell whether a sentence is a question or sets a task."""
    said = TAG.sub("", sentence).rstrip(")\"'”’ ")
    opened = _opened(said)
    first, second, third, *rest = [each.lower() for each in WORD.findall(opened)[:9]] + ["", "", ""]
    if (
        VERBATIM.fullmatch(sentence)
        or said.endswith(("?", "？"))
        or (first in AUXILIARY and second in PRONOUN)
    ):
        return True
    if first in ASKING or _core(first) in ASKING:  # but `What I hate most is …`, `How I like it: …`
        return not (second in {"i", "we"} and ({"is", "are"} & {*rest} or ": " in opened))
    is_task = first in TASK or (first in MAKING and (second in OBJECT or second.isdigit()) and third != "to")
    is_inverted = first in INVERTED and second in DETERMINER
    is_when = first in {"when", "where"} and second in AUXILIARY
    return is_inverted or is_when or (is_task and not STANDING.search(opened))


def says(sentence: str, least: int = 2) -> bool:
    """Tell whether a sentence states something: a clause tied to the user, or enough of other words."""
    read = words(sentence)
    is_foreign = not any(lemmas_of(each) or each in GRAMMAR for each in read)
    reacts = bool(read) and _core(read[0]) in REACTION | {"you"}
    clauses = [each for each in CLAUSES.split(sentence) if TIED.search(each)]
    is_tied = any(len(content_of(each)) > bool(THAT.match(_opened(each))) for each in clauses)
    return is_tied or len(content_of(sentence)) >= least + (reacts or is_foreign)


def says_beside(question: str) -> bool:
    """Tell whether a clause of a question states something about the user or somebody they speak of."""
    clauses = CLAUSES.split(VERBATIM.sub(" ", question).partition(":")[0])
    said = [each.rstrip("? ") for each in clauses if PERSON.search(each) and len(words(each)) > 2]
    return any(says(each) and not asks(each) for each in said)


def content_of(text: str) -> list[str]:
    """Return the words of a text that are neither of grammar nor of courtesy."""
    return [each for each in map(_core, words(text)) if each and each not in EMPTY]


def _core(word: str) -> str:
    """Return a word without contractions and stretched letters."""
    return re.sub(r"(?:n't|'\w+)$", "", re.sub(r"(\w)\1{2,}", r"\1", word.lower().replace("’", "'")))


def _opened(sentence: str) -> str:
    """Return a sentence without the courtesies at its beginning."""
    sentence = WISHING.sub("", sentence)
    while (first := re.match(r"\W*([\w’']+)\W*", sentence)) and _core(first[1]) in OPENING:
        sentence = sentence[first.end() :]
    return sentence


def of_the_user(text: str) -> str:
    """Say of the user what the user says of themself; code, quotations and addresses stay."""
    parts = VERBATIM.split(text)
    parts[::2] = [FIRST_PERSON.sub(_turned, each) for each in parts[::2]]
    said = "".join(parts)
    return said[:1].upper() + said[1:]


def _turned(found: re.Match[str]) -> str:
    if not found[1]:
        before = found.string[max(found.start() - 9, 0) : found.start()].lower().split()[-1:]
        verb = found[3] if not found[3] or (before and before[0] in AUXILIARY) else third_person(found[3])
        return f"the user{found[2]}{f' {verb}' if verb else ''}"
    end = TURNED[re.sub("['’]", "", found[1].lower())]
    return f"the user {end}" if end.isalpha() else f"the user{end}"


def to_the_user(text: str) -> str:
    """Tell the user what is remembered of them: `The user's sister lives` → `Your sister lives`."""
    told = SECOND_PERSON.sub(_told, text)
    return told[:1].upper() + told[1:]


def _told(found: re.Match[str]) -> str:
    return "your" if found[1] else f"you{found[2]}{f' {base_of(found[3])}' if found[3] else ''}"
