"""A world of one file, in which a model carries out what a card says in words."""

from pathlib import Path

import pytest

WORLD = """
name: greetings
may_change: ["a.txt"]
check: grep -q hello a.txt && echo score=$(wc -c < a.txt)
metrics: [{name: score, better: lower, wanted: 2}]
runs: 1
tasks:
  - {id: one, task: Shorten it., files: {a.txt: "hello, hello, hello, hello"}}
  - {id: two, task: Shorten it too., files: {a.txt: "hello, my dear and wide world"}}
  - {id: three, task: Shorten that., files: {a.txt: "hello to all of you out there"}}
"""


@pytest.fixture
def world(tmp_path: Path) -> str:
    """Name the file of the world."""
    place = tmp_path / "greetings.yaml"
    place.write_text(WORLD)
    return str(place)
