"""Select the sentences of a message that state something.

A sentence is kept, as it was typed, unless it surely holds nothing: it asks or sets a task, or it has only
words of grammar, courtesy and reaction. One word more is enough where a clause points to the user's world (a
person, a name, a number, code, a standing wish), two where a subject stands before a verb (`The printer
jams`), three where it says what something is, else four.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import wrap
from typing import NamedTuple

import yaml

from mneme.prompts.chat.evidence import UNSPACED, sentences, words
from mneme.prompts.chat.memory_agent.reading import MAX_ITEMS

MAX_READ = 20_000  # characters of a message: what is longer is a document
STATEMENT_CHARS = 1000  # of a statement in one memory; a longer one is split between words
ENGLISH = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
GRAMMAR, REACTION, ASKING, TASK, WANTED = (
    frozenset(words(ENGLISH["words"][name])) for name in ("grammar", "reaction", "asking", "task", "wanted")
)
CONTENTLESS = GRAMMAR | REACTION


def pattern(*names: str) -> re.Pattern[str]:
    """Return a pattern of English, or several in a row."""
    return re.compile("".join(part for name in names for part in ENGLISH["patterns"][name]))


PERSON, TIED, NAMED, IS = pattern("person"), pattern("person", "tied"), pattern("named"), pattern("is")
STATING, THAT, GREETING, EVER = pattern("stating"), pattern("that"), pattern("greeting"), pattern("ever")
SEARCHING, MAKING, STANDING = pattern("searching"), pattern("making"), pattern("ever", "standing")
CLAUSES, PASTED, WISHING = pattern("clauses"), pattern("pasted"), pattern("wishing")
WEEKDAY, DAY = pattern("weekday"), pattern("weekday", "month")
REFERS, VERBATIM, ANNOUNCING = pattern("referring"), pattern("verbatim"), pattern("announcing")
PRONOUNS = [(pattern(each), pattern(f"not_{each}")) for each in ("he", "she", "they")]
"""Patterns of pronouns, each with a pattern of subjects that it cannot mean."""
# `The recipe takes …` is no task.
TELLING = re.compile(r"(?i)(?:it|the [\w-]+) (?:cost|[a-z]*[a-rt-z](?:s|ed))\b")
CAPITAL = rf"(?!I['’ ]|(?:{WEEKDAY.pattern}|(?<=\w )(?:{DAY.pattern}))\b)[A-Z][\w'’-]*"
NAME = re.compile(f"{CAPITAL}(?: {CAPITAL})*")
"""A month is taken for a person where it begins a sentence: `April is our landlady`, but `In April`."""
TAG_QUESTION = re.compile(r", \w+\?+$")  # `No jokes, ok?`
OPENING = REACTION | {"so", "and", "but", "now", "then", "btw", "also", "kindly"}
ALWAYS_ASKING = frozenset(words("is are does"))
INVERTED = ALWAYS_ASKING | frozenset(words("can could would should"))
AUXILIARY = INVERTED | frozenset(words("do did will shall may am was were has have had"))
DETAIL = CONTENTLESS | TASK | frozenset(words("put end use include start finish close cover"))
PRONOUN = frozenset(words("i you u ya we he she it they this that there any"))


class Statement(NamedTuple):
    """One statement of a message, as it was typed, and with the earlier words that it refers to."""

    quote: str
    content: str


def statements(message: str, preceding: Sequence[str] = ()) -> list[Statement]:
    """Return all that a message states, in its own words.

    What begins with a pronoun joins the statement before it, or has the question or turn before it in front.
    """
    turns = [each.removeprefix("user: ") for each in preceding if each.startswith("user: ")]
    before = statements(turns[-1])[-1:] if turns and turns[-1] != message else []
    context = told = "".join(each.quote for each in before if not re.match(r"(?i)(?:i|we)\b", each.quote))
    found: list[Statement] = []
    is_of_task = False
    is_long = len(message) > MAX_READ
    for sentence in _announced(sentences(message[:MAX_READ].rpartition(" ")[0] if is_long else message)):
        is_pasted = PASTED.search(VERBATIM.sub(" ", sentence)) and any(map(asks, CLAUSES.split(sentence)))
        is_question, refers = asks(sentence) or is_pasted, REFERS.match(sentence) is not None
        is_of_task = (is_question and sentence[-1] != "?") or (is_of_task and details(sentence))
        is_more = bool(found or (before and words(sentence)[:1] == ["it"]))  # `My cat is Mo.` `It's black.`
        if not (says_beside(sentence) if is_question else not is_of_task and says(sentence, is_more)):
            context = sentence if is_question else context
            if is_pasted:
                break  # what follows is the text that the task is about
            continue
        quote, content = found[-1] if refers and found and not context else Statement("", "")
        if ANNOUNCING.match(quote) or ", not " in quote:
            # Apart from a correction, which changes a memory, or puts it in doubt, and would take this along.
            plain = ANNOUNCING.sub("", quote)
            context = plain if refers_to(sentence, plain) or ", not " not in quote else told
        elif quote and len(content) + len(sentence) < STATEMENT_CHARS:
            found[-1] = Statement(f"{quote} … {sentence}", f"{content} {sentence}")
            continue
        ended = f"{context}." if context[-1:].isalnum() else context
        for part in wrap(sentence, STATEMENT_CHARS, replace_whitespace=False):
            found.append(Statement(part, f"{ended} {part}" if refers and context else part))
        context = ""
    return found


def refers_to(sentence: str, before: str) -> bool:
    """Return whether a leading pronoun may mean whom a text is about: `He is 5` is not about a sister."""
    is_other = any(one.search(sentence) and other.search(before) for one, other in PRONOUNS)
    return REFERS.match(sentence) is not None and not is_other


def _announced(read: Sequence[str]) -> Iterator[str]:
    """Yield sentences; one that only announces a correction stands before the next: `My mistake. It is 9.`"""
    before = ""
    for each in read:
        before = f"{before} {each}".strip()
        if not ANNOUNCING.fullmatch(each) or each is read[-1]:
            yield before
            before = ""


def asks(sentence: str) -> bool:
    """Return whether a sentence is a question or sets a task."""
    said = TAG_QUESTION.sub("", sentence).rstrip(")\"'”’ ")
    opened = _opened(said)
    first, second, *_ = read = [core(each) for each in words(opened)[:9]] + ["", ""]
    if first in {"can", "could", "will"} and second in {"you", "u"} and STANDING.search(opened):
        return False
    is_asking = not ASKING.isdisjoint((first, first.removesuffix("s")))
    if is_asking or VERBATIM.fullmatch(sentence) or SEARCHING.search(said):
        return True
    is_inverted = (first in AUXILIARY and second in PRONOUN) or (
        first in INVERTED and second in {"a", "an", "the", "my", "your", "his", "her", "our", "some"}
    )
    is_when = first in {"when", "where"} and second in AUXILIARY | {""}
    is_bare = PERSON.search(opened) is None and IS.search(opened) is None and TELLING.match(opened) is None
    is_task = first in TASK or MAKING.match(opened) or (is_bare and not WANTED.isdisjoint(read[:4]))
    is_once = is_task and not STANDING.search(VERBATIM.sub(" ", opened))
    return first in ALWAYS_ASKING or is_inverted or is_when or bool(is_once)


def says(sentence: str, known: bool = False) -> bool:
    """Return whether a sentence states something: a clause tied to the user, or enough of other words.

    It needs fewer where another sentence of the message is `known` to state something.
    """
    told = GREETING.sub("", sentence)
    clauses = [each for each in CLAUSES.split(told) if TIED.search(each) and not asks(each)]
    is_tied = any(len(content_of(each)) > bool(THAT.match(_opened(each))) for each in clauses)
    plain = ANNOUNCING.sub("", told)
    reacts = not (REACTION | {"you"}).isdisjoint(map(core, words(plain)[:1]))
    stating = STATING.match(plain)
    is_short = stating is not None and CONTENTLESS.isdisjoint(map(core, words(stating[2])))
    # Of a script without spaces each letter counts as a word.
    least = 2 if is_short else 3 if IS.search(sentence) else 8 if UNSPACED.search(sentence) else 4
    least += reacts - 2 * known
    return is_tied or len(content_of(told)) >= max(least, 1)


def says_beside(question: str) -> bool:
    """Return whether a clause of a question states something about the user or somebody they speak of."""
    own = question.partition(":")[0] if PASTED.search(question) else question
    clauses = CLAUSES.split(VERBATIM.sub(" ", own))
    said = [each.rstrip("? ") for each in clauses if PERSON.search(each) and len(words(each)) > 1]
    return any(says(each) and (NAMED.search(each) or not asks(each)) for each in said)


def details(sentence: str) -> bool:
    """Return whether a sentence after a task only says more of it: `Around 300 words, with a sad ending.`"""
    read = [core(each) for each in words(sentence)[:1]]
    return not (PERSON.search(sentence) or EVER.search(sentence) or DETAIL.isdisjoint(read))


def entities_of(content: str) -> list[str]:
    """Return the names with a capital in a text, without words of grammar that begin a sentence."""
    found = []
    for each in NAME.finditer(content):
        name = each[0].removesuffix("'s").removesuffix("’s")
        first, _, others = name.partition(" ")
        begins = content[: each.start()].rstrip()[-1:] in {"", ".", "!", "?", ":"}
        found.append(others if begins and core(first) in GRAMMAR | OPENING else name)
    return [each for each in dict.fromkeys(found) if len(each) > 1][:MAX_ITEMS]


def content_of(text: str) -> list[str]:
    """Return the words of a text that are neither of grammar nor of courtesy."""
    found = map(core, words(text))
    return [each for each in found if each not in CONTENTLESS and not re.fullmatch("[a-z]?", each)]


def core(word: str) -> str:
    """Return a word without contractions."""
    return re.sub(r"(?:n't|'\w+)$", "", word.lower().replace("’", "'")).strip("_")


def _opened(sentence: str) -> str:
    """Return a sentence without the courtesies at its beginning."""
    sentence = WISHING.sub("", sentence)
    while (first := re.match(r"\W*([\w’']+)\W*", sentence)) and core(first[1]) in OPENING:
        sentence = sentence[first.end() :]
    return sentence
