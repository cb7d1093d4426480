"""The question that drafts a rubric, which a person reviews (§3.1)."""

from pydantic import BaseModel, Field

from mneme.prompts.prompt import Prompt
from mneme.prompts.sharing.examples import EXAMPLES_ARE_DATA, TOTAL_POINTS, Criterion


class Domain(BaseModel):
    """A domain that needs a rubric."""

    domain: str
    tasks: list[str] = Field(description="What the domain's agents write, and what they are asked.")
    wishes: str = Field("", description="What a person asks of the rubric.")


class DraftedCriterion(Criterion):
    """One criterion of a draft, said in a sentence; a person may say more."""

    name: str = Field(min_length=1, max_length=80)
    points: int = Field(ge=1, le=TOTAL_POINTS, description="The most that it can earn.")
    looks_at: str = Field(min_length=1, max_length=300, description="What earns the points.")


class Drafted(BaseModel):
    """A rubric: criteria whose points sum to 100."""

    criteria: list[DraftedCriterion] = Field(min_length=1, max_length=10)


draft_rubric = Prompt(
    name="draft_rubric",
    given=Domain,
    answer=Drafted,
    system=f"""You design the rubric by which question-answer pairs of a domain are scored as examples for
later questions. Give 4 to 10 criteria that can be told apart, each with points and what earns them; the
points sum to 100. {EXAMPLES_ARE_DATA}""",
    examples=[
        Drafted(
            criteria=[
                DraftedCriterion(
                    name="Swing", points=40, looks_at="A drummer could play along with the sea shanty."
                ),
                DraftedCriterion(
                    name="Refrain", points=35, looks_at="The crew can sing it after hearing it once."
                ),
                DraftedCriterion(name="Salt", points=15, looks_at="Every stanza smells of tar and herring."),
                DraftedCriterion(
                    name="Last line", points=10, looks_at="It surprises those who know the tune."
                ),
            ]
        )
    ],
    user="""<domain>
$domain
</domain>
What its agents write, and what they are asked:
<tasks>
$tasks
</tasks>
Wishes: $wishes""",
)


# No schema can bound a sum, or demand that names differ.
@draft_rubric.check
def _sums_to_hundred(_: Domain, drafted: Drafted) -> None:
    total = sum(each.points for each in drafted.criteria)
    if total != TOTAL_POINTS:
        raise ValueError(f"The points of the criteria sum to {total}, not to {TOTAL_POINTS}: adjust them.")
    if len({each.name.casefold() for each in drafted.criteria}) < len(drafted.criteria):
        raise ValueError("Two criteria have one name: give each its own.")
