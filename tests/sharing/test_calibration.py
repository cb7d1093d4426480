"""The score above which pairs are kept: found on good and damaged answers, used, and void when it must be."""

import json
from pathlib import Path

import pytest

from mneme.api.pools import Pools
from mneme.core.errors import BadInput, ModelUnavailable
from mneme.library.agents.agent import AGENTS, load_agent
from mneme.library.agents.rubric import load_rubric
from mneme.nodes.sharing.calibration import anchors, best, held_out, interval, middle
from mneme.prompts.sharing.scoring import score_pair
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.pools.lessons import keep
from tests.doubles.command_line import failed, run_mneme
from tests.doubles.ollama import Json, Reply
from tests.doubles.quiet import quiet
from tests.doubles.served import point_at, served
from tests.doubles.sharing import CHANGE, MODEL, ask, of, pool_in, seeds

LOGIC = "unconventional_logic"
CRITERIA = [each for each in load_rubric(LOGIC).criteria if not each.of_question]
SHADOW = "A shadow, for it goes where you go."
OF_ANSWERS = sum(each.points for each in CRITERIA)


def graded(score: int) -> Reply:
    """Give an answer such a score, and its question nothing."""
    points = {each.name: 0 for each in load_rubric(LOGIC).criteria}
    left = round(score * OF_ANSWERS / 100)
    for each in CRITERIA:
        points[each.name] = min(each.points, left)
        left -= points[each.name]
    return Reply(json.dumps({"rationale": "So.", "points": points}))


def strict(body: Json) -> Reply:
    """Score 60 what is the shipped answer to its question, or an agent's own; 20 what is another."""
    if not of(body, score_pair):
        return Reply(SHADOW)
    asked = body["messages"][-1]["content"]
    known = [each for agent in ("puzzle", "riddle", "pun") for each in seeds(agent) if each.prompt in asked]
    return graded(60 if any(f"\n{said}\n" in asked for said in [SHADOW, *(e.answer for e in known)]) else 20)


async def test_a_calibrated_threshold_is_used_until_the_rubric_changes(
    edge_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    pools = Pools(edge_ledger, "poets")

    async def asked(**more: int) -> str:
        roles = {"answerer": MODEL, "scorer": MODEL, "shots": 0}
        return str((await ask(edge_ledger, "What follows me?", "riddle", **roles | more))["why"])

    with served(monkeypatch, brain=strict):
        assert "is not above 70." in await asked()
        found = await pools.calibrate(LOGIC, MODEL)
        assert (found.lowest, found.highest, found.threshold) == (20, 59, 40)
        assert (found.pairs, found.sensitivity, found.specificity, found.high) == (12, 1, 1, 1)
        (known,) = (await pools.rubric(LOGIC)).thresholds
        assert (known.grader, known.by, known.holds) == (MODEL, "user", True) and known.at
        assert "not above 70. " in await asked(threshold=70) + " ", "what is given wins"
        assert await asked() == f"Stored. The threshold 40, calibrated for {MODEL}, is used."
        again = load_rubric(LOGIC).model_copy(update={"title": "Jokes"})
        await pools.freeze(again)
        told = await asked()
        assert "is void, since the rubric changed" in told and f"rubric calibrate {LOGIC}" in told
        assert not (await pools.rubric(LOGIC)).thresholds[0].holds
        assert (await pools.calibrate(LOGIC, MODEL)).threshold == 40
        assert [each.holds for each in (await pools.rubric(LOGIC)).thresholds] == [True]


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (graded(55), "does not tell good answers of unconventional_logic from damaged ones: "),
        (Reply("no JSON"), "It could not be scored"),
    ],
)
async def test_a_grader_that_cannot_tell_good_from_damaged_calibrates_nothing(
    edge_ledger: Ledger, monkeypatch: pytest.MonkeyPatch, reply: Reply, says: str
) -> None:
    pools = Pools(edge_ledger, "poets")
    with served(monkeypatch, brain=lambda _: reply), pytest.raises(BadInput, match=says) as refused:
        await pools.calibrate(LOGIC, MODEL, 8)
    assert "Nothing was stored" in refused.value.hint and (await pools.rubric(LOGIC)).thresholds == []
    point_at(monkeypatch, "http://127.0.0.1:9")
    with pytest.raises(ModelUnavailable):
        await pools.calibrate(LOGIC, MODEL, 8)
    assert (await pools.rubric(LOGIC)).thresholds == []


async def test_only_what_a_person_vouched_for_is_a_good_answer(edge_ledger: Ledger) -> None:
    pools, pool = Pools(edge_ledger, "poets"), pool_in(edge_ledger, "odes")
    await pools.freeze(load_rubric(LOGIC).model_copy(update={"name": "odes"}))
    scored = [each.model_copy(update={"agent": "pun", "domain": "odes"}) for each in seeds("pun")]
    await keep(pool, scored, change=CHANGE)
    with pytest.raises(BadInput, match="odes has 0 good answers that can be damaged; 8 are needed"):
        await pools.calibrate("odes", "rules")
    for each in scored[:9]:
        await pools.rate("odes", each.key, up=True)
    assert (await pools.calibrate("odes", "rules")).pairs == 9
    with pytest.raises(BadInput, match="The domain epics has no rubric"):
        await pools.calibrate("epics", "rules")


@pytest.mark.parametrize("agent", AGENTS)
def test_every_damaged_answer_differs_and_the_same_seed_draws_the_same(agent: str) -> None:
    drawn = anchors(seeds(agent), 24, 3)
    assert len(drawn) == 24 and drawn == anchors(seeds(agent)[::-1], 24, 3) != anchors(seeds(agent), 24, 4)
    assert all(pair.answer.strip() != damaged.strip() for pair, damaged in drawn)
    ways = {
        "cut" if pair.answer.startswith(damaged) else "another's" if damaged in others else "wrong"
        for others in [{each.answer for each in seeds(agent)}]
        for pair, damaged in drawn
    }
    assert ways == {"cut", "another's", "wrong"}, load_agent(agent).name


def test_the_threshold_is_the_middle_of_the_highest_of_the_best_ranges() -> None:
    assert best([80, 90], [10, 40]) == (40, 79) and middle(40, 79) == 60
    assert best([30, 90], [10, 60]) == (60, 89), "10 to 29 parts them as well"
    assert held_out([80, 90, 85], [10, 40, 30]) == (3, 3)
    assert held_out([50, 50, 50], [50, 50, 50])[0] in {0, 3}
    low, high = interval(20, 20)
    assert 0.83 < low < 0.85 and high == pytest.approx(1)


def test_rules_calibrate_on_the_command_line(tmp_path: Path) -> None:
    environment = quiet(tmp_path / "home")
    words = ("share", "rubric", "calibrate")
    done = run_mneme((*words, "literary_creation", "--agents", "rules", "--json"), environment, "")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["grader"] == "rules" and found["sensitivity"] > 0.7 and found["specificity"] > 0.7
    shown = run_mneme(("share", "rubric", "show", "literary_creation"), environment, "")
    assert f"Kept above {found['threshold']} by rules" in shown.stdout
    grow = ("share", "grow", "--domain", "literary_creation", "--agents", "rules", "--calls", "1")
    assert run_mneme(("share", "pool", "import", "--shipped"), environment, "").returncode == 0
    grown = run_mneme(grow, environment, "")
    assert f"The threshold {found['threshold']}, calibrated for rules, is used." in " ".join(
        grown.stdout.split()
    )
    failed(run_mneme((*words, "epics", "--agents", "rules"), environment, ""), "epics has no rubric")
