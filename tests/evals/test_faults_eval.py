"""The evaluation of faults: how an attempt is judged, and how outcomes are counted."""

import asyncio
from pathlib import Path
from subprocess import CompletedProcess

from mneme.evals.reliability.faults import OUTCOMES, Kept, Ran, Step, judged, known, report
from mneme.evals.report import Journal
from mneme.stores.ledger.ledger import open_ledger
from mneme.stores.ledger.records import Change
from tests.doubles.embedding import WordEmbedder

BEFORE, AFTER = Kept({"1": "a"}, ["tea"], []), Kept({"1": "a", "2": "b"}, ["coffee", "tea"], [])
STEP = Step("remember", [], Path(), BEFORE, AFTER, 10)


def outcome(code: int = 1, said: str = "mneme: full", now: Kept = AFTER, again: int = 0) -> str:
    return judged(STEP, Ran(code, said, 10, "write"), now, CompletedProcess([], again, "", "no"))[0]


def test_attempts_are_judged() -> None:
    assert [outcome(0), outcome(), outcome(-9)] == ["done all the same", "clear error", "killed"]
    for said in ("Traceback (most recent call last)", "thread panicked at", "mneme: Unexpected KeyError"):
        assert outcome(said=said) == "unclear error"
    assert outcome(now=Kept({"2": "b"}, AFTER.contents, [])) == "lost"
    assert outcome(now=AFTER._replace(problems=["damaged"])) == "lost"
    assert [outcome(now=BEFORE), outcome(again=1)] == ["not again", "not again"]


async def test_what_a_home_holds(tmp_path: Path, embedder: WordEmbedder) -> None:
    assert known(tmp_path) == Kept({}, [], [])
    ledger = await open_ledger(str(tmp_path / "ledger"), embedder)
    change = Change(reason="said so", actor="agent")
    for text in ("tea", "coffee"):
        await ledger.insert(("users", "ann", "memories"), {"content": text}, text=text, change=change)
    await ledger.close()
    found = await asyncio.to_thread(known, tmp_path)
    assert (len(found.versions), found.contents, found.problems) == (2, ["coffee", "tea"], [])


def test_outcomes_are_counted(tmp_path: Path) -> None:
    rows = [
        {"case": each, "fault": "killed", "call": "sync", "outcome": each, "why": "", "problems": []}
        for each in OUTCOMES
    ]
    made = report(rows, {"remember": 10}, Journal(tmp_path / "raw", []))
    assert made.summary["outcomes"] == dict.fromkeys(OUTCOMES, 1)
    assert len(made.tables[1].rows) == 3
