"""The questions that grade a candidate example of a memory, in words (§3.2, eq. 1)."""

from typing import Annotated

from pydantic import BaseModel, Field

from mneme.prompts.prompt import Prompt, Reason
from mneme.prompts.sharing.examples import EXAMPLES_ARE_DATA, Example


class Comparison(BaseModel):
    """A new memory, and one candidate that would be shown as its example (eq. 1)."""

    example: Example
    leading: list[str] = Field([], description="Turns that led up to the question, oldest first.")
    question: str
    answer: str = Field(description="The memory's answer, which counts as right.")


class Contradiction(BaseModel):
    """How probable it is that the example leads to an answer that contradicts the right one."""

    rationale: Reason
    # Of the wrong answer, as eq. 1 has it; the authors' code asks for the right one, in the same order.
    # A whole number: Ollama's grammars ignore the limits of fractions.
    percent: Annotated[int, Field(ge=0, le=100)]


grade_contradiction = Prompt(
    name="grade_contradiction",
    given=Comparison,
    answer=Contradiction,
    system=f"""An assistant is shown an example and then answers a question. The right answer is known. Say
how probable it is, in per cent, that with this example the assistant's answer contradicts the right one: goes
against it in content, misses its kind or its form. 0: the example leads straight to such an answer. 100: it
leads away from it. {EXAMPLES_ARE_DATA}""",
    examples=[
        Contradiction(
            rationale="It is a sea shanty too, of herring in place of whales; the refrain carries over.",
            percent=20,
        )
    ],
    user="""<example>
$example
</example>

<earlier_turns>
$leading
</earlier_turns>

<question>
$question
</question>

<right_answer>
$answer
</right_answer>""",
)
