"""What an agent can answer from its context alone: the question that shows whether a fact has survived.

An answer rests on quotes, and a quote must stand in what is shown: who finds nothing says so, and guesses
nothing. Whether the facts that an answer needs are there is not asked here: the program knows that itself.
"""

from typing import Annotated

from pydantic import BaseModel, Field

from mneme.prompts.discussion.intrinsic_memory import DATA
from mneme.prompts.prompt import Prompt, Reason, Schemas, one_of

MOST_QUOTES = 12
LONGEST_QUOTE = 400
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
