"""CoELA's steps (Zhang et al., ICLR 2024): remember, communicate, plan; perceiving and execution are shared.

Each agent is by itself: memory (the semantic map and the progress are its beliefs; the dialogue is here),
a communication module that drafts a message before every decision, and a planner that chooses among the
possible actions, of which sending that message is one. A message costs its sender's step.

Two deviations, both in its favour: an agent also decides anew when it receives a message or sees a new thing
of the task (the published one continues its plan), as MiTa's members may; and it is shown the latest
`DIALOGUE` messages of each teammate, where the published prompt has 3 in all, of two agents.

An answer that stays unusable costs no episode: without a usable draft the agent says nothing, without a
usable choice it continues its action or takes the nearest one; both are counted as fallbacks.
"""

from mneme.environments.household.scene import AGENT_NAMES
from mneme.nodes.household.alone import AloneState, Answers, Minds, teammates
from mneme.nodes.household.context import HouseholdRuntime
from mneme.nodes.household.counters import with_counters
from mneme.nodes.household.household_state import Update
from mneme.prompts.household.coela import Planning, Situation, choose_action, draft_message
from mneme.prompts.household.household import Option

DIALOGUE = 3
"""Number of each teammate's messages that a member is shown."""


class State(AloneState, total=False):
    """Each member's dialogue, and the message that it may send now."""

    dialogues: list[list[str]]
    drafts: dict[str, str]
    deciding: list[int]


async def remember(state: State, runtime: HouseholdRuntime) -> Update:
    """Add what was heard to each member's dialogue, and determine who decides."""
    minds = Minds(state, runtime.context.window)
    dialogues = state.get("dialogues") or [[] for _ in minds.members]
    heard = [[_line(who, text, minds.world.steps) for who, text in each["heard"]] for each in minds.members]
    return {
        "dialogues": [before + now for before, now in zip(dialogues, heard, strict=True)],
        "deciding": minds.deciding(),
    }


@with_counters
async def communicate(state: State, runtime: HouseholdRuntime) -> Update:
    """Let each deciding member draft a message, if it may send one and has a real choice."""
    minds, answers = Minds(state, runtime.context.window), Answers()
    drafting = [
        number
        for number in state["deciding"]
        if len(minds.members) > 1
        and minds.world.observe(number).may_send
        and len(minds.view(number).options) > 1
    ]
    asked = {number: _situation(state, minds, number) for number in drafting}
    drafts = await answers.ask_each(draft_message, asked, runtime.context.member)
    if answers.lost:
        runtime.stream_writer({"step": "communicate", **answers.fallbacks})
    return {
        "drafts": {str(number): each.message.strip() for number, each in drafts.items()},  # keys as in JSON
        **answers.update,
    }


@with_counters
async def plan(state: State, runtime: HouseholdRuntime) -> Update:
    """Let each deciding member choose its next action, which may be sending its message."""
    minds = Minds(state, runtime.context.window)
    given = dict[int, Planning]()
    for number in state["deciding"]:  # sending its draft is one of its actions, and costs a step
        situation, message = _situation(state, minds, number), state["drafts"].get(str(number), "")
        sending = [Option(kind="send_message", text=message, steps=1)] if message else []
        options = [*situation.options, *sending]
        given[number] = Planning(**dict(situation) | {"options": options}, message=message)
    _, choices, update = await minds.choose(choose_action, given, runtime)
    return {**update, **_spoken(state, minds, choices)}


def _line(who: int, text: str, step: int) -> str:
    return f"{AGENT_NAMES[who]} at step {step}: {text}"


def _situation(state: State, minds: Minds, number: int) -> Situation:
    others = teammates(number, minds.members)
    dialogue = state["dialogues"][number]
    said = ([line for line in dialogue if line.startswith(f"{name} at ")] for name in AGENT_NAMES)
    latest = [line for lines in said for line in lines[-DIALOGUE:]]  # of each; shown in the original order
    return Situation(
        **dict(minds.view(number)),
        name=AGENT_NAMES[number],
        teammates=[AGENT_NAMES[other] for other in others],
        belief=minds.beliefs[number].words(),
        team=minds.team(number),
        dialogue=[line for line in dialogue if line in latest],
    )


def _spoken(state: State, minds: Minds, choices: dict[int, Option]) -> Update:
    """Add a sent message to its sender's own dialogue."""
    dialogues = list(state["dialogues"])
    for number, option in choices.items():
        if option.kind == "send_message":
            dialogues[number] = [*dialogues[number], _line(number, option.text, minds.world.steps)]
    return {"dialogues": dialogues}
