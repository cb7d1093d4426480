"""The names of libraries that are not public, as `stores/internals.py` uses them."""

import ast
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import id as ids

from mneme.stores.checkpoints.threads import ticks
from mneme.stores.internals import follow_id

CHANGED = "has changed: read stores/internals.py, and look whether there is a public way now."


def test_an_id_of_langgraph_follows_a_time_to_come(monkeypatch: pytest.MonkeyPatch) -> None:
    now = ticks(str(ids.uuid6()))
    monkeypatch.setattr(ids, "_last_v6_timestamp", now)  # as it is again after this test
    for later in (now + 10**12, now):
        follow_id(later)
        assert ticks(str(ids.uuid6())) > now + 10**12, f"langgraph.checkpoint.base.id {CHANGED}"


def test_the_queue_of_langgraph_dev_asks_for_runs_as_before() -> None:
    package = find_spec("langgraph_runtime_inmem")
    assert package and package.origin
    folder = Path(package.origin).parent
    said = ast.unparse(ast.parse((folder / "queue.py").read_text(encoding="utf-8")))
    assert "ops.Runs.next(wait=wait, limit=" in said, f"The loop of langgraph_runtime_inmem.queue {CHANGED}"
    runs = classes(folder / "ops.py")["Runs"]
    assert {"put", "next"} <= {*runs}, f"langgraph_runtime_inmem.ops.Runs {CHANGED}"
    assert "asyncio.sleep(0.5)" in ast.unparse(runs["next"]), f"The sleep of Runs.next {CHANGED}"


def classes(file: Path) -> dict[str, dict[str, Any]]:
    found = [
        each for each in ast.parse(file.read_text(encoding="utf-8")).body if isinstance(each, ast.ClassDef)
    ]
    return {each.name: {part.name: part for part in each.body if hasattr(part, "name")} for each in found}


def test_python_calls_a_function_before_executors_end() -> None:
    assert hasattr(threading, "_register_atexit"), f"threading._register_atexit {CHANGED}"
