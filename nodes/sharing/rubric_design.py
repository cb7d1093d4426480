"""Rubric design (§3.1): a model drafts criteria for scoring pairs, a person reviews them, they are frozen.

The review waits in the checkpoint for any time. Once a rubric is frozen, new pairs are scored by it; earlier
pairs keep their scores, and the number of the rubric that gave them.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Required
from uuid import uuid4

from pydantic import BaseModel, Field, ValidationError
from typing_extensions import TypedDict

from mneme.core.errors import BadInput, first_fault
from mneme.environments.fields import described
from mneme.library.agents.agent import DOMAINS, agents_of
from mneme.library.agents.rubric import SINGLE_POOL, Rubric
from mneme.models.asking.asking import ask
from mneme.nodes.answers import Listed, PersonAnswer, action, ask_person, read_answer
from mneme.nodes.context import ledger_of, team_of
from mneme.nodes.sharing.context import DesignRuntime
from mneme.nodes.sharing.pools import rubrics_of
from mneme.nodes.workflow import Plain, Typed, Update, read_input
from mneme.prompts.sharing.examples import Criterion
from mneme.prompts.sharing.rubric_design import Domain, draft_rubric
from mneme.stores.ledger.records import Change

REVIEW_HINT = "Decide: approve, edit (with criteria), redraft (with wishes) or reject."


SCORED_DOMAIN = Field(
    description="The domain whose pairs it scores; may be a new one.", examples=[*DOMAINS, SINGLE_POOL]
)


class Wanted(TypedDict, total=False):
    """The domain that needs a rubric, its tasks, and a person's wishes for the rubric."""

    domain: Required[Annotated[str, SCORED_DOMAIN]]
    tasks: Annotated[
        list[str],
        described(
            "What the agents of a new domain write and are asked; known of the shipped ones.",
            ["Write a haiku about a season."],
            [],
        ),
    ]
    wishes: Annotated[str, described("What the rubric shall look at, in words.", "Value the rhyme most.")]


class Result(TypedDict, total=False):
    """The rubric, and its version if it was frozen; 0: it was rejected."""

    rubric: Annotated[dict[str, Any], Plain]
    version: int
    drafted_by: str


class Args(BaseModel):
    """The arguments of the one action that a person reviews."""

    criteria: Listed[Criterion]


class Review(BaseModel):
    """A person's decision on a drafted rubric; `nodes/answers.py` has the forms in which clients send it."""

    decision: Literal["approve", "edit", "redraft", "reject"] = Field(
        description="What becomes of the draft."
    )
    criteria: Listed[Criterion] = Field([], description="For edit: the rubric as it shall be.")
    wishes: str = Field("", description="For redraft: what the next draft shall do.")
    reason: str = Field("", description="Why; kept with the version.")
    by: str = Field("a person", description="Who reviews.")


class State(Wanted, Result, total=False):
    """The design, and the person's decision on its draft."""

    design: str
    review: Annotated[Review | None, Typed]


async def draft(state: State, runtime: DesignRuntime) -> Update:
    """Let a model draft the criteria with their points."""
    asked = read_input(Wanted, state)
    domains = {each: [each] for each in DOMAINS} | {SINGLE_POOL: [*DOMAINS]}
    known = [each.task for name in domains.get(asked["domain"], ()) for each in agents_of(name)]
    if not (tasks := asked["tasks"] or known):
        hint = f"Say with `tasks` what its agents write, or name one of {', '.join(domains)}."
        raise BadInput(f"Nothing is known of the domain {asked['domain']}.", hint)
    given = Domain(domain=asked["domain"], tasks=tasks, wishes=asked["wishes"])
    answered = await ask(draft_rubric, given, runtime.context.designer)
    rubric = rubric_from(state["domain"], answered.value.criteria)
    runtime.stream_writer({"step": "draft", "rubric": rubric.as_text()})
    drafted = {"rubric": rubric, "drafted_by": answered.responder}
    return {"design": uuid4().hex, **drafted, "version": 0, "review": None}


def rubric_from(domain: str, criteria: Sequence[BaseModel]) -> Rubric:
    """Return criteria as a rubric. Raises BadInput naming the fault, such as a sum other than 100."""
    try:
        title = DOMAINS.get(domain, domain.replace("_", " ").capitalize())
        return Rubric.model_validate({"name": domain, "title": title, "criteria": map(dict, criteria)})
    except ValidationError as error:
        hint = "The points of all criteria sum to 100."
        raise BadInput(first_fault(error, "the rubric"), hint) from error


async def review(state: State, runtime: DesignRuntime) -> Update:
    """Wait for a person's decision; after an unusable answer ask again, with the reason."""
    rubric = Rubric.model_validate(state["rubric"])
    about = f"The rubric of {rubric.title}, drafted by {state['drafted_by']}:\n{rubric.as_text()}"
    args = Args(criteria=state["rubric"]["criteria"])
    shown = action("freeze_rubric", about, args, ("approve", "edit", "reject"))
    question = {"rubric": state["rubric"], **shown}
    found = ask_person(question, Review, lambda said: plainly(said, state["domain"]))
    wishes = "\n".join(filter(None, [state.get("wishes", ""), found.wishes]))  # all, for the next draft
    return {"review": found, "wishes": wishes}


def plainly(said: object, domain: str) -> Review:
    """Read a person's decision. Raises BadInput if it decides nothing, or has an invalid rubric.

    Text without a decision means wishes for another draft; ignoring the question rejects the draft.
    """

    def fields_of(given: PersonAnswer) -> dict[str, Any]:
        decision = {"accept": "approve", "edit": "edit", "respond": "redraft"}.get(given.kind, "reject")
        words = {"wishes" if decision == "redraft" else "reason": given.text}
        return {**given.args, "decision": decision, **words}

    whole = read_answer(Review, said, REVIEW_HINT, fields_of)
    if whole.decision == "edit":
        rubric_from(domain, whole.criteria)  # raises while the person can still be asked again
    if whole.decision == "redraft" and not whole.wishes.strip():
        raise BadInput("The same draft would be written again.", "Say with `wishes` what is to change.")
    return whole


def is_reviewed(state: State) -> Literal["draft", "freeze", "__end__"]:
    """Freeze an approved or edited rubric; draft again on request; a rejected draft is no version."""
    assert state["review"] is not None  # `review` comes before
    ways: dict[str, Literal["draft", "__end__"]] = {"redraft": "draft", "reject": "__end__"}
    return ways.get(state["review"].decision, "freeze")


async def freeze(state: State, runtime: DesignRuntime) -> Update:
    """Add the rubric as a version, once."""
    said = state["review"]
    assert said is not None
    rubric = Rubric.model_validate(state["rubric"])
    if said.decision == "edit":
        rubric = rubric_from(state["domain"], said.criteria)
    reason = said.reason or f"{'edited' if said.decision == 'edit' else 'approved'} after review"
    change = Change(reason=reason, actor=said.by, model=state["drafted_by"])
    rubrics = rubrics_of(ledger_of(runtime), team_of(runtime))
    frozen = await rubrics.freeze(rubric.name, rubric, change=change, once=state["design"])
    runtime.stream_writer({"step": "freeze", "rubric": rubric.name, "version": frozen.version})
    return {"rubric": rubric, "version": frozen.version}
