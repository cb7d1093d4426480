"""Whom a pronoun means: the one candidate that was named before it, or nobody."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mneme.rules.english.clauses import is_verb
from mneme.rules.english.words import Token, bag, is_only_verb, is_past, listed, phrase, tokens

LATEST = 6
"""Earlier turns that are looked at."""

_PERSON = dict.fromkeys(bag("he him his hes he's he'll"), "male") | dict.fromkeys(
    bag("she her hers shes she's she'll"), "female"
)
_SUFFIXES = {"'ll": " will", "'re": " are", "'ve": " have"}
_LINK = r"{}(?: is|'s| are| was|,)?(?:,? (?:called|named)|'s name is)? {}(?!['’])"


@dataclass(frozen=True)
class Mention:
    """Who or what is named, and its kind: `male`, `female`, `person`, `group` or `thing`."""

    words: str
    kind: str
    name: str = ""

    def may_be(self, pronoun: str) -> bool:
        if wanted := _PERSON.get(pronoun):
            return self.kind in {wanted, "person"}
        if pronoun in listed("group"):
            return self.kind == "group"
        return pronoun in listed("thing") and self.kind == "thing"


def mentions(text: str) -> list[Mention]:
    """Return what a text names: `my sister Emily`, `Emily`, `my exam`; in order."""
    found, read, at = list[Mention](), tokens(text), 0
    while at < len(read):
        end = _phrase(read, at)
        if end > at:
            found.append(_mention(text, read, at, end))
        at = max(end, at + 1)
    return found


def _phrase(read: Sequence[Token], at: int) -> int:
    """Return the end of the name, or of the possessive with its noun, that begins here."""
    end = at + (read[at].low in {"my", "our"} or (read[at].text == "The" and at + 2 < len(read)))
    noun = end
    while end > at and end < len(read) and end < noun + 3 and read[end].is_word and not _closes(read, end):
        end += 1
    while end < len(read) and _is_name(read, end):
        end += 1
    return end if end > noun or noun == at else at


def _closes(read: Sequence[Token], at: int) -> bool:
    low = read[at].low
    return (
        is_verb(read, at)
        or is_only_verb(low)
        or low in listed("function_words") | listed("prepositions") | listed("adverbs")
        or (read[at].is_name)
    )


def _is_name(read: Sequence[Token], at: int) -> bool:
    low = read[at].low.removesuffix("'s")
    opens = at == 0 or read[at - 1].text in ".!?:"
    common = low in listed("calendar") | listed("askers") | listed("adverbs") | listed("people")
    return read[at].is_name and not common and not (opens and _ordinary(read, at))


def _ordinary(read: Sequence[Token], at: int) -> bool:
    """Say whether a capital only shows that a sentence begins."""
    return at + 1 >= len(read) or not (is_verb(read, at + 1) or read[at].low.endswith("'s"))


def _mention(text: str, read: Sequence[Token], at: int, end: int) -> Mention:
    words = text[read[at].start : read[end - 1].end]
    for suffix in ("'s", "’s"):
        words = words.removesuffix(suffix)
    lows = [each.low.removesuffix("'s") for each in read[at:end]]
    names = [each.text for each in read[at:end] if each.is_name and each.low not in {"my", "our", "the"}]
    before = read[at - 1].low if at else ""
    kind = next((of for of in ("plural", "male", "female", "people") if set(lows) & listed(of)), "")
    if not kind:
        kind = "thing" if lows[0] in {"my", "our", "the"} or before in listed("places") else "people"
    return Mention(words, {"plural": "group", "people": "person"}.get(kind, kind), names[-1] if names else "")


def entities_of(content: str) -> list[str]:
    """Return the names in a memory, each once, in order."""
    read, found = tokens(content), list[str]()
    for at, token in enumerate(read):
        name = token.text.removesuffix("'s").removesuffix("’s")
        if not _is_name(read, at):
            continue
        if at and _is_name(read, at - 1) and content[read[at - 1].end : token.start].isspace():
            name = f"{found.pop()} {name}"
        found.append(name)
    return list(dict.fromkeys(found))


def joined(known: Sequence[Mention], text: str) -> list[Mention]:
    """Return what was named so far and in this text, each once: who has the same name is the same."""
    found = list(known)
    for each in mentions(text):
        same = next((n for n, one in enumerate(found) if _is_same(one, each)), None)
        if same is None:
            found.append(each)
        elif len(each.words) > len(found[same].words):
            found[same] = each
    return _linked(text, found)


def _is_same(one: Mention, other: Mention) -> bool:
    return bool(one.name and one.name == other.name) or one.words.lower() == other.words.lower()


def _linked(text: str, found: list[Mention]) -> list[Mention]:
    """Join the latest two where the text says that they are one: `my dog is called Ace`, `Ace is my dog`."""
    if len(found) < 2:
        return found
    *rest, one, other = found
    said = _LINK.format(re.escape(one.words), re.escape(other.words))
    if bool(one.name) == bool(other.name) or not re.search(said, text):
        return found
    described, named = (one, other) if other.name else (other, one)
    return [*rest, Mention(f"{described.words} {named.name}", described.kind, named.name)]


def resolved(text: str, known: Sequence[Mention], before: str = "") -> tuple[str, Mention | None]:
    """Put names in the place of the pronouns that can mean one alone; return whom the first word means.

    `it` often means nothing that was named: it is only read as what the clause before began with.
    """
    known = [each for each in known if each.kind != "thing" or _is_it(text, each, before)]
    own = [each for each in mentions(text) if each.kind != "thing"]
    read = tokens(text)
    out, done, subject = "", 0, None
    for at, token in enumerate(read):
        meant = [each for each in known if each.may_be(token.low)]
        if len(meant) != 1 or (at and (own or token.low in listed("thing"))):
            continue
        subject = meant[0] if at == 0 else subject
        out += text[done : token.start] + _named(meant[0], read, at)
        done = token.end
    return out + text[done:], subject


def _is_it(text: str, mention: Mention, before: str) -> bool:
    opens = before.lower().startswith(mention.words.lower()) and mention.words[:1].lower() in "mot"
    return opens and bool(phrase("it_is", "^(?:{})").match(text))


def _named(mention: Mention, read: Sequence[Token], at: int) -> str:
    words, low = mention.words, read[at].low
    if low in listed("owning") or (low == "her" and at + 1 < len(read) and _is_owned(read, at + 1)):
        return f"{words}'s"
    if low in {"hes", "shes", "theyre"}:
        return f"{words} {'are' if low == 'theyre' else 'is'}"
    if low.endswith("'s"):
        following = read[at + 1].low if at + 1 < len(read) else ""
        return f"{words}'s" if is_past(following) or following in {"been", "got"} else f"{words} is"
    suffix = next((each for each in _SUFFIXES if low.endswith(each)), "")
    return words + _SUFFIXES.get(suffix, "")


def _is_owned(read: Sequence[Token], at: int) -> bool:
    ends = ("prepositions", "determiners", "adverbs", "joiners")
    ended = any(read[at].low in listed(name) for name in ends) or read[at].low in {"there", "here"}
    return read[at].is_word and not ended and not read[at].low[0].isdigit()


def spoken(preceding: Sequence[str]) -> Iterator[str]:
    """Yield the words of the latest turns, without who said them."""
    for turn in preceding[-LATEST:]:
        yield turn.partition(": ")[2][:1000] or turn[:1000]
