"""CoELA, ProAgent and MHP in the household: how each decides, and whole episodes of each."""

from importlib import import_module
from itertools import pairwise
from random import Random
from types import ModuleType
from typing import Any

import pytest

from mneme.core.errors import BadInput
from mneme.environments.household import GOAL_CATEGORIES, Episode, generate
from mneme.environments.household.bound import lower_bound
from mneme.graphs.baselines import coela, mhp, proagent
from mneme.nodes.household.alone import fallback
from mneme.nodes.household.context import HouseholdContext
from mneme.nodes.household.mhp import resample, situation_of
from mneme.nodes.household.mhp_search import Item as Fetch
from mneme.nodes.household.mhp_search import Need as Wanted
from mneme.nodes.household.mhp_search import Situation as Setting
from mneme.nodes.household.mhp_search import search, subgoals
from mneme.prompts.household.coela import Choice, Draft, Planning, choose_action, draft_message
from mneme.prompts.household.household import Container, Door, Item, Need, Option, Room, View, Worker
from mneme.prompts.household.proagent import Observed, Scene, plan_skill
from mneme.rules import registry
from mneme.rules.registry import answer as by_rule
from tests.doubles.apartment import CUPBOARD, FRIDGE, HALL, KITCHEN, STUDY, TABLE, WINE, standing
from tests.doubles.scripts import script

import_module("mneme.rules.pddl")  # has a prompt of the name of one of CoELA's, and must not answer for it

RIVALS = (coela, proagent, mhp)
EPISODE = standing((KITCHEN, 3.0, 3.0), (STUDY, 15.0, 3.0))


async def play(graph: ModuleType, episode: Episode, member: str = "rules") -> dict[str, Any]:
    context = HouseholdContext(member=member, manager="rules", seed=episode.seed)
    given: Any = {"episode": episode.model_dump(mode="json")}
    ended = await graph.builder.compile().ainvoke(given, {"recursion_limit": 3000}, context=context)
    return dict(ended)


async def frames_of(graph: ModuleType, episode: Episode) -> list[dict[str, Any]]:
    """Return every step of an episode."""
    context = HouseholdContext(member="rules", manager="rules", seed=episode.seed)
    given: Any = {"episode": episode.model_dump(mode="json")}
    compiled = graph.builder.compile()
    config: Any = {"recursion_limit": 3000}
    told = [part async for part in compiled.astream(given, config, context=context, stream_mode="custom")]
    return [frame for part in told if part["step"] == "execute" for frame in part["frames"]]


def view(**changes: Any) -> dict[str, Any]:
    """Give what Alice, in the kitchen, may know of the apartment: a wine and an apple are wanted."""
    rooms = [(KITCHEN, "kitchen", 3.0), (HALL, "livingroom", 9.0), (STUDY, "bedroom", 15.0)]
    needs = [
        Need(id=TABLE, name="kitchentable", room=KITCHEN, x=1, z=1, relation="on", thing=thing, wanted=1)
        for thing in ("apple", "wine")
    ]
    seen = {KITCHEN: 1}
    known: dict[str, Any] = {
        "step": 5,
        "needs": needs,
        "rooms": [Room(id=n, name=name, room=n, x=x, z=3, seen=seen.get(n)) for n, name, x in rooms],
        "doors": [Door(rooms=(KITCHEN, HALL), x=6, z=3), Door(rooms=(HALL, STUDY), x=12, z=3)],
        "containers": [Container(id=FRIDGE, name="fridge", room=KITCHEN, x=5.5, z=5.5, width=1, depth=1)],
        "items": [],
        "workers": [Worker(number=0, name="Alice", room=KITCHEN, x=3, z=3)],
        "options": [
            Option(kind="gocheck", target=FRIDGE, name="fridge", room="kitchen", steps=3),
            Option(kind="goexplore", target=HALL, name="livingroom", room="livingroom", steps=4),
            Option(kind="goexplore", target=STUDY, name="bedroom", room="bedroom", steps=10),
            Option(kind="wait"),
        ],
    }
    return known | changes


# ---------------------------------------------------------------- whole episodes


@pytest.mark.parametrize("few", [2, pytest.param(len(GOAL_CATEGORIES), marks=pytest.mark.long)])
@pytest.mark.parametrize("rival", RIVALS, ids=lambda module: module.__name__)
async def test_plays_generated_episodes_to_their_end(rival: ModuleType, few: int) -> None:
    for seed, category in enumerate(GOAL_CATEGORIES[:few], start=11):
        episode = generate(seed, category, 1 + seed % 3)
        ended = await play(rival, episode)
        assert ended["steps"] >= lower_bound(episode).steps
        assert ended["success"] or ended["steps"] == 250
        assert ended["success"] == all(ended["progress"][goal.key] >= goal.count for goal in episode.goals)


@pytest.mark.parametrize("rival", RIVALS, ids=lambda module: module.__name__)
async def test_plays_the_same_episode_the_same_way(rival: ModuleType) -> None:
    assert await play(rival, EPISODE) == await play(rival, EPISODE)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"agents": "two"}, "agents: "),
        ({"seed": "a"}, "seed: "),
        ({"seed": -1}, "seed: "),
        ({"category": 3}, "category: "),
        ({"category": "Iron"}, "category: there is no category Iron"),
        ({"agents": 50}, "agents: "),
        ({"episode": "here"}, "episode: "),
    ],
)
async def test_a_bad_input_is_refused_by_field(given: Any, message: str) -> None:
    context = HouseholdContext(member="rules", manager="rules")
    with pytest.raises(BadInput, match=message):
        await coela.builder.compile().ainvoke(given, context=context)


async def test_what_the_world_measured_of_teammates_in_the_way_is_counted() -> None:
    # two who stand alike, know alike and decide alike go for the same things at the same steps
    ended = await play(mhp, standing((STUDY, 15.0, 3.0), (STUDY, 15.0, 3.0)))
    assert ended["counters"]["lost_steps"] > 0
    assert ended["counters"]["forestalled"] > 0
    alone = await play(mhp, standing((STUDY, 15.0, 3.0)))
    assert (alone["counters"]["lost_steps"], alone["counters"]["forestalled"]) == (0, 0)


async def test_finishes_what_two_rooms_hold() -> None:
    steps = {rival.__name__: (await play(rival, EPISODE))["steps"] for rival in RIVALS}
    assert max(steps.values()) < 80, steps


# ---------------------------------------------------------------- CoELA


async def test_a_message_costs_its_sender_the_step_and_never_follows_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def talk(given: Planning) -> Choice:
        """Send the draft whenever that is offered: sending is the last option."""
        return Choice(reason="They should know.", option=len(given.options) - 1)

    monkeypatch.setitem(
        registry._RULES, (draft_message.room, draft_message.name), lambda _: Draft(reason="", message="Hi.")
    )
    monkeypatch.setitem(registry._RULES, (choose_action.room, choose_action.name), talk)
    frames = await frames_of(coela, generate(12, "Put Groceries", 2))
    sent = [[frame["actions"][agent]["kind"] == "send" for frame in frames] for agent in range(2)]
    assert any(any(each) for each in sent)
    assert not any(first and second for each in sent for first, second in pairwise(each))
    for before, after in pairwise(frames):
        for agent, action in enumerate(after["actions"]):
            if action["kind"] == "send":
                assert after["positions"][agent] == before["positions"][agent]
                assert after["hands"][agent] == before["hands"][agent]


def planning_of(known: dict[str, Any], **more: Any) -> Planning:
    return Planning(**known, name="Alice", teammates=["Bob"], **more)


def test_rules_send_no_message_and_do_what_is_worth_most() -> None:
    wine = Item(id=WINE, name="wine", room=KITCHEN, x=5, z=5, seen=5)
    given = planning_of(view(items=[wine]))
    assert by_rule(draft_message, given).message == ""
    assert given.options[by_rule(choose_action, given).option].target == FRIDGE


async def test_without_a_usable_answer_it_is_silent_and_does_what_is_nearest() -> None:
    asked = ("draft_message", "choose_action")
    script("strays", {name: ['{"reason": "Why not.", "option": 99}'] * 3000 for name in asked})
    ended = await play(coela, EPISODE, member="scripted:strays")
    counted = ended["counters"]
    assert ended["success"] or ended["steps"] == 250
    assert ended["answered_by"] == []
    assert counted["messages"] == 0
    assert counted["fallbacks"] > 2
    assert counted["calls"] == counted["fallbacks"], "a script is asked once"


async def test_one_unusable_choice_costs_no_episode() -> None:
    situation = planning_of(view())
    assert situation.options[fallback(situation.options)].target == FRIDGE, "the nearest"
    going = situation.options[1].model_copy(update={"under_way": True})
    assert fallback([situation.options[0], going]) == 1, "what is under way"
    sending = [Option(kind="send_message", steps=1), Option(kind="wait"), situation.options[2]]
    assert fallback(sending) == 2


# ---------------------------------------------------------------- ProAgent


async def test_proagent_goes_on_without_a_usable_plan() -> None:
    script("babble", {"plan_skill": ["I would rather not."] * 3000})
    ended = await play(proagent, EPISODE, member="scripted:babble")
    assert ended["success"] or ended["steps"] == 250
    assert ended["counters"]["fallbacks"] > 2
    assert ended["counters"]["calls"] == ended["counters"]["fallbacks"]


def scene(**more: Any) -> Scene:
    """Put Bob beside the fridge, in Alice's sight."""
    bob = Worker(number=1, name="Bob", room=KITCHEN, x=5, z=5)
    known = view(workers=[*view()["workers"], bob])
    return Scene(**known | {"name": "Alice"} | more)


def test_leaves_what_a_nearer_teammate_seems_to_intend() -> None:
    watched = Observed(teammate=1, name="Bob", seen=5, room=KITCHEN)
    away = Worker(number=0, name="Alice", room=HALL, x=9, z=3)
    rooms = [room.model_copy(update={"seen": 1}) for room in view()["rooms"]]
    cupboard = Container(id=CUPBOARD, name="cabinet", room=STUDY, x=17.5, z=5.5, width=1, depth=1)
    options = [
        Option(kind="gocheck", target=FRIDGE, name="fridge", room="kitchen", steps=8),
        Option(kind="gocheck", target=CUPBOARD, name="cabinet", room="bedroom", steps=9),
    ]
    known = {"rooms": rooms, "options": options, "containers": [*view()["containers"], cupboard]}
    alone = scene(workers=[away], **known)
    beside = scene(workers=[away, scene().workers[1]], observed=[watched], **known)
    assert alone.options[by_rule(plan_skill, alone).option].target == FRIDGE
    assert [each.target for each in by_rule(plan_skill, beside).intentions] == [FRIDGE]
    assert beside.options[by_rule(plan_skill, beside).option].target != FRIDGE


def test_of_two_as_near_the_lower_number_goes() -> None:
    watched = Observed(teammate=1, name="Bob", seen=5, room=KITCHEN)
    alice = scene(observed=[watched])
    assert alice.options[by_rule(plan_skill, alice).option].target == FRIDGE
    watched = Observed(teammate=0, name="Alice", seen=5, room=KITCHEN)
    bob = scene(observed=[watched]).model_copy(update={"me": 1, "name": "Bob"})
    assert bob.options[by_rule(plan_skill, bob).option].target != FRIDGE


def test_does_not_infer_again_what_behaviour_contradicted() -> None:
    watched = Observed(teammate=1, name="Bob", seen=5, room=KITCHEN, contradicted=[FRIDGE])
    (intention,) = by_rule(plan_skill, scene(observed=[watched])).intentions
    assert intention.target != FRIDGE


def test_knows_nothing_of_a_teammate_not_seen_for_long() -> None:
    watched = Observed(teammate=1, name="Bob", seen=5, room=KITCHEN)
    (intention,) = by_rule(plan_skill, scene(observed=[watched], step=80)).intentions
    assert intention.target == -1


async def test_keeps_what_it_saw_and_thought_of_its_teammates() -> None:
    together = standing((KITCHEN, 3.0, 3.0), (KITCHEN, 2.0, 2.0))
    context = HouseholdContext(member="rules", manager="rules")
    given: Any = {"episode": together.model_dump(mode="json")}
    config: Any = {"recursion_limit": 3000}
    compiled = proagent.builder.compile()
    states = [s async for s in compiled.astream(given, config, context=context, stream_mode="values")]
    thought = [mind[1] for state in states for mind in state.get("minds", [])[:1]]
    assert any(each.intended >= 0 for each in thought)
    assert any("holds" in did for each in thought for did in each.did)


# ---------------------------------------------------------------- MHP


def steps(start: int, end: int) -> int:
    """Measure along a line: spot 0 is where the agent stands, spot n is n metres away."""
    return abs(start - end)


def test_searches_for_the_short_way_round() -> None:
    near, far = Fetch(3, "apple", 3, False, False, True), Fetch(40, "apple", 40, False, False, True)
    setting = Setting(0, (Wanted("apple", 1, 1, False),), (far, near))
    assert [each.item.id for each in search(setting, steps, Random(1))] == [3]


def test_brings_what_it_holds_before_anything_else() -> None:
    held, seen = Fetch(5, "wine", 0, False, True, True), Fetch(3, "apple", 3, False, False, True)
    setting = Setting(0, (Wanted("apple", 1, 1, False), Wanted("wine", 1, 1, False)), (seen, held))
    assert [each.item.id for each in subgoals(setting)] == [5]
    assert search(setting, steps, Random(1))[0].item.id == 5


def test_the_particle_stays_until_it_is_contradicted() -> None:
    known = View(**view())
    first = resample(known, {}, Random(1))
    assert set(first) == {"apple/0", "wine/0"}
    assert set(first.values()) <= {FRIDGE, HALL, STUDY}
    assert resample(known, first, Random(2)) == first
    rooms = [room.model_copy(update={"seen": 5}) for room in known.rooms]
    later = known.model_copy(update={"rooms": rooms})
    assert set(resample(later, first, Random(3)).values()) == {FRIDGE}


def test_what_was_seen_need_not_be_imagined() -> None:
    wine = Item(id=WINE, name="wine", room=STUDY, x=17, z=5, seen=3)
    known = View(**view(items=[wine]))
    sample = resample(known, {}, Random(1))
    assert set(sample) == {"apple/0"}
    items = {each.name: each for each in situation_of(known, sample).items}
    assert items["wine"].id == WINE
    assert items["apple"].id < 0
    assert items["apple"].opens == (items["apple"].spot not in (HALL, STUDY))
    assert CUPBOARD not in sample.values()
