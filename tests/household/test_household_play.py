"""What agents of the household decide, believe and play, and the trace of it."""

import json
from collections.abc import Sequence
from functools import partial
from itertools import permutations
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mneme.api.household import played
from mneme.api.household_runs import RUN_METADATA, Run, run_lines
from mneme.core.errors import BadInput
from mneme.environments.household import (
    Action,
    Beliefs,
    Episode,
    Event,
    Frame,
    Macro,
    MacroEnd,
    Plan,
    Trace,
    World,
    advance,
    generate,
    possible,
)
from mneme.environments.household.acting import AGENT_NAMES
from mneme.environments.household.macro import MAX_REPEATS, MAX_WAIT_STEPS
from mneme.nodes.household.views import knowledge_of, options_of, worker_of
from tests.doubles.apartment import (
    APPLE,
    CUPBOARD,
    DESK,
    FRIDGE,
    HALL,
    KITCHEN,
    PEAR,
    STUDY,
    TABLE,
    WINE,
    standing,
)
from tests.doubles.walking import walking_steps

BY_FRIDGE = (KITCHEN, 4.5, 4.5)
BY_DESK = (STUDY, 16.5, 1.5)
WAIT = Macro(kind="wait")


def macro(kind: str, target: int | None = None, text: str = "") -> Macro:
    return Macro.model_validate({"kind": kind, "target": target, "name": "it", "text": text})


def team(world: World) -> list[Beliefs]:
    """Let every agent look about once."""
    beliefs = [Beliefs(agent=agent) for agent in range(len(world.agents))]
    for agent, known in enumerate(beliefs):
        known.update(world.observe(agent))
    return beliefs


def play(world: World, beliefs: Sequence[Beliefs], *macros: Macro) -> tuple[list[Event], list[Frame]]:
    return advance(world, [Plan.of(each, world.episode.goals) for each in macros], beliefs)


def finish(world: World, beliefs: Sequence[Beliefs], *macros: Macro) -> list[Frame]:
    """Play agent 0's macro actions one after the other, each to a good end."""
    frames: list[Frame] = []
    for each in macros:
        events, more = play(world, beliefs, each)
        assert events[0].kind in ("finished", "done"), events
        frames += more
    return frames


def kinds(frames: Sequence[Frame]) -> list[str]:
    return [frame.actions[0].kind for frame in frames]


# -- plans -------------------------------------------------------------------------------------------------


def test_one_agent_fetches_everything() -> None:
    world = World(standing((HALL, 9, 3)))
    beliefs = team(world)
    frames = finish(
        world,
        beliefs,
        macro("goexplore", STUDY),
        macro("gocheck", CUPBOARD),
        macro("gograb", WINE),
        macro("gograb", PEAR),
        macro("goput", TABLE),
    )
    assert world.done
    assert [kind for kind in kinds(frames) if kind != "walk"] == ["open", "grab", "grab", "put_on", "put_on"]
    assert frames[-1].progress == {"on_apple_10": 1, "on_wine_10": 1}
    assert [frame.step for frame in frames] == list(range(1, len(frames) + 1))


def test_a_plan_walks_what_the_world_says_it_costs() -> None:
    world = World(standing((HALL, 9, 3)))
    beliefs = team(world)
    finish(world, beliefs, macro("goexplore", KITCHEN), macro("goexplore", STUDY))
    expected = walking_steps(world, 0, FRIDGE)
    frames = finish(world, beliefs, macro("gocheck", FRIDGE))
    assert kinds(frames) == ["walk"] * expected + ["open"]


def test_the_target_is_opened_before_one_thing_is_put_but_not_before_two() -> None:
    goals = [{"relation": "inside", "name": "apple", "target": CUPBOARD, "count": 1}]
    for hold, expected in (([PEAR], ["open", "put_in"]), ([PEAR, WINE], ["put_in"])):
        episode = standing((STUDY, 16.6, 5.5), goals=goals, open=[])
        state = World(episode).state()
        state["agents"][0]["hands"] = hold
        world = World(episode, state)
        frames = finish(world, team(world), macro("goput", CUPBOARD))
        assert kinds(frames)[: len(expected)] == expected
        assert world.done


@pytest.mark.parametrize("hold", [[PEAR], [PEAR, WINE]])
@pytest.mark.parametrize("names", [["apple"], ["apple", "wine"]])
@pytest.mark.parametrize("is_open", [True, False])
def test_putting_takes_the_steps_that_its_option_tells(
    hold: list[int], names: list[str], *, is_open: bool
) -> None:
    goals = [{"relation": "inside", "name": name, "target": CUPBOARD, "count": 1} for name in names]
    episode = standing((STUDY, 16.6, 5.5), goals=goals, open=[CUPBOARD] if is_open else [])
    state = World(episode).state()
    state["agents"][0]["hands"] = hold
    world = World(episode, state)
    [known] = team(world)
    knowledge = knowledge_of(episode, known, [worker_of(0, known, None)])
    options = options_of(world.observe(0), known, knowledge, episode.goals, None)
    [told] = [option.steps for option in options if option.kind == "goput"]
    _, frames = play(world, [known], macro("goput", CUPBOARD))
    assert told == len(frames)


def test_a_target_never_seen_is_looked_for() -> None:
    world = World(standing(BY_DESK))
    beliefs = team(world)
    finish(world, beliefs, macro("gograb", PEAR))
    assert TABLE not in beliefs[0].things
    finish(world, beliefs, macro("goput", TABLE))
    assert world.progress["on_apple_10"] == 1


def test_a_thing_goes_where_it_is_still_lacking() -> None:
    """Two targets ask for an apple, and one has it."""
    goals = [{"relation": "on", "name": "apple", "target": target, "count": 1} for target in (TABLE, DESK)]
    world = World(standing(BY_DESK, goals=goals, open=[FRIDGE]))
    [beliefs] = team(world)
    finish(world, [beliefs], macro("goexplore", KITCHEN), macro("gograb", APPLE))
    assert [each for each in offered(world, beliefs) if each.startswith("goput")] == ["goput <target> (10)"]
    assert world.progress == {"on_apple_10": 0, "on_apple_13": 1}


def test_a_check_by_two_opens_once_and_both_learn() -> None:
    world = World(standing(BY_FRIDGE, BY_FRIDGE))
    beliefs = team(world)
    events, frames = play(world, beliefs, macro("gocheck", FRIDGE), macro("gocheck", FRIDGE))
    assert [(event.kind, event.agent) for event in events] == [("finished", 0), ("finished", 1)]
    assert sorted(outcome.ok for outcome in frames[0].outcomes) == [False, True]
    assert all(APPLE in known.things for known in beliefs)


def test_of_two_that_grab_one_thing_one_fails() -> None:
    world = World(standing(BY_DESK, BY_DESK))
    events, _ = play(world, team(world), macro("gograb", PEAR), macro("gograb", PEAR))
    assert sorted(event.kind for event in events) == ["failed", "finished"]
    [failed] = [event for event in events if event.kind == "failed"]
    assert failed.why == f"{AGENT_NAMES[1 - failed.agent]} holds it"
    assert failed.forestalled


def test_what_was_taken_meanwhile_ends_the_plan_on_arrival() -> None:
    world = World(standing(BY_DESK, (STUDY, 16.5, 1.6)))
    beliefs = team(world)
    play(world, beliefs, macro("goexplore", HALL), macro("goexplore", HALL))
    world.agents[0].room, world.agents[0].position = STUDY, (16.5, 1.5)
    assert world.step([Action(kind="grab", object=PEAR), Action(kind="wait")])[0].ok
    world.agents[0].room, world.agents[0].position = KITCHEN, (3.0, 3.0)
    events, _ = play(world, beliefs, WAIT, macro("gograb", PEAR))
    assert [(event.kind, event.why) for event in events if event.agent == 1] == [
        ("failed", "it is not where it was")
    ]


@pytest.mark.parametrize(
    ("impossible", "why"),
    [
        (macro("gograb", WINE), "no such thing is known"),
        (macro("gocheck", CUPBOARD), "no such container is known"),
        (macro("gocheck", TABLE), "no such container is known"),
        (macro("goput", TABLE), "nothing in hand belongs there"),
        (macro("goexplore", TABLE), "there is no such room"),
    ],
)
def test_an_impossible_plan_fails_without_a_step(impossible: Macro, why: str) -> None:
    world = World(standing((KITCHEN, 3, 3)))
    events, frames = play(world, team(world), impossible)
    assert ([(event.kind, event.why) for event in events], frames) == ([("failed", why)], [])


def test_an_agent_that_gets_nowhere_is_stuck() -> None:
    world = World(standing(BY_FRIDGE))
    [beliefs] = team(world)
    plan = Plan.of(macro("gocheck", FRIDGE), world.episode.goals)
    observation = world.observe(0)
    for _ in range(MAX_REPEATS + 1):
        turn = plan.next(observation, beliefs, world.layout)
        assert isinstance(turn, Action)
        plan.took(turn, observation, beliefs)
    assert plan.next(observation, beliefs, world.layout) == MacroEnd(ok=False, why="stuck")


def test_waiting_ends_and_a_message_interrupts() -> None:
    world = World(standing(BY_FRIDGE, BY_DESK))
    beliefs = team(world)
    events, frames = play(world, beliefs, WAIT, WAIT)
    assert (len(events), len(frames)) == (2, MAX_WAIT_STEPS)
    events, frames = play(world, beliefs, macro("send_message", text="the wine is here"), WAIT)
    assert len(frames) == 1
    assert {(event.kind, event.agent) for event in events} == {("message", 1), ("finished", 0)}
    assert [event.why for event in events if event.kind == "message"] == ["the wine is here"]
    events, frames = play(world, beliefs, macro("send_message", text="again"), WAIT)
    assert (events[0].why, frames) == ("a message was sent just now", [])


def test_a_caller_can_stop_between_steps() -> None:
    world = World(standing((KITCHEN, 0.5, 3.0)))
    plan = Plan.of(macro("goexplore", STUDY), world.episode.goals)
    beliefs = team(world)
    events, frames = advance(world, [plan], beliefs, stop=lambda at: at.steps == 3)
    assert (events, len(frames)) == ([Event(kind="stopped", agent=-1)], 3)
    events, frames = advance(world, [plan], beliefs, most=2)
    assert (events, len(frames)) == ([], 2)
    events, _ = advance(world, [Plan.model_validate_json(plan.model_dump_json())], beliefs)
    assert events == [Event(kind="finished", agent=0)]


def test_an_episode_ends_at_its_limit() -> None:
    world = World(standing(BY_FRIDGE))
    beliefs = team(world)
    while world.steps < World.LIMIT:
        play(world, beliefs, WAIT)
    assert play(world, beliefs, WAIT)[0] == [Event(kind="limit", agent=-1, why="250 steps")]


# -- what is possible --------------------------------------------------------------------------------------


def offered(world: World, beliefs: Beliefs) -> list[str]:
    return [str(each) for each in possible(world.observe(beliefs.agent), beliefs, world.episode.goals)]


def test_only_what_is_possible_is_offered() -> None:
    world = World(standing(BY_FRIDGE))
    [beliefs] = team(world)
    rooms = ["goexplore <livingroom> (2)", "goexplore <bedroom> (3)"]
    assert offered(world, beliefs) == ["gocheck <fridge> (11)", *rooms, 'send_message ""', "wait"]
    finish(world, [beliefs], macro("gocheck", FRIDGE), macro("send_message", text="open"))
    assert offered(world, beliefs) == ["gograb <apple> (20)", *rooms, "wait"]
    finish(world, [beliefs], macro("gograb", APPLE))
    assert offered(world, beliefs) == ["goput <kitchentable> (10)", *rooms, 'send_message ""', "wait"]
    finish(world, [beliefs], macro("goput", TABLE))
    assert offered(world, beliefs) == [*rooms, 'send_message ""', "wait"], "no second apple is wanted"


def test_putting_is_forced_when_two_are_held() -> None:
    world = World(standing(BY_DESK))
    [beliefs] = team(world)
    finish(world, [beliefs], macro("gograb", PEAR), macro("gocheck", CUPBOARD), macro("gograb", WINE))
    assert offered(world, beliefs) == ["goput <kitchentable> (10)"]


# -- beliefs -----------------------------------------------------------------------------------------------


def test_beliefs_keep_where_and_when() -> None:
    world = World(standing(BY_DESK))
    [beliefs] = team(world)
    finish(world, [beliefs], macro("goexplore", HALL))
    left = beliefs.things[PEAR].step
    finish(world, [beliefs], macro("goexplore", KITCHEN))
    assert beliefs.things[PEAR].step == left < beliefs.step
    assert beliefs.room_seen[KITCHEN] == beliefs.step
    assert Beliefs.model_validate(json.loads(beliefs.model_dump_json())) == beliefs
    words = beliefs.words()
    assert "I am in the kitchen, holding nothing." in words
    assert f"<fridge> (11) is closed, unchecked, in the kitchen (step {beliefs.step})." in words
    assert f"Explored by me: <bedroom> (3) (step {left}), " in words and "Not yet explored" not in words
    assert f"<apple> (21) is in the bedroom (step {left})." in words


def test_what_is_gone_is_given_up() -> None:
    world = World(standing(BY_DESK, (STUDY, 16.5, 1.6)))
    beliefs = team(world)
    play(world, beliefs, WAIT, macro("goexplore", HALL))
    world.step([Action(kind="grab", object=PEAR), Action(kind="wait")])
    world.agents[0].room = HALL
    beliefs[0].update(world.observe(0))
    world.agents[0].room = KITCHEN
    play(world, beliefs, WAIT, macro("goexplore", STUDY))
    assert PEAR not in beliefs[1].things
    assert beliefs[1].lost[PEAR] == world.steps


def test_merging_takes_what_was_seen_later() -> None:
    world = World(standing(BY_FRIDGE, BY_DESK))
    beliefs = team(world)
    play(world, beliefs, macro("gocheck", FRIDGE), WAIT)
    beliefs[1].merge(beliefs[0])
    assert beliefs[1].things[APPLE] == beliefs[0].things[APPLE]
    assert beliefs[1].checked == {FRIDGE: 1}
    play(world, beliefs, macro("gograb", APPLE), WAIT)
    assert beliefs[1].things[APPLE].relation == "inside", (
        "what another sees later is not known before it is told"
    )
    beliefs[1].merge(beliefs[0])
    assert beliefs[1].things[APPLE].relation == "held by"
    beliefs[0].merge(beliefs[1])
    assert beliefs[0].things[PEAR].room == STUDY


def test_a_thing_missed_by_one_while_another_holds_it_is_not_lost_to_the_team() -> None:
    world = World(standing(BY_DESK, (STUDY, 16.5, 1.6), (STUDY, 16.5, 1.7)))
    beliefs = team(world)
    world.agents[0].room = KITCHEN
    assert world.step([Action(kind="wait"), Action(kind="wait"), Action(kind="grab", object=PEAR)])[2].ok
    world.agents[2].room = HALL
    for agent, known in enumerate(beliefs):
        known.update(world.observe(agent))
    assert (beliefs[0].things[PEAR].step, beliefs[1].lost[PEAR], beliefs[2].things[PEAR].step) == (0, 1, 1)
    for order in permutations(beliefs):
        together = Beliefs(agent=-1)
        for known in order:
            together.merge(known)
        assert (together.things[PEAR].relation, together.things[PEAR].holder) == ("held by", 2)
        assert PEAR not in together.lost


# -- whole episodes ----------------------------------------------------------------------------------------


def decide(world: World, beliefs: Beliefs, chance: Random) -> Macro:
    """Decide by a plain rule: put when forced, else grab, check, put, explore; among alike at random."""
    options = possible(world.observe(beliefs.agent), beliefs, world.episode.goals)
    for kind in ("gograb", "gocheck", "goput", "goexplore"):
        alike = [each for each in options if each.kind == kind]
        if alike:
            return chance.choice(alike)
    return WAIT


def episode_by_rule(episode: Episode, seed: int) -> tuple[World, list[Frame]]:
    world, chance = World(episode, seed=seed), Random(seed)
    beliefs = team(world)
    plans: list[Plan | None] = [None] * len(beliefs)
    frames: list[Frame] = []
    while not world.done and world.steps < World.LIMIT:
        ready = [
            plan or Plan.of(decide(world, known, chance), episode.goals)
            for plan, known in zip(plans, beliefs, strict=True)
        ]
        events, more = advance(world, ready, beliefs)
        frames += more
        plans = list(ready)
        for event in events:
            plans = [None if agent == event.agent else plan for agent, plan in enumerate(plans)]
    return world, frames


TRIES = 4
"""Plays of which one must end: who chooses at random among alike may well pass the limit of steps."""


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 100_000), agents=st.integers(1, 4))
def test_every_generated_episode_can_be_solved_from_what_agents_see(seed: int, agents: int) -> None:
    episode = generate(seed, agents=agents)
    plays = (episode_by_rule(episode, chance) for chance in range(TRIES))
    world, frames = next((play for play in plays if play[0].done), (None, []))
    assert world is not None
    assert len(frames) == world.steps


def test_an_episode_is_the_same_for_the_same_seed() -> None:
    episode = generate(12, agents=3)
    assert episode_by_rule(episode, 4)[1] == episode_by_rule(episode, 4)[1]


# -- trace -------------------------------------------------------------------------------------------------


def test_a_trace_is_read_back(tmp_path: Path) -> None:
    episode = generate(3, agents=2)
    _, frames = episode_by_rule(episode, 1)
    trace = Trace(tmp_path / "runs" / "run.jsonl")
    trace.append("episode", episode=episode.model_dump(mode="json"))
    for frame in frames:
        trace.append("step", **frame.model_dump(mode="json"))
    assert trace.frames() == frames
    [first, *_] = trace.read()
    assert Episode.model_validate(first["episode"]) == episode


def test_a_trace_that_was_cut_short_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    _, frames = episode_by_rule(generate(3, agents=2), 1)
    trace = Trace(tmp_path / "run.jsonl")
    for frame in frames[:5]:
        trace.append("step", **frame.model_dump(mode="json"))
    trace.path.write_bytes(trace.path.read_bytes()[:-30])
    assert trace.frames() == frames[:4], "a line cut short is left out"


def test_no_trace_and_no_json_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="There is no trace"):
        Trace(tmp_path / "absent").frames()
    (tmp_path / "odd").write_text("a\n")
    with pytest.raises(BadInput, match="line 1 is not JSON"):
        Trace(tmp_path / "odd").frames()


@pytest.mark.parametrize("made_up", ["tea", 5, "[]", "{}"])
def test_a_run_that_somebody_made_up_is_listed_as_unreadable(made_up: object) -> None:
    told = partial(run_lines, {"thread_name": "household/tea/1", RUN_METADATA: made_up}, {"over": True})
    assert played(Run("tea", told)).outcome == "unreadable"
