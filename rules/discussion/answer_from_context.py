"""How rules answer a question from a context: they quote what stands there, and conclude no further.

Two forms of question are understood. `Where is the …?`, in whatever words: the newest sentence that names
the thing and one option tells. Any other: an option of which a sentence says that it is ruled out falls, and
where one alone is left, that is the answer. Everything else is -1.
"""

import re
from collections.abc import Iterator, Sequence

from mneme.prompts.discussion.answer_from_context import (
    LONGEST_QUOTE,
    MOST_QUOTES,
    FromContext,
    Shown,
    answer_from_context,
)
from mneme.rules.registry import rule

ASKED = re.compile(r"\bis the (?P<thing>.+?)(?: now)?\?", re.IGNORECASE)
OPENING, CLOSING = re.compile(r"^\[(\d+)\] "), re.compile(r" \[(\d+)\]$")
SENTENCE_END = re.compile(r"(?<=[.!?;])\s+")
MARKUP = " \t\"',-[]{}"
RULED_OUT = "ruled out"


@rule(answer_from_context)
def answer(given: Shown) -> FromContext:
    """Answer by the newest sentence about a thing, or by what is ruled out."""
    sentences = [said for _, said in sorted(_numbered(given), key=lambda pair: pair[0])]
    asked = ASKED.search(given.question)
    return _newest(given, sentences, asked["thing"]) if asked else _left(given, sentences)


def _numbered(given: Shown) -> Iterator[tuple[int, str]]:
    """Yield each sentence with the number of its turn; 0 for what is remembered without one."""
    for text in (given.memory, given.turns):
        number = 0
        for line in text.splitlines():
            opened, closed = OPENING.match(line), CLOSING.search(line)
            number = int(opened[1]) if opened else int(closed[1]) if closed else number
            for said in SENTENCE_END.split(CLOSING.sub("", line)):
                if said.strip(MARKUP):
                    yield number, said.strip(MARKUP)[:LONGEST_QUOTE]


def _newest(given: Shown, sentences: Sequence[str], thing: str) -> FromContext:
    for said in reversed(sentences):
        named = [at for at, option in enumerate(given.options) if _names(said, option)]
        if _names(said, thing) and len(named) == 1:
            return FromContext(quotes=[said], reason=f"Said last of the {thing}.", option=named[0])
    return FromContext(quotes=[], reason=f"Nothing tells where the {thing} is.", option=-1)


def _left(given: Shown, sentences: Sequence[str]) -> FromContext:
    out = {
        at: said
        for said in sentences
        if RULED_OUT in said.casefold()
        for at, option in enumerate(given.options)
        if _names(said.casefold().partition(RULED_OUT)[0], option)
    }
    left = [at for at in range(len(given.options)) if at not in out]
    option = left[0] if len(left) == 1 and out else -1
    reason = f"{len(out)} of {len(given.options)} options are ruled out in what is shown."
    return FromContext(quotes=list(out.values())[:MOST_QUOTES], reason=reason, option=option)


def _names(text: str, name: str) -> bool:
    return bool(re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE))
