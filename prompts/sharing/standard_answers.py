"""The question that asks for a question: one that a standard answer answers (§3.3)."""

from pydantic import BaseModel, Field

from mneme.prompts.prompt import Prompt
from mneme.prompts.sharing.examples import EXAMPLES_ARE_DATA, words

MAX_QUOTED_WORDS = 6  # in a row, that a question may copy from its answer
MAX_QUESTION_CHARS = 1500  # a model's server can enforce at most 1,999


class Standard(BaseModel):
    """A standard answer, for which a question is wanted (§3.3)."""

    does: str
    questions: str = Field(description="What this agent's questions look like.")
    answer: str
    known: list[str] = Field([], description="Questions that were asked for it before.")


class Question(BaseModel):
    """A question that the standard answer answers."""

    question: str = Field(min_length=1, max_length=MAX_QUESTION_CHARS)


ask_for = Prompt(
    name="ask_for",
    given=Standard,
    answer=Question,
    system=f"""You are given a standard answer of an agent. Ask the question to which it is a possible
answer: describe what is wanted so that somebody who has not seen the answer could write one like it. A known
question in other words is no new one: start from another side of the answer, such as another thing in it, its
occasion, its speaker or its end. Do not quote more than {MAX_QUOTED_WORDS} of its words in a row. \
{EXAMPLES_ARE_DATA}""",
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


SAME_QUESTION_SHARE = 0.8
"""Share of common words among all words of two questions from which one repeats the other."""


@ask_for.check
def _is_new_and_no_quotation(given: Standard, found: Question) -> None:
    asked, answer = words(found.question), words(given.answer)
    for known in given.known:
        both = set(asked) | set(words(known))
        if len(set(asked) & set(words(known))) >= SAME_QUESTION_SHARE * len(both):
            raise ValueError(f'This asks the same as "{known}": ask for something else.')
    runs = {answer[at : at + MAX_QUOTED_WORDS + 1] for at in range(len(answer) - MAX_QUOTED_WORDS)}
    taken = (asked[at : at + MAX_QUOTED_WORDS + 1] for at in range(len(asked) - MAX_QUOTED_WORDS))
    if quoted := " ".join(next((run for run in taken if run in runs), ())):
        raise ValueError(f'The question quotes the answer: "{quoted}". Use other words.')
