"""What the steps look for in messages and memories, word by word."""

from mneme.core.evidence import SENTENCE, TOKEN, has_form, telling, words_of


def around(quote: str, message: str, longest: int = 300) -> str:
    """Return the sentences of a message in which a quote stands; the quote alone where they are long."""
    start = message.find(quote)
    if start < 0:
        return quote
    places = [(match.start(), match.end()) for match in SENTENCE.finditer(message)]
    touched = [each for each in places if each[0] < start + len(quote) and each[1] > start]
    whole = message[touched[0][0] : touched[-1][1]].strip() if touched else quote
    return whole if len(whole) <= longest else quote


def mentions(text: str, named: set[str]) -> bool:
    """Tell whether a text has one of these names, folded."""
    return not named.isdisjoint(word.removesuffix("'s") for word in words_of(text))


def share_a_word(one: str, other: str) -> bool:
    """Tell whether two texts have a word in common that says what they are about, in any form of it."""
    words = set(telling(other))
    return any(has_form(words, word) for word in telling(one))


def still_said(statement: str, outdated: str, content: str) -> bool:
    """Tell whether half of a statement, names aside, stands in a memory's new content and is not outdated."""
    gone, kept = words_of(outdated), words_of(content)
    words = telling(" ".join(word for word in TOKEN.findall(statement) if not word[0].isupper()))
    return 2 * sum(has_form(kept, word) and not has_form(gone, word) for word in words) >= len(words)
