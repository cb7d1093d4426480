"""Tables of Memory Sharing by backbones."""

from typing import Any

from mneme.evals.report import Row
from mneme.evals.sharing.tables import Results, tables_of_arms

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
