"""Dead ends are followed under their condition: not tried again there, and no obstacle elsewhere."""

from typing import Any

import pytest

from mneme.environments.sql_tuning.tasks import TuningTask, tasks
from mneme.environments.trial import Trial
from mneme.environments.worlds import Task, find_world
from mneme.graphs.compound_learning import builder as compound_learning
from mneme.nodes.learning.compound_learning.monitor import fell_short
from mneme.nodes.learning.compound_learning.state import as_shown
from mneme.nodes.learning.context import LearningContext
from mneme.prompts.learning.compound_learning.challenge import Review
from mneme.prompts.learning.compound_learning.research import Assignment, Draft
from mneme.prompts.learning.compound_learning.task import Advice, InVain, Known
from mneme.rules.learning.compound_learning import challenge_draft, draft_solution
from mneme.stores.cards.card import DeprecatedApproach, Lesson, Rule, TaskOutcome
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.lifecycle import untested_card
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change

ROWS = 20_000
MOST = "filters keep most rows"
CHANGE = Change(reason="a test", actor="test")
TRIED = "wash hot"
SOILED = InVain(approach=TRIED, condition="red silk", applies=True, reason="it bled", failed=2)
FIRST = Advice(pattern="wash cold", statements=["cold"])
FAILED = Trial(correct=True, gain=1.0, wanted=2.0, solved=False, summary="It is no cleaner.")


def card(*, holds: bool | None = True, served: int = 0, failed: int = 2) -> Known:
    """Return a card whose rule fails for red silk."""
    return Known(
        claim="Wash silk hot.",
        status="verified",
        confidence=0.9,
        advice=[Advice(condition="silk", pattern=TRIED, applies=True, specificity=1, statements=["hot"])],
        in_vain=[SOILED.model_copy(update={"applies": holds, "failed": failed})],
        served=["red silk"] * served,
    )


def drafted(shown: Known, *pitfalls: Known) -> str:
    given = Assignment(
        task="Clean it.", parts=["statements"], cards=[shown], pitfalls=[*pitfalls], textbook=[FIRST]
    )
    return draft_solution(given).pattern


@pytest.mark.parametrize(
    ("shown", "pattern"),
    [
        (card(), "wash cold"),
        (card(holds=False), TRIED),
        (card(holds=None), TRIED),
        (card(served=1), "wash cold"),
        (card(served=2), TRIED),
        (card(served=9, failed=40), "wash cold"),
        (card(served=10, failed=40), TRIED),
    ],
    ids=[
        *("holds here", "does not hold", "may hold", "failed more often", "served as often"),
        *("served less of late", "served in all that is told"),
    ],
)
def test_rules_follow_a_card_but_where_it_is_in_vain(shown: Known, pattern: str) -> None:
    assert drafted(shown) == pattern


def test_a_dead_end_does_not_mask_a_rule_that_served_tasks_which_it_covers() -> None:
    served = card().model_copy(update={"served": ["red silk; a stain"] * 2})
    assert drafted(served) == TRIED
    others = card().model_copy(update={"served": ["blue silk; a stain"] * 2})
    assert drafted(others) == "wash cold"


async def test_what_is_proven_is_not_shown_beside_a_ban_that_its_successes_refute(
    edge_ledger: Ledger,
) -> None:
    cards, (wide, _) = KnowledgeCards(edge_ledger, "t"), _pair()
    features, rule = _features(wide), Rule(condition="range filter", pattern="INDEX (filter)")
    ends = [DeprecatedApproach(approach=rule.pattern, condition=features, failed_in=["x"], reason="slow")]
    lesson = Lesson(claim="Index it.", rules=[rule], deprecated_approaches=ends, scope="sql_tuning")
    made = await cards.create(lesson, TaskOutcome(task="t0", success=True, features=features), change=CHANGE)
    in_vain = Lesson(claim="Tried and failed.", deprecated_approaches=ends, scope="sql_tuning")
    ban = await cards.create(in_vain, TaskOutcome(task="x", success=False), change=CHANGE)
    await cards.deprecate(ban.card.id, change=CHANGE)
    graph = compound_learning.compile(store=LedgerStore(edge_ledger))

    async def shown(task_id: str) -> str:
        given: Any = {"task": wide.description, "query": wide.query, "task_id": task_id}
        roles: Any = dict.fromkeys(("researcher", "devils_advocate", "leader", "monitor"), "rules")
        where = LearningContext(
            **roles, team="t", environment="sql_tuning", schema_name=wide.schema_name, rows=ROWS
        )
        async for update in graph.astream(given, context=where, stream_mode="updates"):
            found = update["recall"]
            return "\n".join(map(str, [*found["cards"], *found["pitfalls"]]))
        return ""

    first = await shown("first")
    assert "Index it." in first and "tried and failed when" not in first
    for task in ("y", "z"):  # now it failed more often than it served
        more = lesson.model_copy(
            update={"deprecated_approaches": [ends[0].model_copy(update={"failed_in": [task]})]}
        )
        failed = TaskOutcome(task=task, success=False, features=features)
        await cards.reinforce(made.card.id, failed, change=CHANGE, details=more)
    assert "tried and failed when" in await shown("second")


def test_a_dead_end_on_another_card_counts_as_well() -> None:
    ends = Known(claim="For red silk", status="deprecated", confidence=0.0, in_vain=[SOILED])
    follows = card().model_copy(update={"in_vain": []})
    assert drafted(follows, ends) == "wash cold" and drafted(follows) == TRIED


def test_the_advocate_says_what_is_known_and_names_no_such_remedy() -> None:
    ends = Known(claim="For red silk", status="deprecated", confidence=0.0, in_vain=[SOILED])
    given = Review(task="Clean it.", draft=TRIED, pattern=TRIED, trial=FAILED, remedies=[TRIED, "wash cold"])
    found = challenge_draft(given.model_copy(update={"pitfalls": [ends]})).objections
    assert (found[0].kind, found[0].pitfall, found[0].severity) == ("known_pitfall", 0, "blocking")
    assert "red silk (holds here)" in found[0].evidence and "it bled" in found[0].evidence
    assert {each.remedy for each in found} == {"", "wash cold"}
    by_card = challenge_draft(given.model_copy(update={"cards": [card()]})).objections
    assert [(each.kind, each.card) for each in by_card[:1]] == [("contradiction", 0)]
    other = given.model_copy(update={"pattern": "wash cold", "cards": [card()]})
    assert TRIED not in {each.remedy for each in challenge_draft(other).objections}


def test_a_model_reads_the_condition_and_whether_it_holds() -> None:
    assert "tried and failed when red silk (holds here): wash hot (in 2 tasks): it bled" in str(card())
    assert "tried and failed when red silk (does not hold here)" in str(card(holds=False))


async def test_dead_ends_of_several_tasks_come_together_in_one_card(ledger: Ledger) -> None:
    cards = KnowledgeCards(ledger, "t")

    async def learn(task: str, approach: str, condition: str = "silk", gained: float | None = None) -> int:
        ends = [DeprecatedApproach(approach=approach, condition=condition, failed_in=[task], gained=gained)]
        lesson = Lesson(claim="Tried and failed.", deprecated_approaches=ends)
        made = await cards.create(lesson, TaskOutcome(task=task, success=False), change=CHANGE)
        return (await cards.deprecate(made.card.id, change=CHANGE)).version

    await learn("a", "hot")
    before = await learn("b", "Hot", gained=1.3)
    assert await learn("b", "hot", gained=1.2) == before, "what is known is no new version"
    await learn("c", "hot", condition="wool")
    await learn("d", "dry")
    (kept,) = await cards.records.list()
    ends = [(each.approach, each.condition, each.failed_in) for each in kept.deprecated_approaches]
    assert kept.status == "deprecated" and kept.evidence.failure_count == 1
    assert ends == [("hot", "silk", ["a", "b"]), ("hot", "wool", ["c"]), ("dry", "silk", ["d"])]
    assert kept.deprecated_approaches[0].gained == 1.3


@pytest.mark.parametrize(
    ("gain", "is_dead_end"), [(1.37, False), (1.28, False), (1.27, True), (1.0, True)], ids=str
)
def test_what_falls_short_within_the_noise_of_a_measurement_is_no_dead_end(
    gain: float, is_dead_end: bool
) -> None:
    draft = Draft(rationale="Try it.", pattern=TRIED, statements=["hot"])
    trial = Trial(correct=True, gain=gain, wanted=1.5, solved=False, summary="It is no cleaner.")
    state: Any = {"drafts": [{"draft": draft, "trial": trial}], "task_id": "t", "features": "red silk"}
    assert [each.approach for each in fell_short(state)] == [TRIED] * is_dead_end


def test_what_fell_short_may_be_enough_for_a_smaller_gain() -> None:
    (wide, _) = _pair()
    ends = [DeprecatedApproach(approach="INDEX (filter)", condition=_features(wide), gained=1.8)]
    lesson = Lesson(claim="Tried.", deprecated_approaches=ends, rules=[Rule(condition="x", pattern="KEEP")])
    made = untested_card(lesson, CHANGE, 0.5)
    shown = {wanted: as_shown(made, _world(wide, wanted)).in_vain[0].applies for wanted in (1.5, 2.0)}
    assert shown == {1.5: False, 2.0: True}


async def test_a_card_that_failed_is_left_alone_there_and_used_elsewhere(edge_ledger: Ledger) -> None:
    cards, (wide, narrow) = KnowledgeCards(edge_ledger, "t"), _pair()
    rule = Rule(condition="range filter; grouping", pattern="COVERING INDEX (filter, group)")
    lesson = Lesson(claim="Cover the group.", rules=[rule], scope="sql_tuning")
    known = await cards.create(lesson, TaskOutcome(task="t0", success=True, confidence=0.9), change=CHANGE)
    for number in range(3):  # so that it goes on being shown after a failure
        served = TaskOutcome(task=f"s{number}", success=True, confidence=0.9, features=_features(narrow))
        await cards.reinforce(known.card.id, served, change=CHANGE)
    graph = compound_learning.compile(store=LedgerStore(edge_ledger))

    async def solve(task: TuningTask, task_id: str, wanted: float) -> Any:
        roles: Any = dict.fromkeys(("researcher", "devils_advocate", "leader", "monitor"), "rules")
        where = LearningContext(
            **roles, team="t", environment="sql_tuning", schema_name=task.schema_name, rows=ROWS
        )
        given: Any = {"task": task.description, "query": task.query, "task_id": task_id}
        return await graph.ainvoke(given | {"wanted_speed_up": wanted}, context=where)

    first = await solve(wide, "first", 1e6)
    assert first["packet"]["sources"]["cards"] == [known.card.id] and not first["packet"]["solved"]
    (end,) = (await cards.records.get(known.card.id)).deprecated_approaches
    assert (end.approach, end.failed_in) == (rule.pattern, ["first"]) and MOST in end.condition
    tried = {*(await cards.tasks.all())[-1].mistakes}
    for number in range(4):
        again = await solve(wide, f"again {number}", 1e6)
        retrieved = (await cards.tasks.all())[-1].retrieved
        assert known.card.id in retrieved and again["packet"]["sources"]["cards"] == []
        if again["iterations"] == 1:
            break
        new = {*(await cards.tasks.all())[-1].mistakes}
        assert new and not new & tried, "a task tries what none before it tried"
        tried |= new
    assert again["iterations"] == 1, "where nothing is left to try, it ends at once"
    elsewhere = await solve(narrow, "narrow", 1.2)
    assert elsewhere["packet"]["sources"]["cards"] == [known.card.id] and elsewhere["packet"]["solved"]


def _world(task: TuningTask, wanted: float = 2.0) -> Any:
    given = {"query": task.query, "schema_name": task.schema_name, "wanted_speed_up": wanted, "rows": ROWS}
    return find_world("sql_tuning").open(Task(given=given))


def _features(task: TuningTask) -> str:
    return "; ".join(_world(task).features)


def _pair() -> tuple[TuningTask, TuningTask]:
    """Return two tasks that differ by how many rows their filter keeps alone."""
    drawn = [(each, _features(each)) for each in tasks(1, 64) if each.family in ("decoy", "time_range")]
    wide = next(each for each in drawn if MOST in each[1] and "one range" in each[1])
    narrow = next(each for each, features in drawn if f"{features}; {MOST}" == wide[1])
    return wide[0], narrow
