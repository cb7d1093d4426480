"""What MiTa remembers: the record that a synopsis is made of, and whole episodes in the ledger."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from mneme.environments.household.beliefs import Beliefs, Known, unexplored
from mneme.environments.household.scene import NAMES
from mneme.nodes.context import ledger_of, team_of
from mneme.nodes.household.context import HouseholdRuntime
from mneme.nodes.household.household import is_under_way
from mneme.nodes.household.household_state import (
    Update,
    as_json,
    beliefs_of,
    episode_of,
    plans_of,
    with_beliefs,
)
from mneme.nodes.household.mita_state import State, change_of, in_words, together, wanted_in
from mneme.nodes.household.mita_views import in_lines, progress_in_words, task_of, things_of
from mneme.nodes.household.views import knowledge_of, worker_of
from mneme.prompts.household.synopsis import Passage, Synopsis
from mneme.stores.episodes.episodic_memory import EpisodeRecord, EpisodicMemory, experience_of, furniture_of

MOST_DEEDS = 2
"""Entries that one round may add to a member's history: a plan given up, and the one in its place."""


def passage_of(state: State, beliefs: Sequence[Beliefs], team: Beliefs) -> Passage:
    """Retrieve the joint actions and beliefs since the last synopsis, and record what changed."""
    workers = [
        worker_of(number, known, plan)
        for number, (known, plan) in enumerate(zip(beliefs, plans_of(state), strict=True))
    ]
    knowledge = knowledge_of(episode_of(state), team, workers)
    return Passage(
        task=task_of(knowledge),
        actions="\n".join(
            [
                *state["actions"],
                *[
                    f"{NAMES[number]}: {entry}"
                    for number, member in enumerate(state["members"])
                    for entry in member["history"]
                    if is_under_way(entry)
                ],
            ]
        ),
        beliefs=_beliefs(beliefs, state["last_step"] + 1),
        change=change_of(state["last"], state["assessed"]),
        progress=progress_in_words(state),
        items=knowledge.items,
        places={each.id: _place_of(each, team) for each in team.objects()},
        containers=knowledge.containers,
        rooms=[room for room in knowledge.rooms if room.seen is not None],
        workers=workers,
    )


def _place_of(known: Known, team: Beliefs) -> int:
    """Return what a thing is in or on, where that has a name to the team; else the room."""
    is_told = known.relation != "held by" and known.holder in team.things
    return known.holder if known.holder is not None and is_told else known.room


def deeds(state: State, update: Update) -> list[str]:
    """Return what the members have done since the state, each with its outcome; not what is under way."""
    return [
        f"{NAMES[number]}: {entry}"
        for number, (before, now) in enumerate(zip(state["members"], update["members"], strict=True))
        for entry in now["history"][-MOST_DEEDS:]
        if entry not in before["history"] and not is_under_way(entry)
    ]


def _beliefs(beliefs: Sequence[Beliefs], oldest: int) -> str:
    """Say what each member saw since a step, and where nobody has been at all."""
    own = [
        in_lines(f"{NAMES[n]}: {known.position_in_words()}", *known.sights(oldest), known.explored(oldest))
        for n, known in enumerate(beliefs)
    ]
    seen = [room for known in beliefs for room in known.room_seen]
    return in_lines(*own, unexplored(beliefs[0].rooms, seen, "Explored by nobody yet"))


def named_in(synopsis: Synopsis, team: Beliefs) -> list[dict[str, Any]]:
    """Keep the things and places that the synopsis names, as they are; no others."""
    ids = {
        *synopsis.placed,
        *synopsis.checked,
        *synopsis.unchecked,
        *(found.thing for found in synopsis.found),
        *(found.place for found in synopsis.found),
    }
    return [as_json(team.things[each]) for each in sorted(ids) if each in team.things]


async def remembered(update: Update, runtime: HouseholdRuntime) -> Update:
    """Start from where furniture stands in this apartment, and from where things were in any."""
    memory = memory_of(update["episode"], runtime)
    episodes = await memory.recall()
    earlier = Beliefs(agent=-1, things=things_of(furniture_of(episodes)))
    beliefs = beliefs_of(update["members"])
    for known in beliefs:
        known.merge(earlier)
    members = with_beliefs(update["members"], beliefs)
    runtime.stream_writer({"step": "remember", "episodes": [each.text for each in episodes]})
    return {"members": members, "experience": experience_of(await memory.recall_everywhere())}


def memory_of(episode: dict[str, Any], runtime: HouseholdRuntime) -> EpisodicMemory:
    return EpisodicMemory(ledger_of(runtime), team_of(runtime), episode["apartment"])


def taught_by(state: State) -> EpisodeRecord:
    """Put together what the episode taught; how containers were left is no news of the next episode."""
    team, episode = together(beliefs_of(state["members"])), episode_of(state)
    names = {str(thing.id): thing.name for thing in episode.things}
    finds: dict[str, list[str]] = {}
    for thing, place in state["finds"].items():
        finds.setdefault(names[thing], []).append(place)
    return EpisodeRecord(
        run=state["run"],
        episode=episode.id,
        category=episode.category,
        success=state["success"],
        steps=state["steps"],
        synopses=[in_words(earlier) for earlier in state["synopses"]],
        finds=finds,
        wanted=wanted_in(episode),
        looked=_looked_at(team),
        furniture=[_as_at_first(each) for each in team.things.values() if each.category != "object"],
    )


def _looked_at(team: Beliefs) -> dict[str, int]:
    """Count the places that somebody looked at: containers by class, rooms by name."""
    opened = (team.things[each].name for each in team.checked if each in team.things)
    return dict(Counter([*opened, *(team.rooms[each] for each in team.room_seen)]))


def _as_at_first(known: Known) -> dict[str, Any]:
    closed = None if known.is_open is None else False
    return as_json(known.model_copy(update={"is_open": closed, "step": 0}))
