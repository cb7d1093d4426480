"""What MiTa remembers: the record that a synopsis is made of, and whole episodes in the ledger."""

from collections.abc import Sequence
from typing import Any

from mneme.environments.household.beliefs import Beliefs, Known
from mneme.environments.household.scene import NAMES
from mneme.nodes.context import ledger_of, team_of
from mneme.nodes.household.context import HouseholdRuntime
from mneme.nodes.household.household import (
    Update,
    as_json,
    beliefs_of,
    episode_of,
    plans_of,
    with_beliefs,
)
from mneme.nodes.household.mita_state import State, change_of, together
from mneme.nodes.household.mita_views import progress_in_words, seen_since, task_of, things_of
from mneme.nodes.household.views import knowledge_of, worker_of
from mneme.prompts.household.mita import Passage, Synopsis
from mneme.stores.episodes.episodic_memory import EpisodeRecord, EpisodicMemory, finds_of, furniture_of


def passage_of(state: State, beliefs: Sequence[Beliefs], team: Beliefs) -> Passage:
    """Retrieve the joint actions and beliefs since the last synopsis, and record what changed."""
    workers = [
        worker_of(number, known, plan)
        for number, (known, plan) in enumerate(zip(beliefs, plans_of(state), strict=True))
    ]
    knowledge = knowledge_of(episode_of(state), team, workers)
    oldest = state["last_step"] + 1
    return Passage(
        task=task_of(knowledge),
        actions="\n".join(state["actions"]),
        beliefs="\n".join(f"{NAMES[n]}: {seen_since(known, oldest)}" for n, known in enumerate(beliefs)),
        change=change_of(state["last"], state["assessed"]),
        progress=progress_in_words(state["assessed"]),
        items=knowledge.items,
        places={each.id: each.room if each.holder is None else each.holder for each in team.objects()},
        containers=knowledge.containers,
        rooms=[room for room in knowledge.rooms if room.seen is not None],
        workers=workers,
    )


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
    """Start from what the team learned in this apartment: where furniture stands, where things turned up."""
    episodes = await memory_of(update["episode"], runtime).recall()
    earlier = Beliefs(agent=-1, things=things_of(furniture_of(episodes)))
    beliefs = beliefs_of(update["members"])
    for known in beliefs:
        known.merge(earlier)
    members = with_beliefs(update["members"], beliefs)
    runtime.stream_writer({"step": "remember", "episodes": [each.text for each in episodes]})
    return {"members": members, "found_before": finds_of(episodes)}


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
        synopses=[earlier["synopsis"]["narrative"] for earlier in state["synopses"]],
        finds=finds,
        furniture=[_as_at_first(each) for each in team.things.values() if each.category != "object"],
    )


def _as_at_first(known: Known) -> dict[str, Any]:
    closed = None if known.is_open is None else False
    return as_json(known.model_copy(update={"is_open": closed, "step": 0}))
