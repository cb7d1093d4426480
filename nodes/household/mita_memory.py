"""MiTa's memory: the record that a synopsis is made of, the synopses, and episodes in the ledger.

Algorithm 1 only adds synopses to C, so that C would grow without end and synopses would repeat each other.
The latest `RECENT_SYNOPSES` stay as they were written, except for sentences that the world has contradicted
since. Earlier ones are merged into one: their sentences that still hold, without past events.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from mneme.environments.household.beliefs import Beliefs, Sighting, satisfies, unexplored
from mneme.environments.household.scene import AGENT_NAMES
from mneme.nodes.context import ledger_of, team_of
from mneme.nodes.household.context import HouseholdRuntime
from mneme.nodes.household.household import is_under_way
from mneme.nodes.household.household_state import (
    Update,
    as_json,
    beliefs_of,
    episode_of,
    with_beliefs,
)
from mneme.nodes.household.mita_state import (
    DatedSynopsis,
    State,
    change_of,
    in_words,
    merged,
    together,
    wanted_in,
)
from mneme.nodes.household.views import in_lines, knowledge_of, progress_in_words, task_of, workers_of
from mneme.prompts.household.synopsis import NAMED_THING, NARRATIVE, Passage, Synopsis, sentences
from mneme.stores.episodes.episodic_memory import EpisodeRecord, EpisodicMemory, experience_of, furniture_of

RECENT_SYNOPSES = 3
"""Number of latest synopses that stay as they were written."""
STEP_NUMBER = re.compile(r"\bstep \d")
"""Pattern of a sentence about a past event."""
PAST = re.compile(rf"{STEP_NUMBER.pattern}|[+-]\d")
"""Pattern of a sentence about a past event or a change."""
UNFOUND = r"\b(?:not|never|nobody|nowhere)(?: \w+){0,2} (?:found|seen|known)\b|\b(?:missing|to find)\b"
"""Pattern of a clause which says that something was not found."""
UNPLACED = (
    r"(?:<[^<>]+> ?\(\d+\) )?\b(?:(?:is|are) (?:still )?(?:left|waited for)|remains?)\b"
    r"(?! (?:on|in|inside|at)\b)"
)
"""Pattern of a clause which says that something is left, or is waited for."""
MAX_NEW_ENTRIES = 2
"""Maximum entries that one round adds to a member's history: an interrupted plan, and its replacement."""


def passage_of(state: State, beliefs: Sequence[Beliefs], team: Beliefs) -> Passage:
    """Retrieve the joint actions and beliefs since the last synopsis, and record what changed."""
    workers, everything = workers_of(state, beliefs), together(beliefs)
    knowledge = knowledge_of(episode_of(state), team, workers)
    opened, last = {each for known in beliefs for each in known.checked}, state["last_step"]
    return Passage(
        task=task_of(knowledge),
        actions=in_lines(
            *state["actions"],
            *(
                f"{AGENT_NAMES[number]}: {entry}"
                for number, member in enumerate(state["members"])
                for entry in member["history"]
                if is_under_way(entry)
            ),
        ),
        beliefs=_beliefs(beliefs, state["last_step"] + 1),
        change=change_of(state["last"], state["assessed"]),
        progress=progress_in_words(state),
        items=knowledge.items,
        places={each.id: _place_of(each, team) for each in team.objects()},
        containers=knowledge.containers,
        rooms=[room for room in knowledge.rooms if room.seen is not None],
        workers=workers,
        names=everything.rooms | {each.id: each.name for each in everything.things.values()},
        unopened=[each.id for each in everything.containers() if each.id not in opened],
        searched={
            room: [AGENT_NAMES[n] for n, known in enumerate(beliefs) if known.room_seen.get(room, -1) > last]
            for room in team.room_seen
        },
    )


def _place_of(known: Sighting, team: Beliefs) -> int:
    """Return the id of a thing's holder, if the team knows it; else of its room."""
    is_told = known.relation != "held by" and known.holder in team.things
    return known.holder if known.holder is not None and is_told else known.room


def deeds(state: State, update: Update) -> list[str]:
    """Return the members' actions since that state with their outcomes, without unfinished ones."""
    return [
        f"{AGENT_NAMES[number]}: {entry}"
        for number, (before, now) in enumerate(zip(state["members"], update["members"], strict=True))
        for entry in now["history"][-MAX_NEW_ENTRIES:]
        if entry not in before["history"] and not is_under_way(entry)
    ]


def _beliefs(beliefs: Sequence[Beliefs], oldest: int) -> str:
    """Describe what each member saw since a step, and which rooms nobody has explored."""
    own = [
        in_lines(
            f"{AGENT_NAMES[n]}: {known.position_in_words()}", *known.sights(oldest), known.explored(oldest)
        )
        for n, known in enumerate(beliefs)
    ]
    seen = [room for known in beliefs for room in known.room_seen]
    return in_lines(*own, unexplored(beliefs[0].rooms, seen, "Explored by nobody yet"))


def named_in(synopsis: Synopsis, team: Beliefs) -> Beliefs:
    """Return the team's knowledge of only those things and places that a synopsis names."""
    ids = {*synopsis.placed, *synopsis.checked, *synopsis.unchecked}
    ids |= {each.id for each in team.objects() if each.relation == "held by"}
    ids |= {each for found in synopsis.found for each in (found.thing, found.place)}
    return Beliefs(
        agent=-1,
        rooms=team.rooms,
        things={each: team.things[each] for each in sorted(ids) if each in team.things},
        checked={each: team.checked[each] for each in synopsis.checked},
        room_seen={each: team.room_seen[each] for each in synopsis.explored},
        lost=team.lost,
    )


async def remembered(update: Update, runtime: HouseholdRuntime) -> Update:
    """Start with the known furniture of this apartment, and with experience from all apartments."""
    memory = memory_of(update["episode"], runtime)
    episodes = await memory.recall()
    earlier = Beliefs(agent=-1, things={each["id"]: each for each in furniture_of(episodes)})
    beliefs = beliefs_of(update["members"])
    for known in beliefs:
        known.merge(earlier)
    members = with_beliefs(update["members"], beliefs)
    runtime.stream_writer({"step": "remember", "episodes": [each.text for each in episodes]})
    return {"members": members, "experience": experience_of(await memory.recall_everywhere())}


def memory_of(episode: dict[str, Any], runtime: HouseholdRuntime) -> EpisodicMemory:
    return EpisodicMemory(ledger_of(runtime), team_of(runtime), episode["apartment"])


def taught_by(state: State) -> EpisodeRecord:
    """Return the record of the episode."""
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
        looked=Counter([*opened, *(team.rooms[each] for each in team.room_seen)]),
        furniture=[  # containers as closed, since the next episode starts anew
            as_json(each.model_copy(update={"is_open": None if each.is_open is None else False, "step": 0}))
            for each in team.things.values()
            if each.category != "object"
        ],
    )


def outdated_in(state: State) -> re.Pattern[str]:
    """Return a pattern of clauses that contradict the joint belief about what is found, placed or waiting."""
    episode, members = episode_of(state), state["members"]
    things, wanted = together(beliefs_of(members)).objects(), wanted_in(episode)
    # A class counts only once all of it is found or placed; single things are known by their numbers.
    in_place = [each for each in things if any(satisfies(each, goal) for goal in episode.goals)]
    counts = [Counter(each.name for each in some) for some in (things, in_place)]
    all_found, all_placed = ([name for name in wanted if wanted[name] <= count[name]] for count in counts)
    gap = r"(?:(?!\b(?:only|but|while)\b).)*"  # between a thing and the statement about it
    found, placed, busy = (
        # `(?!)` matches nothing, where there is no name; `e?s` is the plural
        rf"(?<!\w)(?:{'|'.join(map(re.escape, each)) or '(?!)'})(?:e?s)?(?!\w)"
        for each in (
            all_found,
            [*all_placed, *(f"<{each.name}> ({each.id})" for each in in_place)],
            [
                AGENT_NAMES[n]
                for n, each in enumerate(members)
                if ": wait:" not in "".join(each["history"][-1:])
            ],
        )
    )
    return re.compile(
        f"{found}{gap}(?:{UNFOUND})|(?:{UNFOUND}){gap}{found}|{placed}{gap}{UNPLACED}"
        rf"|wait(?:s|ing)? for{gap}{placed}|{busy} (?:is )?(?:still )?wait(?:s|ing)\b",
        re.IGNORECASE,
    )


def kept_short(
    synopses: Sequence[DatedSynopsis], team: Beliefs, over: re.Pattern[str]
) -> list[DatedSynopsis]:
    """Remove from synopses what `team` contradicts or `over` matches; merge the oldest two if too many."""
    *earlier, latest = synopses  # the latest describes what `team` has just seen, so it stays as it is
    kept = [*(_still(each, team, over) for each in earlier), latest]
    if len(kept) <= RECENT_SYNOPSES + 1:
        return kept
    return [_put_together(kept[0], kept[1]), *kept[2:]]


def _still(dated: DatedSynopsis, team: Beliefs, over: re.Pattern[str]) -> DatedSynopsis:
    """Remove moved or missing things, containers opened since, and sentences about them or matching `over`.

    A clause with a step number is about the past and stays. A sentence stays or goes as a whole.
    """
    known = Beliefs.model_validate(dated["known"])
    now = together([known, team])
    for each in list(known.things.values()):  # a copy, since things are removed
        seen = now.things.get(each.id)
        opened = each.is_open is False and each.id in team.checked and each.id not in known.checked
        if opened or seen is None or (seen.relation, seen.holder) != (each.relation, each.holder):
            del known.things[each.id]
    gone = dated["known"]["things"].keys() - {str(each) for each in known.things}
    kept = [
        each
        for each in sentences(dated["synopsis"]["narrative"])
        if all(_holds(clause, gone, over) for clause in each.split(";"))
    ]
    return {**dated, "known": as_json(known), "synopsis": dated["synopsis"] | {"narrative": " ".join(kept)}}


def _holds(clause: str, gone: set[str], over: re.Pattern[str]) -> bool:
    """Return whether a clause is dated, or still holds; a thing that is left may have moved."""
    moved = gone.intersection(number for _, number in NAMED_THING.findall(re.sub(UNPLACED, "", clause)))
    return STEP_NUMBER.search(clause) is not None or not (moved or over.search(clause))


def _put_together(first: DatedSynopsis, last: DatedSynopsis) -> DatedSynopsis:
    """Merge two successive synopses into one: current facts without past events, the latest first."""
    told = [each for dated in (first, last) for each in sentences(dated["synopsis"]["narrative"])]
    kept: list[str] = []
    # The latest sentences have priority if room is short; the text keeps their order.
    for each in reversed([*dict.fromkeys(each for each in told if each and not PAST.search(each))]):
        if len(" ".join([each, *kept])) <= NARRATIVE:
            kept.insert(0, each)
    return DatedSynopsis(
        step=last["step"],
        change=last["change"],
        synopsis=as_json(Synopsis(narrative=" ".join(kept))),
        known=as_json(merged([first, last])),
        merged=first.get("merged", 1) + 1,
    )
