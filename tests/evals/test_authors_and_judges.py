"""Items of the authors' layout; and who judges pairs how."""

import json
from pathlib import Path

import pytest

from mneme.core.errors import BadInput
from mneme.evals.report import open_journal
from mneme.evals.sharing import judges
from mneme.evals.sharing.authors import FOLDERS, clean, distinct, read_authors


def chat(question: str, answer: str) -> str:
    return json.dumps(
        {"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]}
    )


def clone(folder: Path) -> Path:
    """Write a clone of made-up items: 60 in a pool, in thirds, and three of a test."""
    home = folder / FOLDERS["unconventional_logic"]
    home.mkdir(parents=True)
    lines = [chat(f"Question {n} of thing {n}?", f"Because of number {n * n}.") for n in range(60)]
    (home / "LogicPool.jsonl").write_text("\n".join(lines), encoding="utf-8")
    tests = [chat("A new joke?", "It is all new."), lines[7], chat("Another?", "")]
    (home / "punsTest.jsonl").write_text("\n".join(tests), encoding="utf-8")
    return folder


def test_the_authors_items_get_their_agents_by_file_and_order(tmp_path: Path) -> None:
    made = read_authors(clone(tmp_path), "unconventional_logic")
    assert [made.archived[n].agent for n in (0, 19, 20, 39, 40, 59)] == [
        "puzzle", "puzzle", "pun", "pun", "riddle", "riddle",
    ]  # fmt: skip
    assert [item.agent for item in made.test] == ["pun", "pun"], "an item without an answer is none"
    with pytest.raises(BadInput, match="holds no items"):
        read_authors(tmp_path, "plan_generation")
    (tmp_path / FOLDERS["unconventional_logic"] / "punsTest.jsonl").write_text("[]")
    with pytest.raises(BadInput, match=r"punsTest.jsonl, line 1"):
        read_authors(tmp_path, "unconventional_logic")


def test_what_is_in_both_parts_is_left_out(tmp_path: Path) -> None:
    made = read_authors(clone(tmp_path), "unconventional_logic")
    assert [item.question for item in clean(made.test, made.archived)] == ["A new joke?"]
    twice = [made.test[0], made.test[0].model_copy(update={"id": "again"})]
    assert distinct(twice) == twice[:1]


async def test_judges_are_held_against_anchors_and_one_another(tmp_path: Path) -> None:
    options = judges.Options(scorers=["rules", "scripted:none"], pairs=1, out=tmp_path)
    rows = [
        {"judge": who, "item": "a", "version": version, "score": score}
        for who, scores in (("rules", (90, 40, 50, 10)), ("scripted:none", (80, 30, None, 20)))
        for version, score in zip(judges.VERSIONS, scores, strict=True)
    ]
    journal = open_journal(tmp_path, "judges", {})
    told = judges.report(rows, options, journal).summary
    assert told["rules"]["above"] == 1.0 and told["rules"]["failed"] == 0
    assert told["scripted:none"]["failed"] == 1
    assert told["agreement"] == {"rules and scripted:none": pytest.approx(1.0)}
