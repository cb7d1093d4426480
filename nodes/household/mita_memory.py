"""What MiTa remembers: the record that a synopsis is made of, its synopses, and episodes in the ledger.

Algorithm 1 only adds synopses to C, so that it would grow without end, and each would repeat what others say.
The latest `RECENT` synopses stay as they were written. Those before them become one, which has no
narrative of its own: what they say in fields, as far as it still holds, is put into words.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
from mneme.nodes.household.mita_state import DatedSynopsis, State, change_of, in_words, together, wanted_in
from mneme.nodes.household.views import (
    in_lines,
    knowledge_of,
    progress_in_words,
    task_of,
    things_of,
    worker_of,
)
from mneme.prompts.household.synopsis import NARRATIVE, Found, Passage, Synopsis
from mneme.stores.episodes.episodic_memory import EpisodeRecord, EpisodicMemory, experience_of, furniture_of

RECENT = 3
"""Synopses that stay as they were written."""
Piece = Mapping[str, Any]
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
    opened = (team.things[each].name for each in team.checked if each in team.things)
    return EpisodeRecord(
        run=state["run"],
        episode=episode.id,
        category=episode.category,
        success=state["success"],
        steps=state["steps"],
        synopses=[in_words(earlier) for earlier in state["synopses"]],
        finds=finds,
        wanted=wanted_in(episode),
        looked=dict(Counter([*opened, *(team.rooms[each] for each in team.room_seen)])),
        furniture=[_as_at_first(each) for each in team.things.values() if each.category != "object"],
    )


def _as_at_first(known: Known) -> dict[str, Any]:
    closed = None if known.is_open is None else False
    return as_json(known.model_copy(update={"is_open": closed, "step": 0}))


def kept_short(
    synopses: Sequence[DatedSynopsis], team: Beliefs, rooms: Mapping[int, str]
) -> list[DatedSynopsis]:
    """Resolve what `team` saw otherwise since, and put all but the latest synopses together.

    The last of the synopses is of what `team` saw, so that it stays as it is; `rooms` are names by id.
    """
    *earlier, last = synopses
    kept = [*(_resolved(each, team) for each in earlier), last]
    while len(kept) > RECENT + 1:
        kept[:2] = [_joined(kept[0], kept[1], rooms)]
    return kept


def _resolved(dated: DatedSynopsis, team: Beliefs) -> DatedSynopsis:
    """Drop from the fields what is not as the synopsis says any more: things moved, containers opened."""
    gone = {piece["id"] for piece in dated["named"] if _is_superseded(piece, team)}
    told = Synopsis.model_validate(dated["synopsis"])
    holds = told.model_copy(
        update={
            "found": [each for each in told.found if each.thing not in gone],
            "placed": [each for each in told.placed if each not in gone],
            "unchecked": [each for each in told.unchecked if each not in team.checked],
        }
    )
    named = [piece for piece in dated["named"] if piece["id"] not in gone]
    return {**dated, "synopsis": as_json(holds), "named": named}


def _is_superseded(piece: Piece, team: Beliefs) -> bool:
    """Say whether a thing was seen elsewhere since, or missed where it was; furniture does not move."""
    if piece["category"] != "object":
        return False
    known = team.things.get(piece["id"])
    if known is None:
        return team.lost.get(piece["id"], -1) > int(piece["step"])
    moved = (known.relation, known.holder) != (piece["relation"], piece["holder"])
    return moved and known.step > int(piece["step"])


def _joined(first: DatedSynopsis, second: DatedSynopsis, rooms: Mapping[int, str]) -> DatedSynopsis:
    """Make one synopsis of two that follow one another; the later one is right where they differ."""
    old, new = (Synopsis.model_validate(each["synopsis"]) for each in (first, second))
    told_anew = {*new.placed, *(each.thing for each in new.found)}
    checked = sorted({*old.checked, *new.checked})
    named = {piece["id"]: piece for each in (first, second) for piece in each["named"]}
    both = Synopsis(
        narrative="",
        found=[*(each for each in old.found if each.thing not in told_anew), *new.found],
        placed=sorted({*(each for each in old.placed if each not in told_anew), *new.placed}),
        checked=checked,
        unchecked=sorted({*old.unchecked, *new.unchecked}.difference(checked)),
        explored=sorted({*old.explored, *new.explored}),
    )
    words = _narrative(both, named, rooms)
    seen = {**first.get("seen", {}), **second.get("seen", {})}
    return DatedSynopsis(
        step=second["step"],
        change=second["change"],
        synopsis=as_json(both.model_copy(update={"narrative": words})),
        named=[named[each] for each in sorted(named)],
        seen=seen,
        merged=first.get("merged", 1) + 1,
    )


def _narrative(told: Synopsis, named: Mapping[int, Piece], rooms: Mapping[int, str]) -> str:
    """Put the fields of a synopsis into words, as many sentences as a narrative holds."""
    sentences = [
        _listed("Placed", (_label(each, named, rooms) for each in told.placed)),
        _listed("Found and loose by then", (_whereabouts(each, named, rooms) for each in told.found)),
        _listed("Checked", (_label(each, named, rooms) for each in told.checked)),
        _listed("Unchecked by then", (_label(each, named, rooms) for each in told.unchecked)),
        _listed("Explored rooms", (_label(each, named, rooms) for each in told.explored)),
    ]
    text = ""
    for sentence in filter(None, sentences):
        if len(text) + len(sentence) < NARRATIVE:
            text = f"{text} {sentence}".strip()
    return text or "Nothing of it holds any more."


def _listed(what: str, names: Iterable[str]) -> str:
    listed = ", ".join(names)
    return f"{what}: {listed}." if listed else ""


def _label(number: int, named: Mapping[int, Piece], rooms: Mapping[int, str]) -> str:
    name = named[number]["name"] if number in named else rooms.get(number, "thing")
    return f"<{name}> ({number})"


def _whereabouts(found: Found, named: Mapping[int, Piece], rooms: Mapping[int, str]) -> str:
    """Say where a loose thing is: on or in furniture of a known name, else in which room."""
    piece = named.get(found.thing)
    thing = _label(found.thing, named, rooms)
    if piece is not None and piece["holder"] == found.place and found.place in named:
        return f"{thing} {piece['relation']} {_label(found.place, named, rooms)}"
    room = found.place if found.place in rooms or piece is None else piece["room"]
    return f"{thing} in {_label(room, named, rooms)}"
