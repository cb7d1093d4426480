"""MiTa's graph in the household under rules, its memory across episodes, and what the manager is told."""

import os
import re
from collections.abc import Sequence
from glob import glob
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import Runtime

from mneme.core.errors import BadInput
from mneme.environments.household.beliefs import Beliefs
from mneme.environments.household.episode import GOAL_CATEGORIES, Episode
from mneme.environments.household.generator import generate
from mneme.graphs.mita import builder
from mneme.models.asking.counting import tokens
from mneme.nodes.household.mita_memory import RECENT_SYNOPSES
from mneme.nodes.household.mita_state import together
from mneme.nodes.household.views import known_to_the_manager
from mneme.prompts.household.household import Container, Knowledge, Option, Room
from mneme.prompts.household.mita import Allocation, CrossContext, Report, allocate_actions, propose_action
from mneme.prompts.household.synopsis import NARRATIVE
from mneme.rules.household.teamwork import share_out
from mneme.rules.household.whereabouts import Usual, Whereabouts
from mneme.rules.registry import answer as by_rule
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from mneme.stores.episodes.episodic_memory import EpisodeRecord, EpisodicMemory, experience_of
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change
from tests.doubles import apartment
from tests.doubles.household import context, flat, given, worker


async def play(episode: Episode, **more: Any) -> Any:
    return await builder.compile().ainvoke(given(episode), context=context(**more))


async def events(episode: Episode, **more: Any) -> list[dict[str, Any]]:
    stream = builder.compile().astream(given(episode), context=context(**more), stream_mode="custom")
    return [event async for event in stream]


@pytest.mark.parametrize(("category", "agents"), list(zip(GOAL_CATEGORIES, (1, 2, 3, 4, 3), strict=True)))
async def test_a_team_finishes_every_kind_of_task(category: str, agents: int) -> None:
    result = await play(generate(31, category, agents))
    assert result["success"] and result["steps"] < 250
    assert result["counters"]["conflicts"] == 0
    assert result["counters"]["rounds"] > 0 and result["counters"]["calls"] > 0
    assert result["answered_by"] == ["manager: rules", "member: rules"]


async def test_the_same_seed_plays_the_same_episode() -> None:
    episode = generate(7, "Prepare Tea", 3)
    first, second = await events(episode), await events(episode)
    assert first == second


async def test_an_episode_is_made_from_a_category_and_a_seed() -> None:
    graph = builder.compile()
    made = await graph.ainvoke({"category": "Set up Table", "agents": 3, "seed": 4}, context=context())
    assert made["steps"] == (await play(generate(4, "Set up Table", 3)))["steps"]


async def test_a_broken_episode_is_refused_by_the_name_of_its_field() -> None:
    episode = generate(3, "Wash Dishes", 2).model_dump(mode="json")
    episode["starts"][0]["room"] = 9999
    with pytest.raises(BadInput, match="starts"):
        await builder.compile().ainvoke({"episode": episode}, context=context())


@pytest.mark.long
async def test_allocation_avoids_conflicts_and_synopses_avoid_looking_twice() -> None:
    episodes = [generate(11, category, 3) for category in GOAL_CATEGORIES]
    whole = [await play(episode, window=2) for episode in episodes]
    alone = [await play(episode, allocation=False) for episode in episodes]
    forgetful = [await play(episode, window=2, summary=False) for episode in episodes]

    def count(results: Sequence[Any], what: str) -> int:
        return sum(result["counters"][what] for result in results)

    assert count(whole, "conflicts") == 0 < count(alone, "conflicts")
    assert count(whole, "redundant") == 0 < count(forgetful, "redundant")


async def test_there_is_a_synopsis_whenever_progress_changed_and_only_then() -> None:
    told = await events(generate(5, "Prepare a Meal", 3))
    kinds = [event["step"] for event in told]
    assert "summarise" in kinds and kinds[-1] == "finish"
    result = await play(generate(5, "Prepare a Meal", 3))
    synopses = result["synopses"]
    assert sum(each.get("merged", 1) for each in synopses) == kinds.count("summarise") > len(synopses)
    assert len(synopses) == RECENT_SYNOPSES + 1, "all but the latest are put together"
    assert all(each["change"] != "nothing" for each in synopses)
    steps = [seen["time"] for seen, event in pairwise(told) if event["step"] == "summarise"]
    assert min(steps) > 0 and max(steps) < result["steps"], "none at the start, none of the end"
    assert [each["step"] for each in synopses] == sorted({each["step"] for each in synopses})
    assert not (await play(generate(5, "Prepare a Meal", 3), summary=False))["synopses"]


async def test_the_manager_knows_what_is_in_the_window_a_synopsis_or_a_proposal_and_nothing_else() -> None:
    episode = generate(9, "Prepare Tea", 3)
    forgotten = {True: 0, False: 0}
    for summary in (True, False):
        graph = builder.compile(checkpointer=InMemorySaver(), interrupt_before=["allocate"])
        config: Any = {"configurable": {"thread_id": "t"}}
        chosen = context(window=2, summary=summary)
        await graph.ainvoke(given(episode), config, context=chosen)
        while (await graph.aget_state(config)).next:
            state: Any = (await graph.aget_state(config)).values
            known = known_to_the_manager(state, Runtime(context=chosen))
            everything = together([Beliefs.model_validate(each["beliefs"]) for each in state["members"]])
            named = {int(each) for told in state["synopses"] for each in told["known"]["things"]}
            proposed = {  # where a target is that its member does not know, its proposal cannot tell
                each["option"]["target"]
                for each in state["proposals"]
                if str(each["option"]["target"]) in state["members"][each["member"]]["beliefs"]["things"]
            }
            for thing, seen in everything.things.items():
                if known.lost.get(thing) == seen.step:
                    continue  # one member saw it in the step in which another missed it
                in_window = seen.step >= state["steps"] - 2 or (thing in proposed and thing not in known.lost)
                told = thing in named and thing not in known.lost
                assert (thing in known.things) == (in_window or told)
                forgotten[summary] += thing not in known.things
            await graph.ainvoke(None, config, context=chosen)
    assert forgotten[True] < forgotten[False]


async def test_an_interrupted_episode_ends_as_one_that_was_not(tmp_path: Path) -> None:
    episode = generate(21, "Put Groceries", 3)
    whole = await play(episode)
    config: Any = {"configurable": {"thread_id": "t"}}
    first: Any = given(episode)
    async with open_checkpointer(str(tmp_path / "c.db")) as saver:
        for stop in ("negotiate", "allocate", "execute", "perceive"):
            graph = builder.compile(checkpointer=saver, interrupt_after=[stop])
            await graph.ainvoke(first, config, context=context())
            first = None
        result = await builder.compile(checkpointer=saver).ainvoke(None, config, context=context())
    assert result == whole


async def test_checkpoints_of_a_whole_episode_stay_small(tmp_path: Path) -> None:
    config: Any = {"configurable": {"thread_id": "t"}}
    path = tmp_path / "c.db"
    async with open_checkpointer(str(path)) as saver:
        graph = builder.compile(checkpointer=saver)
        result = await graph.ainvoke(
            given(generate(5, "Prepare Tea", 3)), config, context=context(manager_lapses=1.0)
        )
    size = sum(os.stat(each).st_size for each in glob(f"{path}*"))  # noqa: PTH116, PTH207
    assert size / result["counters"]["rounds"] < 600_000


async def test_without_synopses_no_record_is_kept_for_them() -> None:
    graph = builder.compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}
    await graph.ainvoke(given(generate(5, "Prepare Tea", 2)), config, context=context(summary=False))
    state: Any = (await graph.aget_state(config)).values
    assert state["round"] > 3 and state["actions"] == []


@pytest.mark.long
async def test_members_proposals_count_with_the_manager_but_cause_no_conflicts() -> None:
    episodes = [generate(13, category, 3) for category in GOAL_CATEGORIES[:3]]
    sound = [(await play(each))["steps"] for each in episodes]
    lapsing = [await play(each, member_lapses=1.0) for each in episodes]
    assert [each["steps"] for each in lapsing] != sound
    assert all(each["success"] and each["counters"]["conflicts"] == 0 for each in lapsing)


@pytest.mark.long
async def test_lapses_make_a_role_worse_and_are_repeatable() -> None:
    episodes = [generate(11, category, 3) for category in GOAL_CATEGORIES[:3]]
    steps = {}
    for share in (0.0, 0.5):
        steps[share] = [(await play(each, manager_lapses=share))["steps"] for each in episodes]
    assert mean(steps[0.5]) > mean(steps[0.0])
    again = [(await play(each, manager_lapses=0.5))["steps"] for each in episodes[:1]]
    assert again == steps[0.5][:1]


async def test_the_next_episode_in_an_apartment_starts_from_what_was_learned(edge_ledger: Ledger) -> None:
    graph = builder.compile(store=LedgerStore(edge_ledger))
    episodes = [generate(seed, "Prepare Tea", 3, apartment=77) for seed in (1, 2)]
    for number, episode in enumerate(episodes):
        stream = graph.astream(given(episode), context=context(remember=True), stream_mode="custom")
        told = [event async for event in stream]
        (remembered,) = [event for event in told if event["step"] == "remember"]
        assert len(remembered["episodes"]) == number
        (first, *_) = [event for event in told if event["step"] == "perceive"]
        rooms = {line for words in first["beliefs"] for line in words.splitlines()}
        if number:
            assert any("fridge" in line for line in rooms)
    memory = EpisodicMemory(edge_ledger, "local", episodes[0].apartment)
    kept = await memory.recall()
    assert [each.episode for each in kept] == [episode.id for episode in episodes]
    assert kept[0].finds and kept[0].furniture and kept[0].synopses
    assert not await EpisodicMemory(edge_ledger, "others", episodes[0].apartment).recall()


async def test_remembering_needs_a_ledger() -> None:
    with pytest.raises(BadInput, match="ledger"):
        await play(generate(1, "Prepare Tea", 2), remember=True)


async def test_what_earlier_episodes_taught_counts_in_every_apartment(edge_ledger: Ledger) -> None:
    memory = EpisodicMemory(edge_ledger, "local", "elsewhere")
    taught: dict[str, Any] = {"category": "Prepare Tea", "success": True, "steps": 30}
    seen = {"wanted": {"wine": 2, "plate": 1}, "looked": {"stove": 3, "fridge": 3}}
    change = Change(reason="a test", actor="test")
    for number, finds in enumerate(({"wine": ["stove", "stove"]}, {"wine": ["stove"]})):
        record = EpisodeRecord(run=f"r{number}", episode=f"e{number}", finds=finds, **taught, **seen)
        await memory.keep(record, change=change)
    await memory.keep(
        EpisodeRecord(run="old", episode="old", finds={"wine": ["fridge"]}, **taught), change=change
    )
    counted = experience_of(await EpisodicMemory(edge_ledger, "local", "here").recall_everywhere())
    assert counted == {
        "wine": {"stove": (3, 12), "fridge": (0, 12)},
        "plate": {"stove": (0, 6), "fridge": (0, 6)},
    }
    naive, wise = Usual({}), Usual(counted)
    assert wise.weight("wine", "stove", 1.0) > naive.weight("wine", "stove", 1.0) == pytest.approx(1.0)
    assert wise.weight("wine", "fridge", 3.0) < 3.0
    assert wise.weight("wine", "stove", 1.0) > wise.weight("juice", "stove", 1.0) > 1.0, (
        "of its sort, but less"
    )


def insisting(times: int, x: float = 6.0) -> CrossContext:
    """Let a member propose the farther of two closed cupboards, which is at `x`."""
    spots = ((41, 2.0), (42, x))
    near, far = (Container(id=n, name="kitchencabinet", room=1, x=at, z=1.0) for n, at in spots)
    options = [
        Option(kind="gocheck", target=each.id, name=each.name, room="kitchen", steps=steps)
        for each, steps in ((near, 1), (far, 4))
    ]
    return CrossContext(
        **flat(containers=[near, far], workers=[worker(0, 1, 1.0, 1.0)]),
        task="", progress="",
        members=[Report(worker=worker(0, 1, 1.0, 1.0), proposal=1, times=times, options=options)],
    )  # fmt: skip


def test_a_proposal_made_three_times_is_heeded_or_answered() -> None:
    assert [by_rule(allocate_actions, insisting(n, 3.0)).choices["M0"] for n in (1, 2, 3)] == [0, 0, 1]
    refused = [by_rule(allocate_actions, insisting(n, 16.0)) for n in (2, 3)]
    assert [each.choices["M0"] for each in refused] == [0, 0]
    assert ["M0 proposed 3 times" in each.reason for each in refused] == [False, True]


def test_a_model_that_refuses_a_proposal_a_third_time_says_why() -> None:
    answer = Allocation(reason="It is near.", choices={"M0": 0})
    (doubt,) = allocate_actions.doubts
    doubt(insisting(2), answer)
    with pytest.raises(ValueError, match=r"M0 proposed gocheck <kitchencabinet> \(42\).* 3 times by now"):
        doubt(insisting(3), answer)
    doubt(insisting(3), answer.model_copy(update={"reason": "M0 is needed at the near one first."}))
    assert "proposes [1] (3 times by now)" in allocate_actions.user_text(insisting(3))


async def test_refusals_of_the_same_proposal_in_a_row_are_counted() -> None:
    told: list[tuple[str, int]] = []

    class Reports(BaseCallbackHandler):
        def on_chain_start(self, serialized: Any, inputs: Any, *, name: str = "", **_: Any) -> None:
            if name == allocate_actions.name:
                told.append(
                    (str(inputs.members[0].options[inputs.members[0].proposal]), inputs.members[0].times)
                )

    config: Any = {"callbacks": [Reports()], "recursion_limit": 2000}
    await builder.compile().ainvoke(
        given(generate(26, "Put Groceries", 3)), config, context=context(manager_lapses=0.9, seed=3)
    )
    kinds = [(action.split(",")[0], times) for action, times in told]
    assert max(times for _, times in kinds) >= 2
    for (before, earlier), (now, times) in pairwise(kinds):
        assert times in ((1, earlier + 1) if before == now else (1,))


async def test_no_room_is_offered_to_who_knows_where_all_is() -> None:
    offered: list[bool] = []

    class Situations(BaseCallbackHandler):
        def on_chain_start(self, serialized: Any, inputs: Any, *, name: str = "", **_: Any) -> None:
            if name != propose_action.name:
                return
            found = re.findall(r"(\d+) of (\d+)", inputs.progress.partition("Found so far")[2])
            loose = [each.name for each in inputs.items if each.held_by is None and not each.placed]
            is_known = all(each.room > 0 for each in inputs.needs if each.placed < each.wanted)
            if (
                is_known
                and all(n == of for n, of in found)
                and all(n <= loose.count(k) for k, n in inputs.missing().items())
            ):
                offered.append(any(o.kind == "goexplore" and not o.under_way for o in inputs.options))

    config: Any = {"callbacks": [Situations()], "recursion_limit": 2000}
    for seed in (5, 9, 12):
        await builder.compile().ainvoke(given(generate(seed, None, 3)), config, context=context())
    assert offered and not any(offered)


async def test_who_holds_something_does_not_wait_for_its_target_to_be_found() -> None:
    home, table = apartment, ("on", apartment.TABLE)
    on_desk = {"relation": "on", "target": home.DESK, "count": 1, "target_name": "desk"}
    lying = {home.APPLE: table, home.WINE: table, home.PEAR: ("inside", home.FRIDGE)}
    episode = home.standing(
        *((home.KITCHEN, 3.0, 3.0), (home.KITCHEN, 4.0, 3.0)),
        goals=[on_desk | {"name": "apple"}, on_desk | {"name": "wine"}],
        places=home.values()["places"] | lying,
    )
    acted = [event["frames"] for event in await events(episode) if event["step"] == "execute"]
    frames = [frame for part in acted for frame in part]
    assert not [
        (frame["step"], who)
        for frame in frames
        for who, action in enumerate(frame["actions"])
        if action["kind"] == "wait" and frame["hands"][who]
    ]


async def test_the_memory_in_a_prompt_stops_growing() -> None:
    sizes: list[int] = []

    class Prompts(BaseCallbackHandler):
        def on_chain_start(self, serialized: Any, inputs: Any, *, name: str = "", **_: Any) -> None:
            if name == allocate_actions.name:
                sizes.append(tokens(inputs.synopses))

    config: Any = {"callbacks": [Prompts()], "recursion_limit": 2000}
    await builder.compile().ainvoke(given(generate(5, "Prepare a Meal", 3)), config, context=context())
    assert max(sizes) < 800 < tokens("x" * (RECENT_SYNOPSES + 1) * NARRATIVE)


def test_a_wish_that_nobody_told_forbids_nothing() -> None:
    made_up = Allocation(reason="So.", forbidden="Nobody may enter.", choices={"M0": 0})
    with pytest.raises(ValueError, match="No wish was told"):
        allocate_actions.verify(insisting(1), made_up)
    allocate_actions.verify(
        insisting(1).model_copy(update={"shared": ["Nobody may enter. [local said]"]}), made_up
    )


def test_sense_decides_between_places_at_hand_and_keeps_nobody_from_one() -> None:
    named = enumerate(("fridge", "cabinet", "bathroomcabinet"))
    places = [Container(id=40 + n, name=name, room=1, x=n, z=4) for n, name in named]
    fridge, cabinet, bathroom = Whereabouts(Knowledge(**flat(containers=places))).gains().values()
    assert fridge > cabinet > fridge / 2
    assert bathroom < cabinet / 5


def test_an_unseen_room_comes_before_a_row_of_cabinets() -> None:
    rooms = [*flat()["rooms"][:1], Room(id=2, name="livingroom", room=2, x=8, z=2)]
    row = [Container(id=30 + n, name="kitchencabinet", room=1, x=0.4 + n / 2, z=3.6) for n in range(8)]
    unseen = Option(kind="goexplore", target=2, name="livingroom", steps=3)
    options = [unseen, *(Option(kind="gocheck", target=each.id, name=each.name, steps=2) for each in row)]
    team = [Report(worker=worker(n, 1, 4.0, 2.0), options=options, proposal=-1) for n in range(2)]
    for some in (team[:1], team):
        knowledge = Knowledge(**flat(rooms=rooms, containers=row, workers=[each.worker for each in some]))
        assert share_out(knowledge, some).count(0) == 1
