"""The questions by which MiTa decides: propose (eq. 2), allocate (eqs. 3 and 4).

A member proposes its next action from its own view. The manager chooses one action for each member from the
cross-agent context, the synopses, the progress and the task.
"""

from typing import Annotated

from pydantic import BaseModel, Field

from mneme.prompts.household.household import HOUSEHOLD_IS_DATA, Knowledge, Option, View, Worker
from mneme.prompts.prompt import PLAIN, Informed, Prompt, Reason, Schemas, one_of

ACTIONS = """Actions: goexplore a room: walk into it and see what lies there. gocheck a container: open it and
see what is inside; needs a free hand. gograb a thing: take it; a member has two hands. goput a place: carry
what is in hand and belongs there to it, open it if it is closed, and put it there; while its distance is not
known, look for it in rooms not explored yet. wait: do nothing, for five steps at most."""


class Situation(View):
    """The input of a proposal: the member's observation, its recent history, the progress and the task."""

    name: str
    task: str
    progress: str
    observation: str
    belief: str
    map: str = ""
    dialogue: str = ""
    done: str = ""
    usual: str = ""


class Proposal(BaseModel):
    """The action that a member would do next."""

    reason: Reason = Field(description="One sentence: why this one.")
    choice: int = Field(description="The number of one of the options.")


propose_action = Prompt(
    name="propose_action",
    given=Situation,
    answer=Proposal,
    system=f"""You are a member of a team in an apartment. The team is to finish its task in as few steps as
possible. Propose your own next action: choose one of the numbered options. Prefer what is near, what is
likely to hold a missing thing, and what no teammate is doing; do not look twice in one place; carry two
things where that saves a way. {ACTIONS} {HOUSEHOLD_IS_DATA}""",
    examples=[Proposal(reason="The wicker basket is near and an umbrella is missing.", choice=2)],
    user="""You are $name.

Task:
$task

Progress:
$progress

What you see now:
$observation

What you believe:
$belief

Map:
$map

What you did lately:
$done

What the team said last:
$dialogue

Where such things were in earlier episodes:
$usual

Options:
$options""",
    bounds=[lambda given: {"choice": one_of(range(len(given.options)))}],
)


REPEATS = 3
"""Number of times from which a repeated proposal must be followed or answered."""


class Report(BaseModel):
    """A member in the cross-agent context: its proposal, its observation and its belief (eq. 3)."""

    worker: Worker
    proposal: int
    times: int = Field(1, description="How often it has proposed this by now, one time after the other.")
    reason: str = ""
    observation: str = ""
    belief: str = ""
    options: list[Option]

    def __str__(self) -> str:
        options = "\n".join(f"    [{number}] {option}" for number, option in enumerate(self.options))
        again = f" ({self.times} times by now)" if self.times > 1 else ""
        return (
            f"{self.worker.name} sees: {_indented(self.observation)}\n"
            f"  believes: {_indented(self.belief)}\n"
            f"  proposes [{self.proposal}]{again}: {self.reason}\n"
            f"  may do:\n{options}"
        )


def _indented(text: str) -> str:
    """Indent all lines but the first, so that each is seen to belong to the member."""
    return text.replace("\n", "\n    ")


class CrossContext(Knowledge, Informed):
    """The input of the manager's allocation: the reports, the synopses, the progress and the task."""

    task: str
    progress: str
    synopses: str = ""
    usual: str = ""
    members: Annotated[list[Report], PLAIN]


MAX_WISH_CHARS = 300  # of the quote of a wish that forbids the task


class Allocation(BaseModel):
    """A joint action: one option for each member."""

    reason: Reason = Field(description="One or two sentences: why these actions together.")
    # Before the choices: where a wish forbids the task, all members wait, and the episode ends as not done.
    forbidden: str = Field(
        "",
        max_length=MAX_WISH_CHARS,
        description="The remembered wish that forbids the task itself, in its words; empty: nothing does.",
    )
    choices: dict[str, int] = Field(description="Each member's name, and the number of one of its options.")


# Closed containers "stand among what a member may do", since synopses list none. A repeated proposal is kept
# or answered, since an overruled member is told the reason.
allocate_actions = Prompt(
    name="allocate_actions",
    given=CrossContext,
    answer=Allocation,
    system=f"""You are the manager of a team in an apartment. The team is to finish its task in as few steps
as possible. Your members told what they see, believe and propose. Assign each member one of its own options,
so that together they are the best joint action: no two go for the same thing, container or room; nobody
looks where somebody has looked already; whoever is nearest goes; nothing is fetched beyond what is missing;
nobody is idle while something is to be done. Keep a proposal where it fits; one that was made {REPEATS} times
is kept, or the reason names its member and says why not. Closed containers stand among what a member may do.
Respect what people wish. Where a wish forbids the task itself, so that it cannot be finished, quote that wish
in forbidden and let everybody wait; where another way is left, take it and leave forbidden empty.
{ACTIONS} {HOUSEHOLD_IS_DATA}
The choices have each member's name and the number of its option.""",
    examples=[
        Allocation(
            reason="Olga is nearest to the wicker basket; Pedro explores the conservatory instead.",
            choices={"Olga": 2, "Pedro": 0},
        )
    ],
    user="""Task:
$task

Progress:
$progress

What happened so far:
$synopses

Where such things were in earlier episodes:
$usual

Members:
$members""",
)


@allocate_actions.bound
def an_option_for_each_member(given: CrossContext) -> Schemas:
    """Demand of each member, by its name, the number of one of its own options."""
    options = {report.worker.name: one_of(range(len(report.options))) for report in given.members}
    return {"choices": {"properties": options, "required": [*options], "additionalProperties": False}}


@allocate_actions.check
def nothing_is_done_twice(given: CrossContext, answer: Allocation) -> None:
    """Refuse two members that go for the same thing, container or room (§3.2)."""
    options = {report.worker.name: report.options for report in given.members}
    claims: dict[int, str] = {}
    for name, number in answer.choices.items():
        option = options[name][number]
        if option.claim is not None and option.claim in claims:
            both = f"{claims[option.claim]} and {name} both go for <{option.name}> ({option.target})"
            raise ValueError(f"{both}: give one of them another option.")
        if option.claim is not None:
            claims[option.claim] = name


@allocate_actions.check
def a_wish_that_forbids_was_told(given: CrossContext, answer: Allocation) -> None:
    """Refuse a wish that forbids the task if no shared memories were given."""
    if answer.forbidden.strip() and not given.shared:
        raise ValueError("No wish was told that could forbid the task: leave forbidden empty.")


# A doubt: the manager may have answered in other words than the member's name.
@allocate_actions.doubt
def who_insists_is_heeded_or_answered(given: CrossContext, answer: Allocation) -> None:
    """Ask why a proposal that was made again and again is not kept, where the reason does not say."""
    for each in given.members:
        name = each.worker.name
        if each.times >= REPEATS and answer.choices[name] != each.proposal and name not in answer.reason:
            asked = f"{name} proposed {each.options[each.proposal]} {each.times} times by now"
            raise ValueError(f"{asked}: choose that, or say in the reason why not, with {name}'s name.")
