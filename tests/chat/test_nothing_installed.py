"""`mneme chat` in a fresh home, without a model and without an embedder: what is said is kept."""

import json
import subprocess
import sys
from pathlib import Path

from mneme.models.embedding.absent import PACKAGES
from tests.doubles.quiet import quiet

HIDDEN = """
from importlib import util
find = util.find_spec
util.find_spec = lambda name, *more: None if name in {names!r} else find(name, *more)
"""
"""Runs when Python starts: the packaged embedders are not found."""
SAID = [
    "I work at Google",
    "I used to work at Apple",
    "My friend Bo lives at number 12",
    "My friend Ida lives at number 14",
    "I'm vegan",
    "I don't eat meat anymore",
    "I drink coffee",
    "Always run `make lint` before committing",
    "Mia (4) and Leo (7) are my kids",
    "I love jazz",
    "I like tea",
    "I hate cilantro",
    "From January we pay more",
    "I'm in Leeds until June",
    "My sister Emily lives in Oslo",
]
CORRECTION = "Actually, my sister Emily lives in Bergen"


def test_each_sentence_is_found_again_one_is_corrected_and_the_others_say_why_they_stand(
    tmp_path: Path,
) -> None:
    names = {each.modules[0] for each in PACKAGES.values()}
    (tmp_path / "sitecustomize.py").write_text(HIDDEN.format(names=names))
    home = quiet(tmp_path / "home", PYTHONPATH=str(tmp_path), PIP_NO_INDEX="1")

    def mneme(*words: str, stdin: str = "") -> tuple[str, str]:
        command = [sys.executable, "-m", "mneme", *words]
        done = subprocess.run(command, env=home, input=stdin, capture_output=True, text=True, check=True)
        return done.stdout, done.stderr

    shown, complaints = mneme("chat", stdin="\n".join(["thanks!", *SAID, CORRECTION]))
    assert complaints.count("Install it: mneme embedder install") == 1
    assert "may contradict: I work at Google." in shown
    assert "may contradict: I'm vegan." in shown
    listed = [json.loads(each) for each in mneme("memories", "list", "--json")[0].splitlines()]
    kept = [each["memory"]["content"] for each in listed]
    assert kept[:-1] == [f"{each}." for each in SAID[:-1]]
    assert "Bergen" in kept[-1] and "Oslo" not in kept[-1]
    assert {each["memory"]["read_by"] for each in listed} == {"rules"}
    history, _ = mneme("memories", "history", listed[-1]["key"])
    assert "Oslo" in history and "An explicit correction" in history
    found, _ = mneme("memories", "search", "When is Leo seven?", "--json")
    assert "Leo (7)" in json.loads(found.splitlines()[0])["memory"]["content"]
    flagged, _ = mneme("memories", "review")
    assert flagged.count("It may contradict") == 4, "both sides of two links"
