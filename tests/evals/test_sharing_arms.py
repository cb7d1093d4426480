"""Arms of Memory Sharing's experiment: tables by backbones, and flagged items."""

import json
from pathlib import Path
from typing import Any

import pytest

from mneme.core.settings import settings
from mneme.evals.report import Row
from mneme.evals.sharing.arms import table_flagged
from mneme.evals.sharing.memory_sharing import Options, run
from mneme.evals.sharing.tables import Results, tables_of_arms
from mneme.library import PAIRS

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
