"""The evaluation of power cuts: what a cut leaves of files and names, and that its losses are noticed."""

import shutil
import sys
from pathlib import Path

import pytest

from mneme.evals.reliability.calls import Call, Watched, compiled
from mneme.evals.reliability.cutting import Recorder, lay_out
from mneme.evals.reliability.power import KEPT, OUTCOMES, Said, look, report
from mneme.evals.report import Journal

needs_compiler = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="no C compiler for Linux"
)


class Folder:
    """A folder whose calls are recorded as they are named here."""

    def __init__(self, root: Path) -> None:
        root.mkdir()
        self.root, self.recorder, self.cuts = root, Recorder(root), 0

    def sync(self, name: str = ".") -> None:
        self.recorder.note(Call("sync", (self.root / name).resolve(), ""), b"")

    def left(self, *, kept: bool = False) -> dict[str, str]:
        self.recorder.note(Call("none", self.root, ""), b"")
        self.cuts += 1
        place = self.root.with_name(f"cut-{self.cuts}")
        lay_out(self.recorder.states[-1], self.recorder.pages, place, lambda: kept)
        files = [path for path in place.rglob("*") if path.is_file()]
        return {str(path.relative_to(place)): path.read_text() for path in files}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "home")


class TestWhatACutLeaves:
    def test_a_file_needs_its_content_and_its_name_synced(self, folder: Folder) -> None:
        (folder.root / "a").write_text("one")
        assert (folder.left(), folder.left(kept=True)) == ({}, {"a": "one"})
        folder.sync("a")
        assert folder.left() == {}
        folder.sync()
        (folder.root / "a").write_text("two")
        assert (folder.left(), folder.left(kept=True)) == ({"a": "one"}, {"a": "two"})

    def test_a_rename_is_one_change(self, folder: Folder) -> None:
        (folder.root / "a").write_text("old")
        (folder.root / "new").write_text("new")
        for name in ("a", "new", "."):
            folder.sync(name)
        (folder.root / "new").rename(folder.root / "a")
        assert folder.left() == {"a": "old", "new": "new"}
        folder.sync()
        assert folder.left() == {"a": "new"}

    def test_what_is_removed_is_back_until_its_folder_is_synced(self, folder: Folder) -> None:
        (folder.root / "below").mkdir()
        (folder.root / "below" / "a").write_text("one")
        for name in ("below/a", "below", "."):
            folder.sync(name)
        shutil.rmtree(folder.root / "below")
        assert folder.left() == {"below/a": "one"}
        folder.sync()
        assert folder.left() == {}


PROGRAM = """
import pathlib, sys
folder = pathlib.Path(sys.argv[1])
(folder / "a").write_text("x")
print("said", flush=True)
(folder / "a").rename(folder / "b")
(folder / "c").mkdir()
"""


@needs_compiler
def test_every_call_of_a_process_is_seen_and_can_fail(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    seen = []
    with Watched([sys.executable, "-c", PROGRAM, str(home)], home, compiled(tmp_path)) as watched:
        for call in watched.calls():
            seen.append((call.kind, call.path.name, watched.printed.decode()))
            watched.answer(28 if call.path.name == "c" else 0)
        assert watched.process.wait() == 1
    assert seen == [
        ("create", "a", ""),
        ("write", "a", ""),
        ("rename", "a", "said\n"),
        ("create", "c", "said\n"),
    ]
    assert [path.name for path in home.iterdir()] == ["b"]


def test_a_loss_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mneme.stores.ledger.sealing.START", tmp_path)
    (tmp_path / "home").mkdir()
    assert look(tmp_path / "home", Said([], set(), set(), set(), set())).outcome == "all there"
    told = look(tmp_path / "home", Said([], {"thread-0"}, set(), set(), set()))
    assert (told.outcome, told.said) == ("lost", "thread thread-0")


def test_outcomes_are_counted(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "raw", [])
    for number, outcome in enumerate(OUTCOMES):
        row = {"kept": KEPT[0], "kind": "sync", "path": "a", "outcome": outcome, "said": ""}
        journal.add(f"{number}, {KEPT[0]} kept", row)
    made = report(journal, 100)
    assert made.summary == {"calls": 100, "tried": 4, "outcomes": dict.fromkeys(OUTCOMES, 1)}
    assert len(made.tables[1].rows) == 2
