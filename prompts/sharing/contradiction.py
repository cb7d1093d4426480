"""Eq. 1 of Memory Sharing as one truth value, for models whose server tells how probable it is."""

from pydantic import BaseModel, Field

from mneme.prompts.prompt import Prompt
from mneme.prompts.sharing.memory_sharing import DATA, Comparison, grade_contradiction


class Leads(BaseModel):
    """Whether the example leads to an answer that contradicts the right one: ¬Y."""

    contradicts: bool = Field(description="The first word decides: no reason stands before it.")


contradicts = Prompt(
    name="contradicts",
    given=Comparison,
    answer=Leads,
    system=f"""An assistant is shown an example and then answers a question. The right answer is known. Does
the assistant's answer, with this example before it, contradict the right one: go against it in content, miss
its kind or its form? {DATA}""",
    examples=[Leads(contradicts=False)],
    user=grade_contradiction.user,
)
