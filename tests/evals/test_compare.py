"""Memories on the same work: courses that need one, one budget for all, a user's own memory."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from mneme.core.errors import BadInput
from mneme.evals.compare.code import CODE, cost
from mneme.evals.compare.evaluation import Options, run, table_of, tasks_of
from mneme.evals.compare.finding import COURSE_FAMILIES, NAMED_MEMORIES, memory_named
from mneme.evals.compare.memory import UNKNOWN, Event, Family, Memory, Outcome, Score, Situation
from mneme.evals.compare.playing import Costs, fitted
from mneme.evals.compare.public import of_folder
from mneme.evals.compare.rivals import RIVAL_MEMORIES
from mneme.evals.compare.work import REQUIRED_GAIN
from mneme.evals.measuring import holm
from mneme.models.asking.counting import tokens
from tests.doubles.ollama_streams import Answer
from tests.doubles.stand_in import Json
from tests.evals.runs import ollama

SIZE = 24


class Perfect:
    """A reader who has every line that was ever said."""

    def __init__(self) -> None:
        self.lines = list[str]()

    def play(self, family: Family, seed: int, size: int = SIZE, *, forgets: bool = False) -> list[Score]:
        course, scores, said = family.make(seed, size), list[Score](), ""
        step = next(course)
        while True:
            if isinstance(step, Event):
                self.lines.append(step.line)
            elif isinstance(step, Score):
                scores.append(step)
            said = step.by_rules([] if forgets else self.lines) if isinstance(step, Situation) else ""
            try:
                step = course.send(said)
            except StopIteration:
                return scores


def done(scores: Sequence[Score]) -> float:
    return sum(each.outcome.success for each in scores) / len(scores)


@pytest.mark.parametrize("family", COURSE_FAMILIES.values(), ids=[*COURSE_FAMILIES])
def test_only_who_remembers_does_the_work(family: Family) -> None:
    """A reader of all that was said is far ahead of one who has nothing; the same seed is the same course."""
    known = [each for seed in range(4) for each in Perfect().play(family, seed)]
    unknown = [each for seed in range(4) for each in Perfect().play(family, seed, forgets=True)]
    assert done(known) > done(unknown) + 0.15
    first, again, other = Perfect(), Perfect(), Perfect()
    assert first.play(family, 1) == again.play(family, 1) and first.lines == again.lines
    assert other.play(family, 2) and other.lines != first.lines


def test_a_conversation_asks_about_now_then_and_what_was_to_be_forgotten() -> None:
    asked, right = list[str](), set[bool]()
    for seed in range(6):
        course = COURSE_FAMILIES["conversation"].make(seed, SIZE)
        step, said = next(course), ""
        while True:
            if isinstance(step, Situation):
                asked.append(step.text)
            right |= {step.outcome.success} if isinstance(step, Score) else set()
            try:
                step, said = course.send(said), UNKNOWN
            except StopIteration:
                break
    assert any(" did " in each or " was " in each for each in asked), "then"
    assert right == {True, False}, "sometimes it is right that nothing is known"


def test_the_lesson_of_one_piece_of_code_misleads_where_the_data_is_not_alike() -> None:
    functions, pipelines = (CODE.families[each].shapes for each in ("functions", "pipelines"))
    for shape in (functions["a look-up in a list"], pipelines["a search of the whole file for each key"]):
        numbers, lists = (partial(cost, shape, data, "seed") for data in shape.data)
        table, halving = shape.remedies
        assert numbers() / numbers(table) > REQUIRED_GAIN and numbers() / numbers(halving) > REQUIRED_GAIN
        assert lists() / lists(table) == 0 and lists() / lists(halving) > REQUIRED_GAIN
        assert numbers("two threads") == numbers(), "it fits no shape"


async def test_every_memory_plays_within_the_budget_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    options = Options(work=["home"], courses=1, tasks=4, tokens=[60], jobs=1, out=tmp_path)
    report = await run(options)
    assert {row["memory"] for row in report.rows} == {*NAMED_MEMORIES}
    assert all(row["shown"] <= 60 * row["recalls"] for row in report.rows)
    assert all(len(row["tasks"]) == 4 for row in report.rows)
    by_name = {row["memory"]: row for row in report.rows}
    assert by_name["none"]["shown"] == by_name["none"]["questions"] == 0
    assert by_name["memory_agent"]["questions"] > 0 and by_name["raw_events"]["questions"] == 0
    assert by_name["memory_agent"]["prompt_tokens"] > by_name["memory_agent"]["reply_tokens"] > 0
    assert (await run(options)).rows == report.rows, "nothing is played twice"
    page = report.plots[0].read_text()
    assert "<title>Which memory for which work" in page and '"memory": "g_memory"' in page
    assert "http" not in page, "the page needs nothing from elsewhere"


async def test_a_memory_of_a_users_own_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2] / "examples")
    options = Options(
        memories=["compare_memory:RareWords"], work=["conversation"], seeds=2, size=8, out=tmp_path
    )
    report = await run(options)
    done = {row["memory"]: sum(each["success"] for each in row["tasks"]) for row in report.rows}
    assert {row["memory"] for row in report.rows} == {"compare_memory:RareWords", "none"}
    assert done["compare_memory:RareWords"] > done["none"]


async def test_a_users_memory_that_was_changed_is_played_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the others are not."""
    own = tmp_path / "own_memory.py"
    own.write_text("from mneme.evals.compare.memory import Memory\n\n\nclass Mine(Memory):\n    pass\n")
    monkeypatch.chdir(tmp_path)
    given = {"memories": ["own_memory:Mine"], "work": ["home"], "seeds": 1, "size": 2, "jobs": 1}
    first = await run(Options(out=tmp_path / "runs", **given))
    own.write_text(f"{own.read_text()}\n# changed\n")
    second = await run(Options(out=tmp_path / "runs", **given))
    again = {row["memory"]: row["at"] for row in second.rows}
    before = {row["memory"]: row["at"] for row in first.rows}
    assert again["none"] == before["none"] and again["own_memory:Mine"] != before["own_memory:Mine"]


async def test_a_model_acts_by_what_is_recalled(tmp_path: Path) -> None:
    """It is shown what the memory recalls, and its numbers and words are what is done."""
    shown = list[str]()

    def act(body: Json) -> Answer:
        shown.append(str(body["messages"][-1]["content"]))
        return {"reason": "The second.", "choice": 1} if body.get("format") else "7"

    with ollama(act):
        given = {"work": ["home", "decision"], "seeds": 1, "size": 4, "agents": "ollama:llama3.1:8b"}
        report = await run(Options(memories=["whole_history"], out=tmp_path, **given))
    assert report.answered_by.startswith("ollama:llama3.1:8b")
    of_history = [each for each in shown if "counts" in each and "add up to" in each]
    assert of_history, "what was said in the meeting is before the model"
    steps = {
        row["memory"]: [each["steps"] for each in row["tasks"]]
        for row in report.rows
        if row["family"] == "home"
    }
    assert steps["whole_history"] == steps["none"], "the same choices are the same steps"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("chess", "There is no memory 'chess'"),
        ("nowhere:Memory", "cannot be loaded"),
        ("json:dumps", "has no observe, recall, end_of_task"),
    ],
)
def test_what_is_no_memory_is_refused(name: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        memory_named(name)


async def test_work_that_there_is_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="There is no work 'chess'") as refused:
        await run(Options(work=["chess"], out=tmp_path))
    assert "conversation" in refused.value.hint


LOCOMO = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ann",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "I adopted a parrot called Kiwi."}],
        },
        "qa": [
            {
                "question": "What is Ann's parrot called?",
                "answer": "Kiwi",
                "evidence": ["D1:1"],
                "category": 4,
            }
        ],
    }
]
LONG = [
    {
        "question_id": "q1",
        "question_type": "single-session-user",
        "question": "What is the parrot called?",
        "answer": "Kiwi",
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_dates": ["2023/05/20 (Sat) 02:21"],
        "haystack_session_ids": ["s1"],
        "haystack_sessions": [[{"role": "user", "content": "My parrot is called Kiwi."}]],
        "answer_session_ids": ["s1"],
    }
]
BENCH = {
    "context": "0. Ann lives in Oslo.\n1. The parrot is Kiwi.",
    "questions": ["Who is the parrot?"],
    "answers": [["Kiwi"]],
}


def test_public_conversations_are_read_as_they_are_released(tmp_path: Path) -> None:
    (tmp_path / "locomo.json").write_text(json.dumps(LOCOMO))
    (tmp_path / "longmemeval_oracle.json").write_text(json.dumps(LONG))
    (tmp_path / "conflict_resolution.jsonl").write_text(json.dumps(BENCH) + "\n")
    families = of_folder(tmp_path)
    assert [*families] == ["conflict_resolution", "locomo", "longmemeval_oracle"]
    for family in families.values():
        assert done(Perfect().play(family, 1)) == 1, family
        assert done(Perfect().play(family, 1, forgets=True)) == 0, family
    assert families["longmemeval_oracle"].make(1, 1).__next__() == Event(
        "2023-05-20", "user", "My parrot is called Kiwi."
    )


async def test_public_conversations_are_played(tmp_path: Path) -> None:
    """A family of its own; what has no date has none."""
    (tmp_path / "conflict_resolution.jsonl").write_text(json.dumps(BENCH) + "\n")
    memories = ["memory_agent", "raw_events", "structured"]
    given = {"data": tmp_path, "work": ["conflict_resolution"], "seeds": 1, "size": 1, "jobs": 1}
    report = await run(Options(memories=memories, out=tmp_path / "runs", **given))
    done = {row["memory"]: row["tasks"][0]["success"] for row in report.rows}
    assert done == {"memory_agent": True, "raw_events": True, "structured": True, "none": False}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[", "cannot be read"),
        ("[{}]", "has none of the forms"),
        ('[{"context": 1}]', "context"),
        ("7", "none of the forms"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "other.json").write_text(text)
    with pytest.raises(BadInput, match=said):
        of_folder(tmp_path)
    with pytest.raises(BadInput, match="no file with conversations"):
        of_folder(tmp_path / "empty")


def test_gains_are_paired_and_p_values_are_corrected() -> None:
    def rows(memory: str, wins: int) -> list[dict[str, Any]]:
        costs = dict.fromkeys([*Costs.model_fields, "bytes"], 1)
        tasks = [{"success": number < wins, "steps": 1, "stale": 0} for number in range(10)]
        course = {"family": "home", "memory": memory, "budget": 9, "events": 1, **costs, "tasks": tasks}
        return [{**course, "seed": seed} for seed in range(8)]

    table = table_of(tasks_of([*rows("none", 2), *rows("good", 9)]))
    assert table.index.tolist() == ["good", "none"]
    assert table["gain"]["good"].startswith("+70 ±") and table["gain"]["none"] == "+0 ± 0"
    assert table["p"].tolist() == ["0.008", "–"]
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06})
    assert isinstance(table, pd.DataFrame)


def test_what_exceeds_the_budget_is_cut_off() -> None:
    texts = ["one two three", "four five six", "seven"]
    assert fitted(texts, tokens(texts[0]) + 1) == texts[:1]
    assert fitted(texts, 0) == []


async def test_the_base_class_remembers_nothing() -> None:
    memory = Memory(None)  # type: ignore[arg-type]
    await memory.observe(Event("2026-01-01", "Ann", "Hello."))
    await memory.end_of_task(Outcome("Greet.", True, "", "2026-01-01"))
    assert await memory.recall("Hello?", 100) == []


def test_packages_are_compared_where_they_are_installed() -> None:
    for name in ("langmem", "mem0"):
        pytest.importorskip(name)
        assert name in RIVAL_MEMORIES
