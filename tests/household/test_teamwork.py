"""The rules of MiTa: rounds, whereabouts, who is sent where, proposals and allocations."""

from collections.abc import Sequence
from itertools import permutations, product

import pytest

from mneme.environments.household.beliefs import Beliefs
from mneme.environments.household.generator import generate
from mneme.environments.household.macro import MAX_WAIT_STEPS
from mneme.nodes.household.mita_state import assess
from mneme.prompts.household.household import Container, Item, Knowledge, Need, Room, View, Worker
from mneme.prompts.household.mita import Allocation, Proposal, Report, allocate_actions, propose_action
from mneme.rules.household.errands import Errands
from mneme.rules.household.judgement import best, merits
from mneme.rules.household.rounds import Rounds
from mneme.rules.household.teamwork import share_out
from mneme.rules.household.whereabouts import Whereabouts
from mneme.rules.registry import answer as by_rule
from tests.doubles.household import cross_context, flat, item, options_for, situation, worker


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


def test_a_team_sends_the_nearer_one_and_nobody_twice() -> None:
    bedroom = Container(id=50, name="cabinet", room=2, x=8, z=4)
    kitchen = Container(id=51, name="microwave", room=1, x=2, z=4)
    knowledge = Knowledge(**flat(containers=[bedroom, kitchen]))
    both = options_for(("gocheck", 50), ("gocheck", 51))
    workers = (worker(0, 2, 8, 1), worker(1, 1, 2, 1))
    team = [Report(worker=each, options=both, proposal=-1) for each in workers]
    assert share_out(knowledge, team) == [0, 1]
    crowd = [Report(worker=worker(n, 1, 2, n), options=both, proposal=-1) for n in range(3)]
    chosen = [both[n] for n in share_out(knowledge, crowd)]
    claims = [option.claim for option in chosen if option.claim]
    assert len(claims) == len(set(claims)) == 2 and [each.kind for each in chosen].count("wait") == 1


@pytest.mark.parametrize("proposal", [0, 1])
def test_between_plans_as_good_as_each_other_the_proposal_decides(proposal: int) -> None:
    left = Container(id=50, name="cabinet", room=1, x=1, z=4)
    right = Container(id=51, name="cabinet", room=1, x=3, z=4)
    knowledge = Knowledge(**flat(containers=[left, right]))
    both = options_for(("gocheck", 50), ("gocheck", 51))
    alone = Report(worker=worker(0, 1, 2, 4), options=both, proposal=proposal)
    assert share_out(knowledge, [alone]) == [proposal]


def test_a_proposal_does_not_outweigh_what_is_much_better() -> None:
    near = Container(id=50, name="fridge", room=1, x=1, z=2)
    far = Container(id=51, name="cabinet", room=2, x=10, z=4)
    knowledge = Knowledge(**flat(containers=[near, far]))
    both = options_for(("gocheck", 50), ("gocheck", 51))
    alone = Report(worker=worker(0, 1, 2, 2), options=both, proposal=1)
    assert share_out(knowledge, [alone]) == [0]


def test_of_rounds_as_short_as_each_other_the_proposed_one_is_done() -> None:
    things = [item(61, 1, 1, 3.5), item(62, 1, 3.5, 1)]
    need = Need(id=9, name="kitchentable", room=1, x=1, z=1, relation="on", thing="wine", wanted=2)
    knowledge = Knowledge(**flat(needs=[need], items=things))
    both = options_for(("gograb", 61), ("gograb", 62))
    for proposal in (0, 1):
        alone = Report(worker=worker(0, 1, 3.5, 3.5), options=both, proposal=proposal)
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


def test_a_proposal_is_one_of_the_options() -> None:
    proposed = by_rule(propose_action, situation())
    assert proposed.choice == 0
    with pytest.raises(ValueError, match="choice is 5: choose 0 or 1"):
        propose_action.verify(situation(), Proposal(reason="", choice=5))


def test_a_wait_is_as_long_as_members_are_told() -> None:
    assert MAX_WAIT_STEPS == 5
    assert "wait: do nothing, for five steps at most" in propose_action.system


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
        Report(worker=worker(0, 2, 12, 2, (60,)), options=options_for(("goput", 9), *looking), proposal=-1),
        Report(worker=worker(1, 1, 1, 3), options=options_for(*looking), proposal=-1),
    ]
    chosen = share_out(knowledge, team)
    assert team[0].options[chosen[0]].kind == "gocheck"
