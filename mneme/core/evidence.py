"""Hold what is written of a message to the message: find its quotes, words nobody said, and facts left out.

A check of words cannot prove a sentence right. It catches what language models do wrong most: a number, a
name or a negation that nobody said, and a statement of an old memory that a rewrite drops.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

import yaml

TOKEN = re.compile(r"\w+(?:['’]\w+)*")
NUMBER = re.compile(r"\d+")
THOUSANDS = re.compile(r"(?<=\d)[,.'’\u00a0\u202f](?=\d{3}\b)")
YEAR = re.compile(r"(?:19|20)\d\d")
LONGEST_MONTH = 31
SAME = str.maketrans("‘’‚‛“”„‟´`–—‐‑\u00a0\u202f", "''''\"\"\"\"''----  ")
ELLIPSIS = re.compile(r"\s*(?:\.\.\.|…)\s*")
ALIKE = 0.5
"""The share of a quote's words that the words it means have at least."""
SLIPS = 0.9
"""How alike a quote and the words that it means are at least; numbers must be the same."""
STEM = 4
"""Letters that two forms of one word share: German and Germany, moved and moving."""
SHORTEST = 3
"""Letters of a word that says what a sentence is about, unless it is a name or a number."""
SENTENCE_END = re.compile(r"(?:^|[.!?:;]\s+|[\"“(]\s*)$")
FIRST_PERSON = re.compile(r"I(?:['’]|$)")
SENTENCE = re.compile(r".+?(?:[.!?…]+(?=\s|$)|\n|$)", re.DOTALL)
STATEMENT_END = re.compile(r"[.;!?](?:\s+|$)|,\s+(?:and|but)\s+|\s+and\s+(?=\w+s\b)")
_LISTS = yaml.safe_load((Path(__file__).parent / "evidence.yaml").read_text(encoding="utf-8"))
NEGATIONS = frozenset(_LISTS["negations"])
ENDS = re.compile(rf"n['’]t\b|\b(?:{'|'.join(_LISTS['ends'])})\b", re.IGNORECASE)
"""Words of which it follows that something is not, or no longer: they carry a "not" in other words."""
TIMES = re.compile(rf"\b(?:{'|'.join(_LISTS['times'])})\b", re.IGNORECASE)
"""Words from which, with the time of a message, a date can be worked out."""
CALENDAR = frozenset(_LISTS["calendar"])
SPELT: Mapping[str, str] = {word: str(number) for word, number in _LISTS["spelt"].items()}
OURS = frozenset(_LISTS["ours"])
CAPITAL_NOUNS = frozenset(_LISTS["capital_nouns"])
FUNCTION_WORDS = frozenset(_LISTS["function_words"])


class Token(NamedTuple):
    """A word of a text, folded, and where it stands."""

    word: str
    start: int
    end: int


def located(quote: str, text: str) -> str:
    """Return the words of a text that a quote means, as the text has them; empty where it has none.

    Typography, case, spaces, punctuation and small slips may differ, and an ellipsis may leave something out.
    """
    parts = [part for part in ELLIPSIS.split(quote) if part.strip()]
    spans = [span for part in parts if (span := _span(part, text))]
    if not spans or len(spans) < len(parts) or spans != sorted(spans):
        return ""
    return text[spans[0][0] : spans[-1][1]]


def _span(quote: str, text: str) -> tuple[int, int] | None:
    found = text.find(quote.strip())
    if found >= 0:
        return found, found + len(quote.strip())
    wanted, words = _tokens(quote), _tokens(text)
    if not wanted:
        return None
    best = max(_windows(wanted, words), key=lambda each: each[0], default=(0.0, 0, 0))
    if best[0] < SLIPS:
        return None
    start, end = words[best[1]].start, words[best[2] - 1].end
    return start, end + (text[end : end + 1] in {".", "!", "?"})


def _windows(wanted: Sequence[Token], words: Sequence[Token]) -> Iterator[tuple[float, int, int]]:
    """Return how alike each window of about as many words is, and where it begins and ends."""
    meant = " ".join(each.word for each in wanted)
    numbers = NUMBER.findall(meant)
    for size in sorted({max(1, len(wanted) + more) for more in (-1, 0, 1)}):
        for start in range(len(words) - size + 1):
            found = " ".join(each.word for each in words[start : start + size])
            if NUMBER.findall(found) == numbers and _share(words[start : start + size], wanted) >= ALIKE:
                matcher = SequenceMatcher(None, meant, found, autojunk=False)
                if matcher.quick_ratio() >= SLIPS:
                    yield matcher.ratio(), start, start + size


def _share(found: Sequence[Token], wanted: Sequence[Token]) -> float:
    """Return the share of a quote's words that stand among others: a quick look before a close one."""
    meant = {each.word for each in wanted}
    return len(meant & {each.word for each in found}) / len(meant)


def _tokens(text: str) -> list[Token]:
    return [Token(_folded(each[0]), *each.span()) for each in TOKEN.finditer(text)]


def _folded(text: str) -> str:
    return text.translate(SAME).casefold()


def unsupported(content: str, sources: Sequence[str]) -> str:
    """Name a number, a name or a negation of a content that no source has; empty where all are said."""
    content, said = (THOUSANDS.sub("", text) for text in (content, _folded(" ".join(sources))))
    words = {word for each in TOKEN.findall(said) for word in (each, *each.split("'"))}
    when = TIMES.search(said) is not None
    for what, found in (
        ("number", _strange_number(content, words, when)),
        ("name", _strange_name(content, words, when)),
        ("word", _strange_negation(content, said, words)),
    ):
        if found:
            return f"the {what} {found!r}"
    return ""


def _strange_number(content: str, words: set[str], when: bool) -> str:
    """Return a number nobody said; the parts of a date may follow from `tomorrow` and its like."""
    known = {number for word in words for number in _numbers(word)}
    known |= {SPELT[word] for word in words if word in SPELT}
    for number in _numbers(content):
        is_date = when and (int(number) <= LONGEST_MONTH or YEAR.fullmatch(number) is not None)
        if number not in known and not is_date:
            return number
    return ""


def _numbers(text: str) -> list[str]:
    return [number.lstrip("0") or "0" for number in NUMBER.findall(text)]


def _strange_name(content: str, words: set[str], when: bool) -> str:
    if len(CAPITAL_NOUNS.intersection(_folded(content).split())) > 1:
        return ""
    for each in TOKEN.finditer(content):
        word = _folded(each[0]).removesuffix("'s").rstrip("'")
        begins = SENTENCE_END.search(content[: each.start()]) is not None
        if begins or not each[0][0].isupper() or word in OURS or (when and word in CALENDAR):
            continue
        if not has_form(words, word):
            return each[0]
    return ""


def _strange_negation(content: str, said: str, words: set[str]) -> str:
    found = next(
        (word for word in TOKEN.findall(_folded(content)) if word in NEGATIONS or word[-3:] == "n't"), ""
    )
    is_said = not words.isdisjoint(NEGATIONS) or ENDS.search(said) is not None
    return "" if is_said else found


def words_of(text: str) -> set[str]:
    """Return the words of a text, folded."""
    return {_folded(word) for word in TOKEN.findall(text)}


def has_form(words: set[str], word: str) -> bool:
    """Tell whether a word is among others, in this form or another of the same stem."""
    if word in words:
        return True
    stem = word[: max(STEM, len(word) - 3)]
    return len(word) >= STEM and any(
        each.startswith(stem) or (len(each) >= STEM and word.startswith(each)) for each in words
    )


def left_out(memory: str, outdated: str, content: str) -> str:
    """Return the first statement of a memory that its rewrite drops; empty where all that holds is kept.

    `outdated` are the memory's words that are no longer true. A statement is dropped where most of its longer
    words, names and numbers are neither in the new content nor outdated.
    """
    kept, gone = words_of(content), words_of(outdated)
    for statement in filter(None, (part.strip() for part in STATEMENT_END.split(memory))):
        words = [word for word in telling(statement) if not has_form(gone, word)]
        missing = [word for word in words if not has_form(kept, word)]
        if words and len(missing) * 2 > len(words):
            return str(statement)
    return ""


def takes_up(content: str, fact: str, memory: str) -> bool:
    """Tell whether a content has at least one of the telling words that a fact adds to a memory."""
    known, kept = words_of(memory), words_of(content)
    added = [word for word in telling(fact) if not has_form(known, word)]
    return not added or any(has_form(kept, word) for word in added)


def uncovered(message: str, kept: Sequence[tuple[str, str]]) -> str:
    """Return the first sentence of a message whose names and numbers are in no kept content and no quote.

    Questions are passed over, and sentences without any name or number: they rarely state a fact.
    """
    known = words_of(" ".join(text for each in kept for text in each))
    for sentence in sentences(message):
        marks = _marks(sentence)
        if marks and not sentence.endswith("?") and not any(has_form(known, mark) for mark in marks):
            return sentence
    return ""


def _marks(sentence: str) -> list[str]:
    """Return the numbers and the names of a sentence."""
    return [word for word in telling(sentence) if word[0].isdigit()] + sorted(names(sentence))


def names(text: str) -> set[str]:
    """Return the names in a text, folded: words with a capital that do not begin a sentence."""
    return {
        _folded(each[0]).removesuffix("'s")
        for sentence in sentences(text)
        for each in TOKEN.finditer(sentence)
        if each.start() and each[0][0].isupper() and not FIRST_PERSON.match(each[0])
    }


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, each with its end mark."""
    return [sentence for each in SENTENCE.finditer(text) if (sentence := each[0].strip())]


def telling(text: str) -> list[str]:
    """Return the words of a text that say what it is about: longer ones, names and numbers."""
    words = [(each, _folded(each).removesuffix("'s")) for each in TOKEN.findall(text)]
    return [
        word
        for each, word in words
        if word not in FUNCTION_WORDS
        and word not in OURS
        and (len(word) >= SHORTEST or each[0].isupper() or word.isdigit())
    ]


def says(content: str, fact: str, share: float = 0.5) -> bool:
    """Tell whether a content has at least this share of the words that tell a fact."""
    kept = words_of(content)
    words = telling(fact)
    return sum(has_form(kept, word) for word in words) >= share * len(words)
