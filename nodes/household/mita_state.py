"""State of a MiTa team between its steps, and what is derived: progress, joint belief, windows."""

from collections import Counter
from collections.abc import Sequence
from operator import add
from typing import Annotated, Any, NotRequired

from typing_extensions import TypedDict

from mneme.environments.household.beliefs import Beliefs
from mneme.environments.household.episode import Episode
from mneme.nodes.household.household_state import Ending, HouseholdState
from mneme.prompts.household.household import Option

FALLBACK = "fallback: "
"""Prefix of a reason that says why an answer was unusable."""


class Progress(TypedDict):
    """The team's progress by its joint belief: placed by predicate, held and found by class."""

    placed: dict[str, int]
    held: dict[str, int]
    found: dict[str, int]


class DatedSynopsis(TypedDict):
    """A synopsis, when it was made, why, and what was then known of the things and places that it names.

    `merged` counts the synopses that were merged into this one.
    """

    step: int
    change: str
    synopsis: dict[str, Any]
    known: dict[str, Any]
    merged: NotRequired[int]


def in_words(dated: DatedSynopsis) -> str:
    """Return a synopsis with the step at which it was made, or up to which several were put together."""
    when = f"Up to step {dated['step']}, put together" if "merged" in dated else f"Step {dated['step']}"
    return f"{when}: {dated['synopsis']['narrative']}"


def merged(synopses: Sequence[DatedSynopsis]) -> Beliefs:
    """Merge the statements of synopses; the later one is right where they differ."""
    return together([Beliefs.model_validate(each["known"]) for each in synopses])


class Proposed(TypedDict):
    """One member's proposal, and the mark of the situation in which it was made."""

    member: int
    reason: str
    option: dict[str, Any]
    mark: str


class ProposalRequest(TypedDict):
    """A member's situation to propose in, and the mark of the situation of its last proposal."""

    round: int
    situation: dict[str, Any]
    proposed_in: str


class State(HouseholdState, total=False):
    """What MiTa adds: progress as it was, synopses, what was done since, and this round's proposals.

    `said` has, by its name, what each member's plan was decided for, by whom and when. `stuck` has the
    actions that a lapse keeps. `overruled` tells each member, by its name, what the manager last decided
    against its proposal, and why; `refused` has that proposal, as often as it was refused in a row.
    `forbidden` is the wish for which the manager lets all wait, since it forbids the task.
    """

    assessed: Progress
    last: Progress
    run: str
    shared: list[str]
    last_step: int
    actions: list[str]
    synopses: list[DatedSynopsis]
    proposals: Annotated[list[Proposed], add]
    reason: str
    said: dict[str, str]
    stuck: dict[str, str]
    overruled: dict[str, str]
    refused: dict[str, list[str]]
    forbidden: str
    proposed_in: dict[str, str]


class Result(Ending, total=False):
    """How the episode ended, and what was remembered of it."""

    synopses: list[DatedSynopsis]


def in_order(state: State) -> list[Proposed]:
    """Return the proposals in the order of the members."""
    return sorted(state["proposals"], key=lambda proposed: proposed["member"])


def option_of(proposed: Proposed) -> Option:
    """Return the action that a member proposed."""
    return Option.model_validate(proposed["option"])


def together(beliefs: Sequence[Beliefs]) -> Beliefs:
    """Merge the beliefs of several members; the latest sight of each thing counts."""
    latest = max(beliefs, key=lambda each: each.step)
    team = Beliefs(agent=-1, step=latest.step, rooms=latest.rooms)
    for each in beliefs:
        team.merge(each)
    return team


def since(beliefs: Beliefs, step: int) -> Beliefs:
    """Return what was seen at a step or later; the rest is outside the window."""
    return beliefs.model_copy(
        update={
            "things": {key: known for key, known in beliefs.things.items() if known.step >= step},
            "checked": {key: at for key, at in beliefs.checked.items() if at >= step},
            "room_seen": {key: at for key, at in beliefs.room_seen.items() if at >= step},
            "lost": {key: at for key, at in beliefs.lost.items() if at >= step},
        }
    )


def assess(episode: Episode, beliefs: Sequence[Beliefs]) -> Progress:
    """Evaluate progress from the joint belief (algorithm 1, line 9)."""
    team = together(beliefs)
    names = episode.goal_names()
    held = [
        known.name for known in team.things.values() if known.relation == "held by" and known.name in names
    ]
    known = Counter(each.name for each in team.objects())
    return Progress(
        placed=team.placed(episode.goals),
        held=Counter(held),
        found={name: min(known[name], count) for name, count in wanted_in(episode).items() if known[name]},
    )


def wanted_in(episode: Episode) -> dict[str, int]:
    """Count the things of each class that the goals ask for."""
    wanted = Counter[str]()
    for goal in episode.goals:
        wanted[goal.name] += goal.count
    return wanted


def change_of(before: Progress, now: Progress) -> str:
    """Describe Δp in words."""
    parts = [
        f"{what}: {', '.join(changed)}"
        for what, changed in (
            ("placed", _differences(before["placed"], now["placed"])),
            ("in hands", _differences(before["held"], now["held"])),
            ("found", _differences(before["found"], now["found"])),
        )
        if changed
    ]
    return "; ".join(parts) or "nothing"


def _differences(before: dict[str, int], now: dict[str, int]) -> list[str]:
    changes = {name: now.get(name, 0) - before.get(name, 0) for name in {**before, **now}}
    return [f"{change:+d} {name}" for name, change in changes.items() if change]
