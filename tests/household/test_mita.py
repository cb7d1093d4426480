"""MiTa: its questions and rules, its graph in the household, and what a model's nonsense does to it."""

import json
import os
import re
from collections.abc import Sequence
from glob import glob
from itertools import pairwise, permutations, product
from pathlib import Path
from statistics import mean
from typing import Any, cast

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import Runtime

from mneme.api.memories import Memories
from mneme.core.errors import BadInput
from mneme.environments.household.beliefs import Beliefs, Known
from mneme.environments.household.episode import CATEGORIES, Episode
from mneme.environments.household.generator import generate
from mneme.environments.household.macro import LONGEST_WAIT
from mneme.environments.household.scene import NAMES
from mneme.graphs.mita import builder
from mneme.models.asking.budget import tokens
from mneme.nodes.household.context import HouseholdContext
from mneme.nodes.household.mita_memory import RECENT, kept_short, outdated_in
from mneme.nodes.household.mita_state import DatedSynopsis, State, assess, in_words, together
from mneme.nodes.household.views import known_to_the_manager
from mneme.prompts.household.household import (
    Container,
    Door,
    Item,
    Knowledge,
    Need,
    Option,
    Room,
    View,
    Worker,
)
from mneme.prompts.household.mita import (
    Allocation,
    CrossContext,
    Proposal,
    Report,
    Situation,
    allocate_actions,
    propose_action,
)
from mneme.prompts.household.synopsis import NARRATIVE, Found, Passage, Synopsis, summarise_passage
from mneme.rules.household.errands import Errands
from mneme.rules.household.judgement import best, merits
from mneme.rules.household.rounds import Rounds
from mneme.rules.household.teamwork import Hand, share_out
from mneme.rules.household.whereabouts import Usual, Whereabouts
from mneme.rules.registry import answer as by_rule
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from mneme.stores.episodes.episodic_memory import EpisodeRecord, EpisodicMemory, experience_of
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change
from tests.doubles import apartment
from tests.doubles.ollama import Answer, Json, Model, Reply
from tests.doubles.served import served

RULES = {"member": "rules", "manager": "rules"}


def context(**more: Any) -> HouseholdContext:
    return HouseholdContext(**{**RULES, **more})


def given(episode: Episode) -> Any:
    return {"episode": episode.model_dump(mode="json")}


async def play(episode: Episode, **more: Any) -> Any:
    return await builder.compile().ainvoke(given(episode), context=context(**more))


async def events(episode: Episode, **more: Any) -> list[dict[str, Any]]:
    stream = builder.compile().astream(given(episode), context=context(**more), stream_mode="custom")
    return [event async for event in stream]


# ------------------------------------------------------------------ the graph, under rules


@pytest.mark.parametrize(("category", "agents"), list(zip(CATEGORIES, (1, 2, 3, 4, 3), strict=True)))
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
    episodes = [generate(11, category, 3) for category in CATEGORIES]
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
    assert len(synopses) == RECENT + 1, "all but the latest are put together"
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
    episodes = [generate(13, category, 3) for category in CATEGORIES[:3]]
    sound = [(await play(each))["steps"] for each in episodes]
    lapsing = [await play(each, member_lapses=1.0) for each in episodes]
    assert [each["steps"] for each in lapsing] != sound
    assert all(each["success"] and each["counters"]["conflicts"] == 0 for each in lapsing)


@pytest.mark.long
async def test_lapses_make_a_role_worse_and_are_repeatable() -> None:
    episodes = [generate(11, category, 3) for category in CATEGORIES[:3]]
    steps = {}
    for share in (0.0, 0.5):
        steps[share] = [(await play(each, manager_lapses=share))["steps"] for each in episodes]
    assert mean(steps[0.5]) > mean(steps[0.0])
    again = [(await play(each, manager_lapses=0.5))["steps"] for each in episodes[:1]]
    assert again == steps[0.5][:1]


# ------------------------------------------------------------------ memory across episodes


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


# ------------------------------------------------------------------ what the manager is told


@pytest.mark.parametrize(("narrative", "wrong"), [
    ("Bob opened <fridge> (17) and found <wine> (72); <stove> (18) remains unchecked.", None),
    ("Bob found <wine> (99).", "has the number 99"),
    ("Bob found <juice> (72).", "(72) is <wine>"),
    ("On its way to <fridge> (17) Bob passed <cabinet> (33).", None),
    ("Bob examined <stove> (18): it is empty.", "nobody looked into <stove> (18)"),
    ("Bob passed <cabinet> (33), which was empty.", "nobody looked into <cabinet> (33)"),
    ("Bob opened <fridge> (17): it is empty. Nobody knows whether <stove> (18) is empty.", None),
])  # fmt: skip
def test_a_narrative_that_contradicts_the_record_is_refused(narrative: str, wrong: str | None) -> None:
    told = "<fridge> (17) <stove> (18) <table> (9) <wine> (72) <apple> (73)"
    passage = Passage(
        task="", actions=told, beliefs="", change="", progress="",
        items=[item(72, 1, 1, 1), item(73, 1, 1, 1, "apple").model_copy(update={"placed": True})],
        places={72: 17, 73: 9},
        containers=[
            Container(id=17, name="fridge", room=1, x=0, z=0, is_open=True, checked=3),
            Container(id=18, name="stove", room=1, x=0, z=0),
        ],
        names={33: "cabinet"}, unopened=[18, 33],
    )  # fmt: skip
    synopsis = Synopsis(narrative=narrative)
    if wrong is None:
        assert summarise_passage.verify(passage, synopsis) == synopsis
    else:
        with pytest.raises(ValueError, match=re.escape(wrong)):
            summarise_passage.verify(passage, synopsis)


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
    assert max(sizes) < 800 < tokens("x" * (RECENT + 1) * NARRATIVE)


# ------------------------------------------------------------------ a model behind Ollama


def options_in(body: Json) -> str:
    return str(body["messages"][-1]["content"])


def sensible(body: Json) -> Answer:
    """Answer as a model might that chooses the first option, and for the manager the proposals."""
    system = str(body["messages"][0]["content"])
    if "You are the manager" in system:
        user = str(body["messages"][1]["content"])
        count = user.count("may do:")
        return {"reason": "The first.", "forbidden": "", "choices": {NAMES[n]: n for n in range(count)}}
    if "You keep the memory" in system:
        return {"narrative": "Something happened.", "found": [], "placed": [], "checked": [],
                "unchecked": [], "explored": []}  # fmt: skip
    return {"reason": "The first.", "choice": 0}


async def first_rounds(rounds: int, **more: Any) -> Any:
    """Play so many rounds, and return the state."""
    graph = builder.compile(checkpointer=InMemorySaver(), interrupt_after=["execute"])
    config: Any = {"configurable": {"thread_id": "t"}}
    first: Any = given(generate(2, "Prepare Tea", 2))
    for _ in range(rounds):
        await graph.ainvoke(first, config, context=context(**more))
        first = None
    return (await graph.aget_state(config)).values


async def test_member_and_manager_may_be_different_models(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch, Model("small"), Model("large"), brain=sensible) as double:
        state = await first_rounds(2, member="ollama:small", manager="ollama:large")
        asked = {(chat.body["model"], str(chat.body["messages"][0]["content"])[:16]) for chat in double.chats}
    assert {("small", "You are a member"), ("large", "You are the mana")} <= asked
    assert state["counters"]["calls"] == len(double.chats)
    assert state["counters"]["prompt_tokens"] > 0 and state["counters"]["reply_tokens"] > 0
    assert state["counters"].get("fallbacks", 0) == 0
    assert set(state["answered_by"]) == {"member: ollama:small", "manager: ollama:large"}


async def test_a_member_is_told_everything_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch, Model("small"), brain=sensible) as double:
        await first_rounds(2, member="ollama:small")
        user = str(double.chats[-1].body["messages"][1]["content"])
    for part in ("Task:", "Progress:", "What you see now:", "What you believe:", "[0]", "about", "steps"):
        assert part in user
    assert "Template" not in user and "room=" not in user, "words, not field dumps"


async def test_a_duplicate_allocation_is_repaired(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    def confused(body: Json) -> Answer:
        """Send everybody to one place until told that this cannot be."""
        answer = sensible(body)
        if "You are the manager" not in str(body["messages"][0]["content"]):
            return answer
        if len(body["messages"]) > 2:
            told.append(str(body["messages"][-1]["content"]))
            return answer
        lines = str(body["messages"][1]["content"]).splitlines()
        numbers = [
            line.split("]")[0].strip()[1:]
            for line in lines
            if line.strip().startswith("[") and "goexplore <kitchen>" in line
        ]
        picks = {NAMES[n]: int(number) for n, number in enumerate(numbers)}
        return {"reason": "All there.", "forbidden": "", "choices": picks}

    with served(monkeypatch, Model("large"), brain=confused):
        state = await first_rounds(1, manager="ollama:large")
    assert any("both go for" in words or "exactly one choice" in words for words in told)
    assert state["counters"]["repaired"] >= 1 and state["counters"].get("fallbacks", 0) == 0


async def test_a_wish_that_forbids_the_task_ends_it_early_and_is_said(
    monkeypatch: pytest.MonkeyPatch, edge_ledger: Ledger
) -> None:
    wish = "Nobody may put anything on the coffeetable."
    await Memories(edge_ledger, "local").add(wish)

    def heeding(body: Json) -> Answer:
        answer = sensible(body)
        if "You are the manager" not in str(body["messages"][0]["content"]):
            return answer
        user = str(body["messages"][-1]["content"])
        waits = re.findall(r"^    \[(\d+)\] wait$", user, re.M)
        choices = {name: int(number) for name, number in zip(NAMES, waits, strict=False)}
        return {"reason": "It is not wished.", "forbidden": wish * (wish in user), "choices": choices}

    graph = builder.compile(store=LedgerStore(edge_ledger))
    with served(monkeypatch, Model("large"), brain=heeding):
        stream = graph.astream(
            given(generate(0, "Prepare Tea", 2)),
            context=context(manager="ollama:large"),
            stream_mode="custom",
        )
        told = [event async for event in stream]
    (decision,) = [event for event in told if event["step"] == "allocate"]
    assert decision["forbidden"] == wish
    assert told[-1] == {"step": "finish", "success": False, "steps": LONGEST_WAIT}


def test_a_wish_that_nobody_told_forbids_nothing() -> None:
    made_up = Allocation(reason="So.", forbidden="Nobody may enter.", choices={"M0": 0})
    with pytest.raises(ValueError, match="No wish was told"):
        allocate_actions.verify(insisting(1), made_up)
    allocate_actions.verify(
        insisting(1).model_copy(update={"shared": ["Nobody may enter. [local said]"]}), made_up
    )


async def test_nonsense_falls_back_to_the_members_own_proposals(monkeypatch: pytest.MonkeyPatch) -> None:
    def babbling(body: Json) -> Answer:
        return Reply('{"reason": "so", "choices": {"Zoe": 99}}')

    with served(monkeypatch, Model("large"), brain=babbling):
        state = await first_rounds(1, manager="ollama:large", summary=False)
    proposed = [each["option"] for each in sorted(state["proposals"], key=lambda each: each["member"])]
    assert [(each["kind"], each["target"]) for each in state["decided"]] == [
        (each["kind"], each["target"]) for each in proposed
    ]
    assert state["counters"]["fallbacks"] == 2 and state["counters"]["repaired"] == 2
    assert state["counters"]["unallocated"] == 1


async def test_a_member_that_babbles_does_what_is_near(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch, Model("small"), brain=lambda _: Reply("I would love to help!")):
        state = await first_rounds(1, member="ollama:small", allocation=False)
    assert state["counters"]["fallbacks"] == 2
    assert all(each["kind"] != "wait" for each in state["decided"])
    assert state["steps"] >= 0 and state["world"]["steps"] > 0


async def test_a_synopsis_that_stays_unusable_is_made_up_for_by_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def forgetful(body: Json) -> Answer:
        if "You keep the memory" in str(body["messages"][0]["content"]):
            return {"narrative": "Wrong.", "found": [{"thing": 4711, "place": 4712}], "placed": [],
                    "checked": [], "unchecked": [], "explored": []}  # fmt: skip
        return sensible(body)

    with served(monkeypatch, Model("large"), brain=forgetful):
        state = await first_rounds(4, manager="ollama:large")
    assert not state["synopses"] and state["counters"]["fallbacks"] > 0
    assert len(state["actions"]) > 2, "the record waits for a synopsis that holds"


# ------------------------------------------------------------------ the questions and their rules


def flat(**more: Any) -> dict[str, Any]:
    """Describe two rooms side by side, a table in the first, and what more is given."""
    rooms = [
        Room(id=1, name="kitchen", room=1, x=2, z=2, seen=0),
        Room(id=2, name="bedroom", room=2, x=8, z=2, seen=0),
    ]
    need = Need(id=9, name="kitchentable", room=1, x=1, z=1, relation="on", thing="wine", wanted=1)
    told: dict[str, Any] = {"step": 3, "needs": [need], "rooms": rooms}
    return told | {"doors": [Door(rooms=(1, 2), x=5, z=2)], **more}


def worker(number: int, room: int, x: float, z: float, hands: Sequence[int] = ()) -> Worker:
    return Worker(number=number, name=f"M{number}", room=room, x=x, z=z, hands=list(hands))


def item(number: int, room: int, x: float, z: float, name: str = "wine") -> Item:
    return Item(id=number, name=name, room=room, x=x, z=z)


def test_rounds_are_the_shortest_there_are() -> None:
    things = [item(20 + n, 1 + n % 2, 1.5 + 2 * n, 3.0 - n, name) for n, name in enumerate("abcd")]
    needs = [
        Need(id=9, name="table", room=1, x=1, z=1, relation="on", thing=name, wanted=1) for name in "abcd"
    ]
    knowledge = Knowledge(**flat(needs=needs, items=things))
    team = [worker(0, 1, 3, 3), worker(1, 2, 9, 1)]
    errands = Errands(knowledge)
    rounds = Rounds(errands, team)
    assert len(rounds.items) == 4

    def alone(who: Worker, order: Sequence[Item]) -> int:
        """Fetch two at a time in this order, bringing them home in between or not."""
        options = []
        for cuts in product((False, True), repeat=max(0, len(order) - 1)):
            here, time, load, fits = who.corner, 0, 0, True
            for number, thing in enumerate(order):
                time += errands.steps(here, thing.id)
                here, load = thing.corner, load + 1
                fits &= load <= 2
                if number == len(order) - 1 or cuts[number]:
                    time += errands.steps(here, 9) + load - 1
                    here, load = errands.spots[9].corner, 0
            options += [time] if fits else []
        return min(options, default=0)

    def shortest(who: Worker, things: Sequence[Item]) -> int:
        return min(alone(who, order) for order in permutations(things)) if things else 0

    for share in range(rounds.all + 1):
        chosen = [thing for n, thing in enumerate(rounds.items) if share >> n & 1]
        for who in team:
            assert rounds.cost(who.corner, (), share) == shortest(who, chosen)
    shares = rounds.shares(team)
    end = max(rounds.cost(who.corner, (), share) for who, share in zip(team, shares, strict=True))
    assert end == min(
        max(rounds.cost(team[0].corner, (), share), rounds.cost(team[1].corner, (), rounds.all ^ share))
        for share in range(rounds.all + 1)
    )


def test_places_are_likely_by_sense_and_less_so_after_looking_in_vain() -> None:
    cabinets = [Container(id=30 + n, name="kitchencabinet", room=1, x=n, z=4) for n in range(4)]
    fridge = Container(id=40, name="fridge", room=1, x=4, z=4)
    before = Whereabouts(Knowledge(**flat(containers=[*cabinets, fridge]))).gains()
    assert before[40] > before[30] and sum(before.values()) == pytest.approx(1)
    opened = [each.model_copy(update={"is_open": True, "checked": 2}) for each in cabinets[:3]]
    after = Whereabouts(Knowledge(**flat(containers=[*opened, cabinets[3], fridge]))).gains()
    assert after[33] / after[40] < before[33] / before[40]


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
    team = [Hand(worker=worker(n, 1, 4.0, 2.0), options=options) for n in range(2)]
    for some in (team[:1], team):
        knowledge = Knowledge(**flat(rooms=rooms, containers=row, workers=[each.worker for each in some]))
        assert share_out(knowledge, some).count(0) == 1


def test_what_the_target_holds_would_have_been_counted() -> None:
    fridge = Container(id=9, name="fridge", room=1, x=4, z=4)
    need = Need(id=9, name="fridge", room=1, x=4, z=4, relation="inside", thing="wine", wanted=1)
    stove = Container(id=41, name="stove", room=1, x=3, z=4)
    gains = Whereabouts(Knowledge(**flat(needs=[need], containers=[fridge, stove]))).gains()
    assert gains == {41: pytest.approx(1.0)}


def test_who_has_looked_everywhere_in_vain_goes_round_all_rooms() -> None:
    """With all to choose from, the two that lie nearest to each other would be sought in turn for ever."""
    seen = dict.fromkeys((1, 2, 3, 4), 0)
    visited = []
    for step in range(10, 90, 5):
        rooms = [Room(id=n, name="bedroom", room=n, x=n, z=2, seen=at) for n, at in seen.items()]
        gains = Whereabouts(Knowledge(**flat(rooms=rooms, step=step))).gains()
        visited.append(min(gains))  # the nearest to the first
        seen[visited[-1]] = step
    assert set(visited[:8]) == set(visited[8:]) == {1, 2, 3, 4}


def options_for(*chosen: tuple[str, int]) -> list[Option]:
    made = [Option(kind=kind, target=target, name="x") for kind, target in chosen]
    return [*made, Option(kind="wait")]


def test_a_team_sends_the_nearer_one_and_nobody_twice() -> None:
    bedroom = Container(id=50, name="cabinet", room=2, x=8, z=4)
    kitchen = Container(id=51, name="microwave", room=1, x=2, z=4)
    knowledge = Knowledge(**flat(containers=[bedroom, kitchen]))
    both = options_for(("gocheck", 50), ("gocheck", 51))
    team = [Hand(worker=worker(0, 2, 8, 1), options=both), Hand(worker=worker(1, 1, 2, 1), options=both)]
    assert share_out(knowledge, team) == [0, 1]
    crowd = [Hand(worker=worker(n, 1, 2, n), options=both) for n in range(3)]
    chosen = [both[n] for n in share_out(knowledge, crowd)]
    claims = [option.claim for option in chosen if option.claim]
    assert len(claims) == len(set(claims)) == 2 and [each.kind for each in chosen].count("wait") == 1


@pytest.mark.parametrize("proposal", [0, 1])
def test_between_plans_as_good_as_each_other_the_proposal_decides(proposal: int) -> None:
    left = Container(id=50, name="cabinet", room=1, x=1, z=4)
    right = Container(id=51, name="cabinet", room=1, x=3, z=4)
    knowledge = Knowledge(**flat(containers=[left, right]))
    both = options_for(("gocheck", 50), ("gocheck", 51))
    alone = Hand(worker=worker(0, 1, 2, 4), options=both, proposal=proposal)
    assert share_out(knowledge, [alone]) == [proposal]


def test_a_proposal_does_not_outweigh_what_is_much_better() -> None:
    near = Container(id=50, name="fridge", room=1, x=1, z=2)
    far = Container(id=51, name="cabinet", room=2, x=10, z=4)
    knowledge = Knowledge(**flat(containers=[near, far]))
    both = options_for(("gocheck", 50), ("gocheck", 51))
    alone = Hand(worker=worker(0, 1, 2, 2), options=both, proposal=1)
    assert share_out(knowledge, [alone]) == [0]


def test_of_rounds_as_short_as_each_other_the_proposed_one_is_done() -> None:
    things = [item(61, 1, 1, 3.5), item(62, 1, 3.5, 1)]
    need = Need(id=9, name="kitchentable", room=1, x=1, z=1, relation="on", thing="wine", wanted=2)
    knowledge = Knowledge(**flat(needs=[need], items=things))
    both = options_for(("gograb", 61), ("gograb", 62))
    for proposal in (0, 1):
        alone = Hand(worker=worker(0, 1, 3.5, 3.5), options=both, proposal=proposal)
        assert share_out(knowledge, [alone]) == [proposal]


def test_who_has_full_hands_delivers_and_who_passes_the_target_does_too() -> None:
    things = [
        item(60, 1, 3, 3).model_copy(update={"held_by": 0}),
        item(61, 2, 8, 3),
        item(62, 1, 2, 3).model_copy(update={"held_by": 0}),
    ]
    need = Need(id=9, name="kitchentable", room=1, x=1, z=1, relation="on", thing="wine", wanted=3)
    base = flat(needs=[need], items=things)
    choices = options_for(("gograb", 61), ("goput", 9))
    full = View(**base, workers=[worker(0, 1, 3, 3, (60, 62))], options=choices)
    assert best(full) == 1
    assert merits(full)[2] < merits(full)[1]


def situation(**more: Any) -> Situation:
    words = {"name": "Alice", "task": "t", "progress": "p", "observation": "o", "belief": "b"}
    told = flat(workers=[worker(0, 1, 2, 2)], items=[item(61, 2, 8, 3)])
    return Situation(**told, **words, options=options_for(("gograb", 61)), **more)


def test_a_proposal_is_one_of_the_options() -> None:
    proposed = by_rule(propose_action, situation())
    assert proposed.choice == 0
    with pytest.raises(ValueError, match="choice is 5: choose 0 or 1"):
        propose_action.verify(situation(), Proposal(reason="", choice=5))


def test_a_wait_is_as_long_as_members_are_told() -> None:
    assert LONGEST_WAIT == 5
    assert "wait: do nothing, for five steps at most" in propose_action.system


def cross_context() -> CrossContext:
    choices = options_for(("gograb", 61), ("goexplore", 2))
    reports = [Report(worker=worker(n, 1, 2, 2), proposal=0, options=choices) for n in range(2)]
    return CrossContext(**flat(items=[item(61, 2, 8, 3)]), task="t", progress="p", members=reports)


@pytest.mark.parametrize(
    ("choices", "why"),
    [
        ({"M0": 0, "M1": 0}, r"both go for <x> \(61\)"),
        ({"M0": 0}, "one for each of M0, M1"),
        ({"M0": 0, "M2": 1}, "one for each of M0, M1"),
        ({"M0": 0, "M1": 1, "M2": 1}, "one for each of M0, M1"),
        ({"M0": 0, "M1": 9}, "choices.M1 is 9"),
        ({"M0": -1, "M1": 1}, "choices.M0 is -1"),
    ],
)
def test_an_allocation_is_complete_possible_and_without_duplicates(choices: dict[str, int], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        allocate_actions.verify(cross_context(), Allocation(reason="", choices=choices))
    allowed = by_rule(allocate_actions, cross_context())
    assert allocate_actions.verify(cross_context(), allowed) == allowed


def passage() -> Passage:
    wine = item(61, 1, 2, 3).model_copy(update={"holder": "inside <fridge> (40)"})
    fridge = Container(id=40, name="fridge", room=1, x=2, z=3, is_open=True, checked=2)
    stove = Container(id=41, name="stove", room=1, x=3, z=3)
    return Passage(
        task="t",
        actions="a",
        beliefs="b",
        change="found: +1 wine",
        progress="p",
        items=[wine],
        places={61: 40},
        containers=[fridge, stove],
        rooms=[Room(id=1, name="kitchen", room=1, x=2, z=2, seen=2)],
        workers=[worker(0, 1, 2, 2).model_copy(update={"doing": "gograb <wine> (61)"})],
        searched={1: ["M0"]},
    )


def test_a_synopsis_says_all_that_was_found_checked_and_is_under_way() -> None:
    made = summarise_passage.verify(passage(), by_rule(summarise_passage, passage()))
    assert made.found == [Found(thing=61, place=40)]
    assert (made.checked, made.unchecked, made.explored) == ([40], [41], [1])
    for words in ("+1 wine", "<wine> (61) is inside <fridge> (40).", "<kitchen> (1) was searched by M0."):
        assert words in made.narrative
    assert "unchecked" not in made.narrative.lower() and "stove" not in made.narrative


def seen(thing: int, name: str, step: int, **more: Any) -> Known:
    box = {"center": (0, 0, 0), "size": (1, 1, 1), "is_open": None, "room": 1, "holder": None}
    return Known.model_validate(
        {
            "id": thing,
            "name": name,
            "category": "object",
            "relation": "inside",
            "step": step,
            **box,
            **more,
        }
    )


def dated(step: int, narrative: str, *things: Known) -> DatedSynopsis:
    known = Beliefs(agent=-1, step=step, rooms={1: "kitchen"}, things={each.id: each for each in things})
    told = Synopsis(narrative=narrative).model_dump(mode="json")
    return DatedSynopsis(step=step, change="c", synopsis=told, known=known.model_dump(mode="json"))


NOTHING = re.compile(r"(?!)")


def test_sentences_that_the_world_contradicts_are_dropped_from_older_synopses() -> None:
    wine, plum = seen(61, "wine", 3, holder=40), seen(62, "plum", 3, holder=40)
    said = (
        "<wine> (61) is inside <fridge> (40). <plum> (62) is inside <fridge> (40). "
        "Bob found <wine> (61) at step 3."
    )
    taken = seen(61, "wine", 9, relation="held by", holder=0)
    now = Beliefs(agent=-1, step=9, rooms={1: "kitchen"}, things={61: taken})
    both = [dated(3, said, wine, plum), dated(9, "Alice holds <wine> (61).", taken)]
    older, latest = kept_short(both, now, NOTHING)
    assert (
        older["synopsis"]["narrative"]
        == "<plum> (62) is inside <fridge> (40). Bob found <wine> (61) at step 3."
    )
    assert latest["synopsis"]["narrative"] == "Alice holds <wine> (61)."
    many = [older, *(dated(9 + n, f"<kitchen> (1) was searched by M{n}.") for n in range(RECENT + 1))]
    assert in_words(kept_short(many, now, NOTHING)[0]) == (
        "Up to step 9, put together: <plum> (62) is inside <fridge> (40). <kitchen> (1) was searched by M0."
    )


PLATES = """{"id": "p", "source": "test", "apartment": "p", "category": "Wash Dishes",
"goals": [{"relation": "inside", "name": "plate", "target": 7, "count": 2, "target_name": "dishwasher"},
{"relation": "inside", "name": "waterglass", "target": 7, "count": 1, "target_name": "dishwasher"},
{"relation": "on", "name": "apple", "target": 4, "count": 1, "target_name": "coffeetable"}],
"starts": [{"room": 1, "position": [2, 2], "placed": "recorded"}],
"things": [[1, "kitchen", "room", [2, 1, 2], [4, 2, 4]], [4, "coffeetable", "surface", [1, 1, 1], [1, 1, 1]],
[5, "plate", "object", [1, 1, 1], [0, 0, 0]], [6, "waterglass", "object", [1, 1, 1], [0, 0, 0]],
[7, "dishwasher", "container", [3, 1, 3], [1, 1, 1]], [9, "apple", "object", [1, 1, 1], [0, 0, 0]],
[11, "plate", "object", [1, 1, 1], [0, 0, 0]]],
"places": {"4": ["inside", 1], "5": ["on", 4], "6": ["on", 4], "7": ["inside", 1], "9": ["on", 4],
"11": ["on", 4]}, "doors": [], "open": [], "seed": 0}"""


def outdated(*things: Known, did: Sequence[str] = ()) -> re.Pattern[str]:
    """Return what of a narrative is outdated where the team knows these things, and who did last what."""
    team, episode = Beliefs(agent=0, things={each.id: each for each in things}), json.loads(PLATES)
    members = [
        {
            "beliefs": team.model_dump(mode="json"),
            "plan": None,
            "history": [f"from step 1 to 2: {each}: done"],
        }
        for each in did
    ] or [{"beliefs": team.model_dump(mode="json"), "plan": None, "history": []}]
    state = {"episode": episode, "digest": PLATES, "members": members}
    return outdated_in(cast(State, state))


SECOND, IN, ON = seen(11, "plate", 4), {"holder": 7}, {"relation": "on", "holder": 4}
GLASS, APPLE = seen(6, "waterglass", 4, **ON), seen(9, "apple", 4, holder=8)
ONLY_THE_GLASS = "Alice waits; only <waterglass> (6) is left, which must not go into the dishwasher."


@pytest.mark.parametrize(("sentence", "things", "is_kept"), [
    ("The second plate and the apple are not found.", [seen(5, "plate", 4), GLASS], True),
    ("The second plate and the apple are not found.", [seen(5, "plate", 4), APPLE], False),
    ("Two plates have not yet been found.", [seen(5, "plate", 4), GLASS], True),
    ("Two plates have not yet been found.", [seen(5, "plate", 4), SECOND], False),
    ("Nobody has found the apple.", [APPLE], False),
    ("Bob took <pear> (3) and the apple is missing.", [APPLE], False),
    ("The plate is there; a second plate is not found.", [seen(5, "plate", 4), SECOND], False),
    ("At step 2 the apple was not found.", [APPLE], True),
    ("Only the waterglass is left.", [GLASS], True),
    ("Only the waterglass is left.", [seen(6, "waterglass", 9, **IN)], False),
    (ONLY_THE_GLASS, [GLASS], True),
    (ONLY_THE_GLASS, [seen(6, "waterglass", 9, relation="held by", holder=1)], True),
    (ONLY_THE_GLASS, [seen(6, "waterglass", 9, **IN)], False),
    ("The apple is in place and only the waterglass is left.", [seen(9, "apple", 4, **ON), GLASS], True),
    ("<plate> (5) is left.", [seen(5, "plate", 4, **IN), SECOND], False),
    ("<plate> (11) is left.", [seen(5, "plate", 4, **IN), SECOND], True),
    ("Alice waits for the apple.", [APPLE], True),
    ("Alice waits for the apple.", [seen(9, "apple", 4, **ON)], False),
])  # fmt: skip
def test_what_was_open_is_dropped_whole_once_it_is_not(
    sentence: str, things: Sequence[Known], is_kept: bool
) -> None:
    team = Beliefs(agent=-1, step=9, rooms={1: "kitchen"}, things={each.id: each for each in things})
    told = dated(4, f"It rained. {sentence}", *([GLASS] if sentence == ONLY_THE_GLASS else []))
    older, _ = kept_short([told, dated(9, "So it is.")], team, outdated(*things, did=["wait"]))
    assert older["synopsis"]["narrative"] == (f"It rained. {sentence}" if is_kept else "It rained.")


def test_who_is_said_to_wait_and_acts_again_waits_no_longer() -> None:
    told, now = dated(4, "Alice waits in <kitchen> (1). Bob is waiting."), Beliefs(agent=-1, step=9)
    acts = outdated(did=["goexplore <kitchen> (1)", "wait"])
    assert kept_short([told, told], now, acts)[0]["synopsis"]["narrative"] == "Bob is waiting."


@pytest.mark.parametrize(
    "wrong",
    [
        {"placed": [7]},
        {"checked": [7]},
        {"explored": [40]},
        {"found": [{"thing": 7, "place": 40}]},
        {"narrative": " "},
    ],
)
def test_a_synopsis_names_nothing_that_was_not_told(wrong: dict[str, Any]) -> None:
    made = Synopsis.model_validate_json(json.dumps({"narrative": "So it was.", **wrong}))
    with pytest.raises(ValueError, match=r"is 7|is 40|empty"):
        summarise_passage.verify(passage(), made)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"checked": [41]}, "is 41: choose 40"),
        ({"unchecked": [40]}, "is 40: choose 41"),
        ({"placed": [61]}, "is 61: choose none"),
        ({"found": [{"thing": 61, "place": 41}]}, "61 was not seen at 41"),
        ({"found": [{"thing": 61, "place": 4712}]}, "61 was not seen at 4712"),
    ],
)
def test_a_synopsis_claims_nothing_that_was_not_so(wrong: dict[str, Any], why: str) -> None:
    made = Synopsis.model_validate_json(json.dumps({"narrative": "So it was.", **wrong}))
    with pytest.raises(ValueError, match=why):
        summarise_passage.verify(passage(), made)
    by_its_room = made.model_copy(update={"found": [Found(thing=61, place=1)], "placed": []})
    allowed = by_its_room.model_copy(update={"checked": [40], "unchecked": [41]})
    assert summarise_passage.verify(passage(), allowed) == allowed


def test_progress_is_what_the_members_believe_together() -> None:
    episode = generate(3, "Prepare Tea", 2)
    nobody = [Beliefs(agent=0), Beliefs(agent=1)]
    assert assess(episode, nobody) == {
        "placed": dict.fromkeys((goal.key for goal in episode.goals), 0),
        "held": {},
        "found": {},
    }


def test_who_has_a_free_hand_amid_closed_containers_goes_on_looking() -> None:
    """A teammate can come for what her hands do not hold, and need not look for it."""
    closed = [Container(id=50 + n, name="kitchencabinet", room=2, x=12 + n, z=1) for n in range(2)]
    need = Need(id=9, name="kitchentable", room=1, x=1, z=1, relation="on", thing="wine", wanted=3)
    held = item(60, 2, 12, 2).model_copy(update={"held_by": 0})
    knowledge = Knowledge(**flat(needs=[need], containers=closed, items=[held]))
    looking = [("gocheck", each.id) for each in closed]
    team = [
        Hand(worker=worker(0, 2, 12, 2, (60,)), options=options_for(("goput", 9), *looking)),
        Hand(worker=worker(1, 1, 1, 3), options=options_for(*looking)),
    ]
    chosen = share_out(knowledge, team)
    assert team[0].options[chosen[0]].kind == "gocheck"
