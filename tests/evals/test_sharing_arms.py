"""Arms of Memory Sharing's experiment: tables by backbones, flagged items, pools that go on growing."""

import json
from pathlib import Path
from typing import Any

import pytest

from mneme.core.settings import settings
from mneme.evals.report import Row
from mneme.evals.sharing.arms import notes_on_expansion, table_flagged
from mneme.evals.sharing.expansion import expand
from mneme.evals.sharing.memory_sharing import Options, run
from mneme.evals.sharing.tables import Results, table_of_growth, tables_of_arms
from mneme.library import PAIRS
from mneme.nodes.sharing.context import SharingContext
from mneme.nodes.sharing.exchange import keep
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change
from mneme.stores.pools.memory_pool import MemoryPool, Pair

LOGIC = "unconventional_logic"


def a_row(arm: str, item: str, score: float, shots: int = 3, **more: Any) -> Row:
    where = {"seed": 1, "pools": "domain", "growth": "own", "percent": 100, "pool": LOGIC, "arm": arm}
    scores = {"bert_score": score, "bert_precision": score - 0.1, "rouge_l": score / 2}
    shown = {"own_kind": 2 / 3, "score": 40}
    return {"kind": "test", "agent": "pun", "item": item, "shots": shots, **where, **scores, **shown, **more}


def test_each_backbone_has_its_column_beside_the_papers() -> None:
    rows = [a_row("a:1", "x", 0.5), a_row("b:2", "x", 0.7), a_row("b:2", "x", 0.4, pools="single")]
    arms = {name: Results(rows, [1], name) for name in ("a:1", "b:2")}
    first, second = tables_of_arms(arms)
    three = dict(zip(first.columns, first.rows[0], strict=True))
    assert (three["three, a:1"], three["three, b:2"]) == ("0.500 ±–", "0.700 ±–")
    assert three["three, paper"] == ".70 .67 .39" and three["zero, a:1"] == "–"
    pools = dict(zip(second.columns, second.rows[0], strict=True))
    assert (pools["single, b:2"], pools["single, a:1"], pools["single, paper"]) == (
        "0.400 ±–",
        "–",
        ".70 .61 .38",
    )


def test_held_items_are_told_apart_by_both_measures() -> None:
    results = Results([a_row("", "held", 0.9), a_row("", "new", 0.5)], [1])
    (pun, _) = table_flagged({"": results}, {"held"}).rows
    assert pun == ["pun", "2", "1", "0.700", "0.500", "0.600", "0.400"]


def test_pools_that_went_on_stand_beside_those_that_did_not() -> None:
    where = {"seed": 1, "pools": "domain", "growth": "own", "pool": LOGIC, "percent": 500}
    grown = {**where, "kind": "expand", "memories": 480, "stored": 400, "rejected": 9, "why": "Spent."}
    before = {**where, "kind": "retrievers", "percent": 100, "memories": 80}
    later = {**where, "kind": "retrievers", "memories": 480}
    tests = [a_row("", "x", 0.5), a_row("", "x", 0.6) | {"percent": 500, "score": None, "own_kind": 1.0}]
    results = Results([*tests, before, grown, later], [1])
    archived, *_, asked, after = table_of_growth(results, [500]).rows
    assert archived[:6] == ["0 %", "–", "–", "–", "–", "–"]
    assert asked[:6] == ["100 %", "80 ±–", "0.667 ±–", "40.000 ±–", "0.500 ±–", "0.250 ±–"]
    assert after[:6] == ["500 memories each", "480 ±–", "1.000 ±–", "–", "0.600 ±–", "0.300 ±–"]
    (note,) = notes_on_expansion(results, 70)
    assert notes_on_expansion(results, 10)[0].startswith("Pairs were kept above 10 of 100, where the default")
    assert note.startswith(
        f"{LOGIC}, seed 1, to 500: 480 memories, 400 stored, 9 not good enough"
    ) and note.endswith("Spent.")


async def test_a_pool_goes_on_until_it_holds_so_many_or_says_why_not(
    edge_ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEME_HOME", str(tmp_path))
    settings.cache_clear()
    pool = MemoryPool(edge_ledger, "local", LOGIC)
    lines = (PAIRS / "riddle.jsonl").read_text(encoding="utf-8").splitlines()[:3]
    told = {"agent": "riddle", "domain": LOGIC, "score": 100}
    pairs = [Pair(prompt=each["question"], answer=each["answer"], **told) for each in map(json.loads, lines)]
    await keep(pool, pairs, change=Change(reason="a test", actor="test"))
    roles = {"answerer": "rules", "scorer": "rules", "grader": "rules"}
    asking = SharingContext(agent="riddle", threshold=0, **roles)
    grown = await expand(pool, 5, asking)
    assert grown["memories"] == await pool.count() >= 5 and grown["stored"] >= 2
    assert "5 were wanted" in grown["why"], "it stops there, with calls left"
    assert (await expand(pool, 4, asking))["why"] == "The pool holds as many."
    strict = await expand(pool, 200, asking.model_copy(update={"threshold": 100}))
    assert strict["stored"] == 0 and strict["why"]
    settings.cache_clear()


def chat(question: str, answer: str) -> str:
    said = (("user", question), ("assistant", answer))
    return json.dumps({"messages": [{"role": role, "content": text} for role, text in said]})


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_the_authors_arms_run_on_a_clone_of_their_layout(tmp_path: Path) -> None:
    folders = {"Logic Problem_Solving": ("LogicPool", "LogicProblem", "punsTest")}
    folders |= {"Plan Generation": ("PlanPool", "PlanProblem", "studyTest")}
    folders |= {"Literal Creation": ("LiteralPool", "Literalproblem", "limerickTest")}
    pun = [json.loads(line) for line in (PAIRS / "pun.jsonl").read_text(encoding="utf-8").splitlines()]
    for number, (folder, (pool, problem, test)) in enumerate(folders.items()):
        (tmp_path / folder).mkdir()
        for name, first, last in ((pool, 0, 3), (problem, 3, 5), (test, 2, 6)):
            own = [
                chat(f"{each['question']} {number}", f"{each['answer']} {number}") for each in pun[first:last]
            ]
            (tmp_path / folder / f"{name}.jsonl").write_text("\n".join(own), encoding="utf-8")
    options = Options(data=tmp_path, seeds=[1], agents="rules", as_authors=True, out=tmp_path / "out")
    report = await run(options)
    flagged = {row[0]: row[1:3] for row in report.tables[-1].rows}
    assert flagged["pun"] == ["4", "3"], "one of the test is new"
    settings.cache_clear()
