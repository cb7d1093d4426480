"""Stories told to shared memories: what is counted, and that ours leaks nothing and shows nothing old."""

from pathlib import Path

import pytest

from mneme.evals.governed.evaluation import BY_HAND, BY_POLICY, OUR_MEMORY, Options, judged, run
from mneme.evals.governed.memories import Shown
from mneme.evals.governed.stories import TEAMS, Event, Fact, story


async def test_ours_leaks_nothing_shows_nothing_old_and_names_who_said_it(tmp_path: Path) -> None:
    report = await run(Options(stories=3, out=tmp_path))
    ours = report.summary[OUR_MEMORY]
    assert {ours[each] for each in ("leak", "stale", "built on it", "both", "no origin")} == {0.0}
    assert ours["missed"] <= 5
    by_hand, by_policy = report.summary[BY_HAND], report.summary[BY_POLICY]
    assert by_policy["leak"] == by_policy["stale"] == by_policy["both"] == by_policy["no origin"] == 0
    assert by_hand["leak"] == 0 and by_hand["missed"] > by_policy["missed"], "nobody shares it again"
    pool = report.summary["one vector pool"]
    assert pool["leak"] > 50 and pool["stale"] > 0 and pool["no origin"] == 100
    assert report.summary["isolated memories"]["missed"] > 0
    again = await run(Options(stories=3, out=tmp_path))
    assert again.rows == report.rows, "nothing is told twice"


async def test_mem0ai_keeps_what_is_outdated_unless_somebody_keeps_its_ids(tmp_path: Path) -> None:
    pytest.importorskip("mem0")
    report = await run(Options(stories=3, out=tmp_path))
    kept, told = report.summary["mem0ai, ids kept"], report.summary["mem0ai, told"]
    assert (kept["both"], kept["no origin"]) == (0, 0)
    assert told["both"] > 0 and told["no origin"] > 0
    assert kept["leak"] == told["leak"] == 0


def test_a_story_knows_who_may_know_what_at_every_step() -> None:
    kinds = set[str]()
    for seed in range(20):
        for event in story(seed, 30):
            fact = event.fact
            kinds.add(event.kind)
            colleague = next(
                each for each in TEAMS if each != fact.owner and TEAMS[each] == TEAMS[fact.owner]
            )
            stranger = next(each for each in TEAMS if TEAMS[each] != TEAMS[fact.owner])
            assert fact.known_to(fact.owner) == fact.now
            assert fact.known_to(colleague) in {"", fact.now}
            assert not fact.known_to(stranger) and not fact.allowed(stranger)
            assert not (fact.is_secret and fact.allowed(colleague))
    assert kinds == {"say", "share", "change", "decide", "forget", "ask"}


def test_what_goes_wrong_is_counted() -> None:
    fact = Fact("budget of the choir", "ann", is_secret=False, values=["Old", "New"], shared="New")
    fact.told, fact.plans = {"Old", "New"}, {"Plan": "Old"}
    other = Fact("venue of the choir", "cid", is_secret=True, values=["Hall"])
    shown = [Shown("It is New.", "ann said"), Shown("It is Old."), Shown("So plan Plan."), Shown("In Hall.")]
    counts = judged(Event("ask", "bob", fact, "?"), shown, [fact, other])
    wrong = ("asked", "leaked", "stale", "derived", "both", "found", "known")
    assert {name for name, count in counts.items() if count == 1} == {*wrong}
    assert judged(Event("ask", "bob", fact, "?"), [], [fact, other])["missed"]
