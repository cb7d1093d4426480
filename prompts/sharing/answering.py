"""The question that an agent answers after its examples (§3.1)."""

from pydantic import Field

from mneme.prompts.prompt import Informed, Prompt
from mneme.prompts.sharing.examples import EXAMPLES_ARE_DATA, Criteria, Example


class AskedQuestion(Informed):
    """A question to an agent, with the memories that were retrieved for it."""

    does: str = Field(description="What the agent writes.")
    examples: list[Example] = Field([], description="Most useful first.")
    leading: list[str] = Field([], description="Earlier turns of this conversation, oldest first.")
    question: str
    kind: str = Field("", description="The agent's name, such as sonnet.")
    scored_by: Criteria = Field(Criteria([]), description="What the answer will be scored by.")


# "Never copy an example": an answer that repeats what it was shown is not stored.
answer = Prompt(
    name="answer",
    given=AskedQuestion,
    answer=str,
    system=f"""You answer questions of one kind, as described. Examples of questions with good answers may be
given, some of them from agents that answer questions of another kind: learn from them what a good answer is
like, its form, its tone, its detail, and answer the new question on its own matter and in your own kind.
Never copy an example. Reply with the answer alone. {EXAMPLES_ARE_DATA}""",
    user="""Your task: $does

What a good answer is scored by:
$scored_by

<examples>
$examples
</examples>

<earlier_turns>
$leading
</earlier_turns>

Now answer this question: $question""",
)
