"""Worlds of files: what holds and confines a solution, what rules can do; worlds of other packages."""

import sys
import time
from collections.abc import Mapping
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from mneme.core.errors import BadInput
from mneme.environments import worlds
from mneme.environments.workspace import world as measuring
from mneme.environments.workspace.changes import NotAllowed, changed_files, patched
from mneme.environments.workspace.confining import Bounds, Ran, namespaces, run
from mneme.environments.workspace.world import tactics
from mneme.environments.worlds import (
    WORLD_PLUGINS,
    Metric,
    Solution,
    Task,
    Trial,
    World,
    WorldKind,
    find_world,
    world_names,
)

SLOW = "def both(a, b):\n    return [x for x in a if x in b]\n"
FAST = "def both(a, b):\n    b = set(b)\n    return [x for x in a if x in b]\n"
TEST = (
    "from tool import both\nassert both([1, 2, 2], [2]) == [2, 2]\n"
    "both(list(range(3000)), list(range(3000, 6000)))\nprint('1 passed')\n"
)
CHECK = f"{sys.executable} test_tool.py"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "shop"
    place.mkdir()
    (place / "tool.py").write_text(SLOW)
    (place / "test_tool.py").write_text(TEST)
    (tmp_path / "secret.txt").write_text("outside")
    (place / "link").symlink_to(tmp_path)
    return place


def opened(folder: Path, **more: object) -> World:
    given = {"workspace": str(folder), "check": CHECK, "metrics": ["cpu_seconds:lower:2"], **more}
    return find_world("workspace").open(Task(given=given))


def test_a_folder_is_held_to_a_command_and_stays_as_it_is(folder: Path) -> None:
    world = opened(folder)
    assert "tool.py" in world.material() and world.features == ["membership test in a loop"]
    solved = world.attempt(Solution(files={"tool.py": FAST}), quick=True)
    assert solved.solved and solved.gain > 2 and "1 passed" in solved.evidence, solved
    diff = (
        "--- a/tool.py\n+++ b/tool.py\n@@ -1,2 +1,3 @@\n def both(a, b):\n"
        "+    b = set(b)\n     return [x for x in a if x in b]\n"
    )
    assert changed_files(Solution(diff=diff), {"tool.py": SLOW}, []) == {"tool.py": FAST}
    wrong = world.attempt(Solution(files={"tool.py": "def both(a, b):\n    return []\n"}), quick=True)
    assert not wrong.correct and "AssertionError" in wrong.problem
    silent = world.attempt(Solution(files={"tool.py": "import os\nos._exit(0)\n"}), quick=True)
    assert not silent.correct and "printed nothing" in silent.problem
    assert (folder / "tool.py").read_text() == SLOW
    assert sorted(each.name for each in folder.iterdir()) == ["link", "test_tool.py", "tool.py"]


@pytest.mark.parametrize(("end", "shown"), [("", "'1'"), ("\r\n", r"'1\r\n'"), ("\n\n", "2 lines")])
def test_an_output_that_differs_in_its_line_ends_alone_is_another(
    tmp_path: Path, end: str, shown: str
) -> None:
    (tmp_path / "said.yaml").write_text(
        f"name: said\nmeasure: {sys.executable} said.py\nsame_output: true\nmay_change: ['*.py']\n"
        "metrics: [{name: cpu_seconds, wanted: 2}]\n"
        "tasks: [{id: one, task: Say it., files: {said.py: 'print(1)'}}]\n"
    )
    world = find_world(str(tmp_path / "said.yaml")).open(Task(given={"case": "one"}))
    tried = world.attempt(Solution(files={"said.py": f"print(1, end={end!r})"}))
    assert not tried.correct and shown in tried.problem


@pytest.mark.parametrize("before", ["", ".", "s.", "  ..."])
def test_a_figure_may_stand_behind_what_pytest_prints(folder: Path, before: str) -> None:
    (folder / "test_tool.py").write_text(f"{TEST}print('{before}work.s-1 = 2.5e-1\\nnot work.s-1=9 s')\n")
    world = opened(folder, metrics=["work.s-1:lower:2"])
    assert world.attempt(Solution(files={"tool.py": FAST}), quick=True).metrics[0].value == 0.25


@pytest.mark.parametrize(
    ("path", "text", "why"),
    [
        ("/etc/passwd", "x", "inside"),
        ("../secret.txt", "x", "inside"),
        ("a/../../b.py", "x", "inside"),
        ("./tool.py", "x", "plain path"),
        ("link/secret.txt", "x", "may not change"),
        ("test_tool.py", "x", "may not change"),
        ("conftest.py", "x", "may not change"),
        ("tool.py", "a\0b", "not text"),
        ("tool.py", "x" * 300_000, "characters"),
    ],
)
def test_what_a_solution_may_not_change(folder: Path, path: str, text: str, why: str) -> None:
    with pytest.raises(NotAllowed, match=why):
        changed_files(Solution(files={path: text}), {"tool.py": SLOW, "test_tool.py": TEST}, [])
    with pytest.raises(NotAllowed):
        patched("--- a/tool.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", {"tool.py": "x\n"})
    with pytest.raises(NotAllowed, match="does not fit"):
        patched("--- a/tool.py\n+++ b/tool.py\n@@ -1 +1 @@\n-y\n+z\n", {"tool.py": "x\n"})


def test_a_check_that_proves_nothing_is_refused(folder: Path) -> None:
    with pytest.raises(BadInput, match="no metric to improve"):
        opened(folder, metrics=[]).material()
    with pytest.raises(BadInput, match="cannot be read"):
        opened(folder, metrics=["cpu_seconds:faster"])
    with pytest.raises(BadInput, match="no folder"):
        opened(folder / "none")
    with pytest.raises(BadInput, match="did not say work_s"):
        opened(folder, metrics=["work_s:lower:2"]).material()
    (folder / "tool.py").write_text("def both(a, b):\n    return a\n")
    mended = opened(folder, metrics=[]).attempt(Solution(files={"tool.py": SLOW}), quick=True)
    assert mended.solved and "did not before" in mended.summary


def ran(command: str, folder: Path, **bounds: float) -> Ran:
    return run(command, folder, Bounds.model_validate(bounds))


@pytest.mark.skipif(sys.platform != "linux", reason="the bounds of a whole tree of processes need /proc")
def test_a_command_is_bounded_and_killed_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEME_KEY", "secret")
    python = sys.executable
    late = ran(f"{python} -c 'while 1: pass'", tmp_path, seconds=0.5)
    assert late.is_late and "processor time" in late.stopped
    assert "MemoryError" in ran(f"{python} -c 'b\"a\" * (1 << 31)'", tmp_path, memory_mb=300).output
    assert "processes" in ran("for n in $(seq 60); do sleep 9 & done; wait", tmp_path, processes=20).stopped
    assert "printed more" in ran("yes | head -c 90000", tmp_path, output=1000).stopped
    seen = ran("env; cat /dev/stdin; (setsid sleep 87.5 &); echo $$ > pid", tmp_path)
    assert "MNEME_KEY" not in seen.output and seen.exit == 0
    deadline = time.monotonic() + 30
    while _sleeps("87.5") and namespaces() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not (_sleeps("87.5") and namespaces())


def _sleeps(how_long: str) -> bool:
    """Say whether a `sleep` of this length runs."""
    words = [each.read_bytes().split(b"\0") for each in Path("/proc").glob("[0-9]*/cmdline") if each.exists()]
    return any(found[:2] == [b"sleep", how_long.encode()] for found in words)


@pytest.mark.skipif(not namespaces(), reason="the kernel allows no namespaces here")
def test_a_command_has_no_network(tmp_path: Path) -> None:
    asked = "import socket; socket.create_connection(('127.0.0.1', 1), 2)"
    said = ran(f'{sys.executable} -c "{asked}" 2>&1; ls /proc/self/ns/net', tmp_path).output
    links = str(Path("/proc/self/ns/net").readlink())
    inside = ran("readlink /proc/self/ns/net", tmp_path).output.strip()
    assert "Error" in said and inside != links


PYTHON: Mapping[str, tuple[str, str]] = {
    "SET membership": (
        "def f(a, b):\n    n = 0\n    for x in a:\n        if x not in b:  # why\n            n += 1\n"
        "    return n\n",
        "f([1, 2, 2, 5], [2, 3])",
    ),
    "CACHE calls": (
        "def f(n):\n    return n if n < 2 else f(n - 1) + f(n - 2)\n",
        "f(12)",
    ),
}


@pytest.mark.parametrize("pattern", PYTHON)
def test_a_tactic_of_python_keeps_meaning_and_comments(pattern: str) -> None:
    source, call = PYTHON[pattern]
    python = tactics()["python"]
    changed = python.apply(pattern.lower(), {"m.py": source})["m.py"]
    before: dict[str, object] = {}
    after: dict[str, object] = {}
    exec(source, before)
    exec(changed, after)
    assert eval(call, before) == eval(call, after) and changed != source
    assert ("# why" in source) == ("# why" in changed)
    assert python.apply(pattern, {"m.py": "def f(:\n"}) == {}, "what cannot be read stays"


def test_a_tactic_that_would_not_hold_changes_nothing() -> None:
    grows = (
        "def f(a):\n    seen = []\n    for x in a:\n        if x not in seen:\n            seen.append(x)\n"
    )
    assert tactics()["python"].apply("SET membership", {"m.py": grows}) == {}
    rows = "def f(rows):\n    return [r for row in rows for r in row if r in row]\n"
    assert tactics()["python"].apply("SET membership", {"m.py": rows}) == {}


@pytest.mark.parametrize(
    ("source", "caller", "is_cached"),
    [
        ("def f(n):\n    return g(n)\n", "for n in a:\n    f(n % 2)\n", True),
        ("def f(n):\n    return g(n)\n", "f(1)\n", False),
        ("def f(n, a: list[int]):\n    return g(n, a)\n", "[f(1, a) for a in b]\n", False),
        ("def f(a):\n    return a.count(1)\n", "[f(a) for a in b]\n", False),
        ("def f(a):\n    a[0] = 1\n", "[f(a) for a in b]\n", False),
        ("def f(a, n=0):\n    return n in a or f(a, n + 1) or f(a, n + 2)\n", "", False),
        ("def f(a: str):\n    return f(a[1:]) + f(a[2:]) + sum(c in a for c in a)\n", "", True),
        ("def f():\n    return [f() for _ in f()]\n", "", False),
    ],
)
def test_calls_are_cached_where_they_repeat_with_what_can_be_hashed(
    source: str, caller: str, is_cached: bool
) -> None:
    changed = tactics()["python"].apply("CACHE calls", {"m.py": source}, [caller])
    assert changed == ({"m.py": f"import functools\n@functools.cache\n{source}"} if is_cached else {})


def test_tactics_of_the_shell_print_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"k{n * 7 % 5}\n" for n in range(40)) + "É\né\n \n")
    (tmp_path / "keys.txt").write_text("k1\nk3\n")
    pipelines = {
        "COUNT in awk": (
            "sort a.txt | cat | sort | uniq -c",
            "cat a.txt | sort | uniq -c | sort -rn | head -3",
        ),
        "DISTINCT in awk": ("cat a.txt | sort -u", "cat a.txt | sort | uniq | wc -l"),
        "GREP from file": ('while read -r k; do grep -F "$k" a.txt; done < keys.txt | sort',),
        "BYTES order": ("sort a.txt",),
    }
    for pattern, given in pipelines.items():
        for text in given:
            script = {"p.sh": f"#!/bin/sh\nexport LC_ALL=C\n{text}\n"}
            if pattern == "BYTES order":
                script = {"p.sh": f"#!/bin/sh\n{text}\n"}
            changed = tactics()["shell"].apply(pattern, script)["p.sh"]
            assert changed != script["p.sh"]
            assert ran(changed, tmp_path).output == ran(script["p.sh"], tmp_path).output, (pattern, text)


class Riddles(World):
    scope = "riddles"

    def material(self) -> str:
        return "What has keys and opens no door?"

    def wanted(self) -> str:
        return "The right word."

    def attempt(self, solution: Solution, *, quick: bool = False) -> Trial:
        right = solution.answer == "a piano"
        metrics = [Metric(name="right", value=float(right), baseline=1.0, better="higher")]
        return Trial(correct=right, solved=right, gain=float(right), metrics=metrics, summary=str(right))


class RiddleKind(WorldKind):
    name = "riddles"

    def open(self, task: Task) -> World:
        return Riddles()


def test_a_world_of_another_package(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        EntryPoint("riddles", f"{__name__}:RiddleKind", WORLD_PLUGINS),
        EntryPoint("wrong", "builtins:dict", WORLD_PLUGINS),
    ]
    monkeypatch.setattr(worlds, "entry_points", lambda group: EntryPoints(points).select(group=group))
    world = find_world("riddles").open(Task())
    assert world.attempt(Solution(answer="a piano")).solved and "riddles" in world_names()
    with pytest.raises(BadInput, match="not a WorldKind"):
        find_world("wrong")
    with pytest.raises(BadInput, match="no world 'chess'") as unknown:
        find_world("chess")
    assert "riddles" in unknown.value.hint and "sql_tuning" in unknown.value.hint


def test_a_yaml_file_describes_a_world(tmp_path: Path) -> None:
    file = tmp_path / "greetings.yaml"
    text = (
        "name: greetings\nmay_change: ['*.txt']\ncheck: grep -q hello a.txt && echo score=$(wc -c < a.txt)\n"
        "metrics: [{name: score, better: lower, wanted: 2}]\n"
        "tasks: [{id: one, task: Shorten it., files: {a.txt: 'hello, hello'}},"
        " {id: two, task: Shorten it too., files: {a.txt: 'hello, dear world'}}]\n"
    )
    file.write_text(text)
    kind = find_world(str(file))
    world = kind.open(Task(given={"case": "one"}))
    tried = world.attempt(Solution(files={"a.txt": "hello"}))
    assert tried.solved and tried.metrics[0].name == "score" and world.scope == "greetings"
    assert not world.attempt(Solution(files={"a.txt": "hello, you"})).solved
    assert [each.id for each in kind.similar(Task(id="one"), 1)] == ["two"]
    for wrong, why in (("check", "chek"), ("lower", "smaller")):
        file.write_text(text.replace(wrong, why))
        with pytest.raises(BadInput, match=r"greetings.yaml"):
            find_world(str(file))
    file.write_text("name: open_to_all\n")
    with pytest.raises(BadInput, match="needs a `check`"):
        find_world(str(file)).open(Task(given={"workspace": str(tmp_path)}))


def test_the_worlds_that_come_with_mneme_have_similar_tasks() -> None:
    for name, feature in (
        ("python_functions", "membership test in a loop"),
        ("shell_pipelines", "lines sorted to be counted"),
    ):
        cases = find_world(name).cases()
        held = next(each for each in tactics().values() if each.scope == name)
        described = [case.files for case in find_world(name)._described.tasks]  # type: ignore[attr-defined]
        alike = [files for files in described if feature in held.features_of(files)]
        assert len(cases) >= 6 and len(alike) >= 3, name


def test_a_processor_that_changes_its_pace_changes_no_gain(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paces = iter((1, 2, 2, 2, 4, 4, 0.5, 0.5, 3, 3))

    def paced(command: str, place: Path, bounds: Bounds) -> Ran:
        seconds = 0.1 if "set(b)" in (place / "tool.py").read_text() else 0.3
        return Ran(exit=0, seconds=seconds * next(paces), output="1 passed")

    monkeypatch.setattr(measuring, "run", paced)
    assert opened(folder).attempt(Solution(files={"tool.py": FAST})).gain == pytest.approx(3)


def test_a_solution_that_fails_once_has_failed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = iter([0, 0, 0, 0, 0, 1])

    def fails(command: str, place: Path, bounds: Bounds) -> Ran:
        return Ran(exit=next(ends), seconds=0.1, output="1 passed")

    monkeypatch.setattr(measuring, "run", fails)
    assert "ended with 1" in opened(folder).attempt(Solution(files={"tool.py": FAST})).problem


@pytest.mark.parametrize(
    ("text", "features"),
    [
        ("for x in a:\n    y = sorted(b)\n", {"sort in a loop"}),
        ("for x in sorted(a):\n    pass\n", set()),
        ("while a.pop(0):\n    s += f'{a}'\n", {"list shifted in a loop", "text joined in a loop"}),
        ("n = [open(f).read() for f in names]\n", {"input or output in a loop"}),
        ("n = [x for row in rows for x in row]\nimport numpy.linalg\n", {"loop in a loop", "arrays"}),
        ("n += 1\nfor x in a:\n    n += 1\n", set()),
        ("def f(n):\n    return n if n < 2 else f(n - 1) + f(n - 2)\n", {"repeated recursion"}),
        ("for x in", set()),
    ],
)
def test_features_of_python_are_read_from_its_syntax(text: str, features: set[str]) -> None:
    python = tactics()["python"]
    assert {*python.features_of({"a.py": text, "b.sh": "sort | uniq -c"})} == features
    assert features <= python.known_features


@pytest.mark.parametrize(
    ("text", "features"),
    [
        ("sort a | cut -d, -f1 > b\n", set()),
        ("while read -r x; do grep -c $x f; done < g\n", {"loop over lines", "search in a loop"}),
        (
            '# don\'t\nfor x in $(cat f); do\n n="$(grep -c "$x" f)"\n LC_ALL=C sort f > $x\ndone\n',
            {"input or output in a loop", "search in a loop", "sort in a loop"},
        ),
        ("for a in 1; do for b in 2; do echo $a 2>&1 > /dev/null; done; done; sort f", {"loop in a loop"}),
        ("until [ $n -gt 3 ]; do n=`expr $n + 1`; done", {"program in a loop"}),
        ('for x in a; do echo "$(date)"; done # wc\ncat f', {"program in a loop"}),
        ("for x in a b; do echo 'a; sort b'; done", set()),
        ('while read x; do echo "', set()),
    ],
)
def test_features_of_shell_are_read_by_its_words(text: str, features: set[str]) -> None:
    shell = tactics()["shell"]
    assert {*shell.features_of({"a.sh": text, "b.py": "for x in a:\n    sorted(x)\n"})} == features
    assert features <= shell.known_features


def test_how_much_data_there_is_tells_dead_ends_apart_and_no_lessons(folder: Path) -> None:
    few = opened(folder)
    (folder / "data.csv").write_bytes(b"a" * (2**20 + 1))
    many = opened(folder)
    assert few.features and [*many.features] == [*few.features, "a file over 1 MB"]
    assert [*many.general] == [*few.general] == [*few.features]
    under = "; ".join(many.features)
    assert (many.applies(under), few.applies(under)) == (True, False)
