"""The question that asks for a question: one that a standard answer answers (§3.3)."""

from pydantic import BaseModel, Field

from mneme.prompts.prompt import Prompt
from mneme.prompts.sharing.examples import DATA, words

QUOTED = 6
"""Words in a row that a question may take over from the answer that it asks for."""
LONGEST_QUESTION = 1500
"""The most characters of a question that is asked for an answer."""


class Standard(BaseModel):
    """A standard answer, for which a question is wanted (§3.3)."""

    does: str
    questions: str = Field(description="What this agent's questions look like.")
    answer: str
    known: list[str] = Field([], description="Questions that were asked for it before.")


class Question(BaseModel):
    """A question that the standard answer answers."""

    question: str = Field(min_length=1, max_length=LONGEST_QUESTION)


ask_for = Prompt(
    name="ask_for",
    given=Standard,
    answer=Question,
    system=f"""You are given a standard answer of an agent. Ask the question to which it is a possible
answer: describe what is wanted so that somebody who has not seen the answer could write one like it. A known
question in other words is no new one: start from another side of the answer, such as another thing in it, its
occasion, its speaker or its end. Do not quote more than {QUOTED} of its words in a row. {DATA}""",
    examples=[Question(question="Write a sea shanty about a cook who salts every herring twice.")],
    user="""<agent>
$does
Its questions: $questions
</agent>

<answer>
$answer
</answer>

Known questions:
$known""",
)


@ask_for.check
def _is_new_and_no_quotation(given: Standard, found: Question) -> None:
    if known := next((each for each in given.known if _same(found.question, each)), None):
        raise ValueError(f'This asks the same as "{known}": ask for something else.')
    if quoted := _quoted(found.question, given.answer):
        raise ValueError(f'The question quotes the answer: "{quoted}". Use other words.')


SAME = 0.8
"""Share of all their words that two questions have in common, from which on one says the other again."""


def _same(one: str, other: str) -> bool:
    first, second = set(words(one)), set(words(other))
    return len(first & second) >= SAME * len(first | second)


def _quoted(question: str, answer: str) -> str:
    """Return the first words that a question takes over from an answer in a row, where they are too many."""
    asked, text = words(question), words(answer)
    runs = {text[at : at + QUOTED + 1] for at in range(len(text) - QUOTED)}
    found = (asked[at : at + QUOTED + 1] for at in range(len(asked) - QUOTED))
    return " ".join(next((run for run in found if run in runs), ()))
