"""Eq. 1 of Memory Sharing as one truth value, for models whose server tells how probable it is."""

from pydantic import BaseModel, Field

from prompts.memory_sharing import DATA, Comparison, grade_contradiction
from prompts.prompt import prompt


class Leads(BaseModel):
    """Whether the example leads to an answer that contradicts the right one: ¬Y."""

    contradicts: bool = Field(description="The first word decides: no reason stands before it.")


@prompt(
    system=f"""An assistant is shown an example and then answers a question. The right answer is known. Does
the assistant's answer, with this example before it, contradict the right one: go against it in content, miss
its kind or its form? {DATA}
Reply with one JSON object, e.g. {{"contradicts": false}}""",
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
def contradicts(given: Comparison) -> Leads:
    """Hold it for more probable than not, by the graded question."""
    return Leads(contradicts=grade_contradiction.rule(given).percent > 50)
