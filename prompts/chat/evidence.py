"""Compare generated text with its sources: locate quotes, notice other numbers, names and lost statements.

Only `located` decides whether an answer is accepted. Everything else here is a guess about language, is used
for doubts alone, and would rather say nothing: it knows no list of words of any language.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher

from sentencex import segment

WORD = re.compile(r"\w+(?:['’]\w+)*")
NUMBER = re.compile(r"\d+")
YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
ELLIPSIS = re.compile(r"\s*(?:\.\.\.|…)\s*")
UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
"""Letters of scripts that put no space between words: Thai, Lao, Japanese, Chinese."""
TYPING_ERRORS = 0.9
"""The similarity from which a quote with typing errors is accepted; its numbers must be the same."""
SHORTEST_WITH_ERRORS = 8
"""Letters of the shortest quote in which they are accepted."""
STEM = 4
"""Letters at the beginning of a word that all its forms share."""
CLAUSE_END = re.compile(r"[.;!?。！？；](?:\s+|$)|(?<=[。！？；])|,\s+(?:and|but|und|y|et|e|ve|и)\s+")
HOURS = 12


def folded(text: str) -> str:
    """Return a text without case, accents and variants of one letter."""
    parted = unicodedata.normalize("NFKD", text.replace("’", "'")).casefold()
    return "".join(each for each in parted if not unicodedata.combining(each))


def words(text: str) -> list[str]:
    """Return the folded words of a text; of a script without spaces, each letter."""
    found = [each.removesuffix("'s") for each in WORD.findall(folded(text))]
    return [part for each in found for part in (each if UNSPACED.search(each) else [each])]


def located(quote: str, text: str) -> str:
    """Return the words of a text that a quote means, as the text has them; empty where it has none.

    Unicode forms, case, quotation marks, punctuation and white space may differ, an ellipsis may leave
    something out, and small typing errors are passed over.
    """
    spans: list[tuple[int, int]] = []
    for part in filter(str.strip, ELLIPSIS.split(quote)):
        span = _span(part, text, spans[-1][1] if spans else 0)
        if span is None:
            return ""
        spans.append(span)
    if not spans:
        return ""
    end = spans[-1][1]
    return text[spans[0][0] : end + (text[end : end + 1] in {".", "!", "?", "。"})]


def _span(quote: str, text: str, start: int) -> tuple[int, int] | None:
    """Return where a quote begins and ends in a text, not before `start`, on whole words."""
    exact = text.find(quote.strip(), start)
    if exact >= 0 and not _cuts_a_word(text, exact, exact + len(quote.strip())):
        return exact, exact + len(quote.strip())
    letters = [(each, at) for at in range(start, len(text)) for each in folded(text[at]) if each.isalnum()]
    plain, wanted = "".join(letter for letter, _ in letters), "".join(filter(str.isalnum, folded(quote)))
    for found in re.finditer(re.escape(wanted), plain) if wanted else ():
        first, end = letters[found.start()][1], letters[found.end() - 1][1] + 1
        if not _cuts_a_word(text, first, end):
            return first, end
    if len(wanted) < SHORTEST_WITH_ERRORS:
        return None
    match = SequenceMatcher(None, plain, wanted, autojunk=False).find_longest_match()
    window = slice(max(match.a - match.b, 0), max(match.a - match.b, 0) + len(wanted))
    is_alike = SequenceMatcher(None, plain[window], wanted, autojunk=False).ratio() >= TYPING_ERRORS
    if not is_alike or NUMBER.findall(plain[window]) != NUMBER.findall(wanted):
        return None
    first, end = letters[window][0][1], letters[window][-1][1] + 1
    while _continues(text, first):
        first -= 1
    while _continues(text, end):
        end += 1
    return first, end


def _cuts_a_word(text: str, first: int, end: int) -> bool:
    return _continues(text, first) or _continues(text, end)


def _continues(text: str, at: int) -> bool:
    """Tell whether a word goes on across this place of a text."""
    pair = text[at - 1 : at + 1] if at else ""
    return len(pair) == 2 and pair.isalnum() and not UNSPACED.search(pair)


def rest(memory: str, outdated: str, fact: str) -> list[str]:
    """Return the words of a memory that are neither outdated nor in the fact, which so cannot replace it."""
    covered = {*words(outdated), *words(fact)}
    return [word for word in words(memory) if word not in covered]


def left_out(memory: str, outdated: str, content: str) -> str:
    """Return the first clause of a memory that its rewrite drops; empty where all that holds is kept.

    A clause counts as dropped where more than half of the words that it alone has are in no form in the new
    content. One that shares them with `outdated` does not count: an end may take its whole clause with it.
    """
    gone, kept = _stems(outdated), _stems(content)
    clauses = [each for each in map(str.strip, CLAUSE_END.split(memory)) if each]
    for number, clause in enumerate(clauses):
        others = _stems(" ".join(clauses[:number] + clauses[number + 1 :]))
        own = _stems(clause) - others
        if gone.isdisjoint(own) and 2 * len(own - kept) > len(own):
            return clause
    return ""


def _stems(text: str) -> set[str]:
    """Return the beginnings of the words of a text, without the shortest, and letters of unspaced scripts."""
    return {word[:STEM] for word in words(text) if len(word) > 2 or word.isdigit() or UNSPACED.search(word)}


def changed_number(content: str, quote: str) -> str:
    """Return a number of a content that stands for another one of the quote; empty where there is none.

    A number is only doubted where one that was said is missing. It may be a part of the other (98, 1998),
    the same hour of the afternoon, or belong to a date that was worked out.
    """
    said, wrote = NUMBER.findall(folded(quote)), NUMBER.findall(folded(content))
    missing = [each for each in said if not any(_one_number(each, other) for other in wrote)]
    strange = [each for each in wrote if not any(_one_number(each, other) for other in said)]
    dated = YEAR.search(content) is not None and YEAR.search(quote) is None
    return strange[0] if missing and strange and not dated else ""


def _one_number(one: str, other: str) -> bool:
    shorter, longer = sorted((one.lstrip("0") or "0", other.lstrip("0") or "0"), key=len)
    return longer.startswith(shorter) or longer.endswith(shorter) or abs(int(one) - int(other)) == HOURS


def strange_name(entities: Iterable[str], content: str, sources: Sequence[str]) -> str:
    """Return the first entity with a capital of which no source has any word, in any form; or empty."""
    known = [folded(each) for each in sources]
    for entity in entities:
        if entity[:1].isupper() and entity in content and not any(_is_said(entity, known)):
            return entity
    return ""


def _is_said(entity: str, sources: Sequence[str]) -> Iterator[bool]:
    """Yield whether each word of an entity, or its initials, begins in a source."""
    parts = words(entity)
    for beginning in [*(each[: STEM - 1] for each in parts), "".join(each[0] for each in parts)]:
        yield any(beginning in source for source in sources)


def sentence_around(quote: str, message: str) -> str:
    """Return the sentences of a message in which a quote stands; the quote where it does not."""
    start, end = message.find(quote), 0
    if start < 0:
        return quote
    touched: list[str] = []
    for sentence in segment("en", message):
        begin, end = end, end + len(sentence)
        touched += [sentence] if begin < start + len(quote) and end > start else []
    return "".join(touched).strip() or quote


def names(entities: Iterable[str], text: str) -> set[str]:
    """Return those of the entities that a text names, folded."""
    said = f" {' '.join(words(text))} "
    found = {" ".join(words(each)) for each in entities}
    return {each for each in found if each and f" {each} " in said}
