"""What importing the graphs loads, seen in one process that imports more and more of them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_house import ROOT, modules, room

GRAPHS = [name for name in modules() if room(name) == "graphs"]
LEARNING = {f"mneme.graphs.{name}" for name in ("compound_learning", "consolidation", "dispute_resolution")}
CHATBOT = ["mneme.graphs.chatbot"]
NOT_LEARNING = [name for name in GRAPHS if name.count(".") == 2 and name not in LEARNING]


@pytest.fixture(scope="module")
def loaded() -> list[list[str]]:
    """Return the modules that are there after the chatbot's graph, those that learn nothing, and all."""
    lines = ["import json, sys"]
    for names in (CHATBOT, NOT_LEARNING, GRAPHS):
        lines += [f"import {', '.join(names)}", "print(json.dumps([*sys.modules]))"]
    command = [sys.executable, "-c", "\n".join(lines)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_chatbot_loads_its_own_stores_and_what_it_recalls_and_shares(loaded: list[list[str]]) -> None:
    assert {room(name.partition(".")[2]) for name in loaded[0] if name.startswith("mneme.stores.")} == {
        "access",
        "answers",
        "audit",
        "database",
        "discussions",
        "ledger",
        "pools",
        "provenance",
        "recall",
        "shelf",
        "users",
        "write_gate",
    }


def test_only_learning_loads_knowledge_cards(loaded: list[list[str]]) -> None:
    assert len(NOT_LEARNING) > len(LEARNING) and {*GRAPHS} > LEARNING
    assert [name for name in loaded[1] if name.startswith("mneme.stores.cards")] == []
    assert "mneme.stores.cards" in loaded[2]


def test_graphs_load_no_rules_and_no_pytorch(loaded: list[list[str]]) -> None:
    assert {*GRAPHS} <= {*loaded[2]}
    wrong = [
        name for name in loaded[2] if name.startswith("mneme.rules") or name.partition(".")[0] == "torch"
    ]
    assert wrong == []


OFTEN = [
    ["add", "I live in Oslo."],
    ["memories", "list"],
    ["memories", "search", "Oslo"],
    ["recall", "Oslo"],
    ["cards", "list"],
    ["disputes", "list"],
    ["share", "pool", "list"],
    ["share", "agent", "list"],
    ["household", "list"],
    ["threads", "list"],
]
ONE_AFTER_THE_OTHER = """
import sys
from mneme.cli.main import main
for words in {commands}:
    sys.argv = ["mneme", *words]
    try:
        main()
    except SystemExit as end:
        assert not end.code, words
    names = {{name.partition(".")[0] for name in sys.modules}}
    wrong = names & {{"langgraph", "langchain_core", "langsmith", "langchain_ollama", "torch"}}
    assert "mneme" in names and not wrong, (words, wrong)
"""


def test_what_is_typed_often_loads_no_framework(tmp_path: Path) -> None:
    """LangGraph, LangChain and LangSmith take as long to load as all the rest of such a command."""
    home = {**os.environ, "MNEME_HOME": str(tmp_path), "MNEME_EMBEDDER": "bundled"}
    run = [sys.executable, "-c", ONE_AFTER_THE_OTHER.format(commands=OFTEN)]
    done = subprocess.run(run, env=home, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0 and "I live in Oslo." in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("command", "collects"), [(["memories", "list"], False), (["prompts", "list"], True)]
)
def test_only_what_may_go_on_for_long_collects_garbage(
    command: list[str], collects: bool, tmp_path: Path
) -> None:
    code = f"import gc, sys\nfrom mneme.cli.main import main\nsys.argv = {['mneme', *command]}\n"
    code += "try:\n    main()\nfinally:\n    print(gc.isenabled())"
    run, home = [sys.executable, "-c", code], {**os.environ, "MNEME_HOME": str(tmp_path)}
    done = subprocess.run(run, env=home, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.splitlines()[-1] == str(collects)


def test_a_command_starts_no_threads_of_numpy_and_takes_what_the_user_set() -> None:
    code = "import os, sys\nfrom mneme.cli.main import QUICK_START, main\nsys.argv = ['mneme', '--version']\n"
    code += "try:\n    main()\nfinally:\n    print(*(os.environ[name] for name in QUICK_START))"
    told = []
    for given in ({}, {"OPENBLAS_NUM_THREADS": "3"}):
        own = {name: each for name, each in os.environ.items() if name != "OPENBLAS_NUM_THREADS"} | given
        run = [sys.executable, "-c", code]
        done = subprocess.run(run, env=own, capture_output=True, text=True, check=True, timeout=120)
        told.append(done.stdout.splitlines()[-1])
    assert told == ["1 1", "3 1"]
