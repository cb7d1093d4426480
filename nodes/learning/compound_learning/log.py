"""What a finished task leaves in the log (§10): its trajectory, what it cost, and which mistakes it made."""

import hashlib
from collections.abc import Sequence

from mneme.environments.worlds import World
from mneme.nodes.learning.compound_learning.research import shorten_middle
from mneme.nodes.learning.compound_learning.state import (
    Learned,
    LoggedObjection,
    State,
    draft_of,
    scope_of,
    settled_words,
    used_cards,
)
from mneme.stores.cards.card import normalised
from mneme.stores.cards.task_log import TaskRecord


def trajectory_of(state: State) -> list[str]:
    """Tell the task draft by draft: what it was, what its trial showed, what was objected to it."""
    told = []
    for number, each in enumerate(state["drafts"], start=1):
        log = [entry for entry in state["log"] if entry["round"] == number]
        lines = [
            f"draft {number} ({each['draft'].pattern or 'no pattern'}):",
            str(draft_of(state, number - 1)),
        ]
        lines += [f"trial: {trial}"] if (trial := each["trial"]) else []
        lines += [f"objected: {said}" for said in settled_words(log)]
        told.append(shorten_middle("\n".join(lines)))
    return told


def record_of(state: State, world: World | None, learned: Sequence[Learned] = ()) -> TaskRecord:
    """Return what the log keeps of a task."""
    metrics = state["packet"]["metrics"]
    return TaskRecord(
        id=state["task_id"],
        task=state["task"],
        material=shorten_middle(world.material()) if world else "",
        domain=scope_of(world, state),
        solved=state["packet"]["solved"],
        seconds=sum(each["seconds"] for each in state["effort"]),
        iterations=state["iterations"],
        model_calls=sum(each["calls"] for each in state["effort"]),
        tokens=sum(each["tokens"] for each in state["effort"]),
        confidence=state["packet"]["confidence"],
        speed_up=metrics["speed_up"],
        retrieved=[each["id"] for each in state["cards"]],
        used=[each["id"] for each in used_cards(state)],
        retrieval_ms=state["retrieval_ms"],
        mistakes=_mistakes(state),
        cards=list(dict.fromkeys(each["card"] for each in learned)),
        disputes=[each["dispute"] for each in learned if each["dispute"]],
        answered_by=", ".join(sorted({each.split(": ", 1)[1] for each in state["responders"]})),
    )


def _mistakes(state: State) -> list[str]:
    """Name each draft that was blocked, the same for the same approach to the same kind of task."""
    blocked = [each for each in state["log"] if each["objection"].severity == "blocking"]
    made = [(_approach(each, state), state["features"] or state["task"]) for each in blocked]
    return list(dict.fromkeys(f"{approach} for {kind}" for approach, kind in made if approach))


def _approach(entry: LoggedObjection, state: State) -> str:
    """Return a draft's pattern, else a digest of its solution: what says neither is like nothing else."""
    draft = draft_of(state, entry["round"] - 1)
    if draft.pattern or not draft.solution:
        return draft.pattern
    return f"solution {hashlib.sha256(normalised(draft.solution).encode()).hexdigest()[:12]}"
