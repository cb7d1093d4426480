"""Items of the authors' layout."""

import json
from pathlib import Path

import pytest

from mneme.core.errors import BadInput
from mneme.evals.sharing.authors import FOLDERS, clean, read_authors


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
