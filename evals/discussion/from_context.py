"""What an agent can answer from its context alone: the question that shows whether a fact has survived.

An answer rests on quotes, and a quote must stand in what is shown: who finds nothing says so, and guesses
nothing. Whether the facts that an answer needs are there is not asked here: the program knows that itself.

Rules quote what stands there, and conclude no further. They understand two forms of question. `Where is the
…?`, in whatever words: the newest sentence that names the thing and one option tells. Any other: an option of
which a sentence says that it is ruled out falls, and where one alone is left, that is the answer. Everything
else is -1.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import BaseModel, Field

from mneme.prompts.discussion.intrinsic_memory import DATA
from mneme.prompts.prompt import Prompt, Reason, Schemas, one_of
from mneme.rules.registry import rule

MOST_QUOTES = 12
LONGEST_QUOTE = 400
ASKED = re.compile(r"\bis the (?P<thing>.+?)(?: now)?\?", re.IGNORECASE)
OPENING, CLOSING = re.compile(r"^\[(\d+)\] "), re.compile(r" \[(\d+)\]$")
SENTENCE_END = re.compile(r"(?<=[.!?;])\s+")
MARKUP = " \t\"',-[]{}"
RULED_OUT = "ruled out"
Quote = Annotated[str, Field(max_length=LONGEST_QUOTE)]


class Shown(BaseModel):
    """What an agent is shown, and what it is asked."""

    task: str
    memory: str = ""
    turns: str = ""
    question: str
    options: list[str] = Field(min_length=2)


class FromContext(BaseModel):
    """One of the options, with what it rests on; -1 where what is shown does not tell."""

    quotes: list[Quote] = Field(max_length=MOST_QUOTES, description="Copied word by word, one sentence each.")
    reason: Reason
    option: int


answer_from_context = Prompt(
    name="answer_from_context",
    given=Shown,
    answer=FromContext,
    system=f"""You answer a question from what you are shown, and from nothing else. First copy the sentences
that tell the answer, word by word, from the memory or the turns. Where two of them contradict each other, the
later turn holds. Then choose the option that they lead to. Where they do not tell, choose -1: do not
guess. {DATA}""",
    examples=[
        FromContext(
            quotes=["The ferry leaves from pier 3 today."],
            reason="The later turn names pier 3, the earlier one pier 5.",
            option=2,
        )
    ],
    user="""Task:
$task

What you remember:
$memory

The turns so far:
$turns

Question: $question

Options:
$options""",
)


@answer_from_context.bound
def offers_options(given: Shown) -> Schemas:
    """Offer the options, and -1 for none."""
    return {"option": one_of(len(given.options), -1)}


@answer_from_context.check
def names_an_option(given: Shown, answer: FromContext) -> None:
    """Refuse an option that is not there."""
    if not -1 <= answer.option < len(given.options):
        raise ValueError(f"There is no option {answer.option}: 0 to {len(given.options) - 1}, or -1.")


@answer_from_context.check
def quotes_what_is_shown(given: Shown, answer: FromContext) -> None:
    """Refuse a quote that does not stand in memory or turns, and an option that rests on none."""
    shown = _plain(f"{given.memory}\n{given.turns}")
    for quote in answer.quotes:
        if not _plain(quote) or _plain(quote) not in shown:
            raise ValueError(f"{quote[:80]!r} does not stand in the memory or the turns: copy, or leave out.")
    if answer.option >= 0 and not answer.quotes:
        raise ValueError("The option rests on no quote: copy what tells it, or choose -1.")


def _plain(text: str) -> str:
    return " ".join(text.replace("\\", "").replace('"', "").split()).strip(" .").casefold()


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
