"""LoRA on a real, tiny Llama: it learns, goes on where it was killed, and forgets where it is pushed."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter

from mneme.core.errors import BadInput, StorageFailure
from mneme.models.ollama.creating import model_name
from mneme.models.tuning.base import Base, find_base, fingerprint
from mneme.models.tuning.judging import judge
from mneme.models.tuning.lora import ADAPTER, TRAINING_FILE, Training, open_tuned
from mneme.models.tuning.paired import not_worse
from mneme.models.tuning.pairs import Pair, Question, Recipe
from tests.doubles.tuned import Killed, killed_after

PAIRS = [
    Pair(key=f"c{n}", asked=f"How is {name} sped up?", answer=f"Lesson: {how} {name} first.")
    for n, (name, how) in enumerate(
        [("the report", "index"), ("the export", "batch"), ("the search", "cache"), ("the login", "pool")]
    )
]
RECIPE = Recipe(rank=4, epochs=6, batch=2, rate=2e-3, longest=256)


def facts(folder: Path) -> list[Question]:
    return TypeAdapter(list[Question]).validate_python(yaml.safe_load((folder / "generic.yaml").read_text()))


def test_it_learns_the_pairs_and_keeps_the_facts_and_goes_on_where_it_was_killed(
    tiny_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mneme.models.tuning.lora.SAVE_EVERY", 2)
    base, generic = Base(tiny_llama), facts(tiny_llama)
    answers = [each.answer for each in PAIRS]
    before = judge(base, PAIRS, answers, generic)
    whole = Training(base, tmp_path / "whole", RECIPE).run(PAIRS, "a")
    assert (whole.steps, len(whole.losses)) == (12, 6)
    assert whole.losses[-1] < whole.losses[0]
    assert whole.parameters < 100_000

    with monkeypatch.context() as patched:
        patched.setattr(Training, "_step", killed_after(5))
        with pytest.raises(Killed):
            Training(Base(tiny_llama), tmp_path / "killed", RECIPE).run(PAIRS, "a")
    steps: list[float] = []
    step = Training._step

    def counted(self: Training, *given: Any) -> float:
        steps.append(step(self, *given))
        return steps[-1]

    monkeypatch.setattr(Training, "_step", counted)
    told: list[dict[str, float]] = []
    resumed = Training(Base(tiny_llama), tmp_path / "killed", RECIPE).run(PAIRS, "a", told.append)
    assert len(steps) == 8, "what was saved after four steps is not trained again"
    assert resumed.losses == pytest.approx(whole.losses, abs=1e-4)
    assert resumed.tokens == whole.tokens > 0
    assert [(each["done"], each["of"]) for each in told] == [(n, 12) for n in (6, 8, 10, 12)]
    assert told[-1]["loss"] < told[0]["loss"]

    tuned = Base(tiny_llama)
    open_tuned(tuned, tmp_path / "killed")
    after = judge(tuned, PAIRS, answers, generic)
    assert after.loss < before.loss
    assert after.accuracy("without") >= before.accuracy("without")
    assert before.accuracy("generic") == 1.0, "the tiny model knows its facts"
    assert not_worse(before.generic, after.generic, 0.1).not_worse


def test_slow_steps_are_saved_before_ten_are_done(
    tiny_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mneme.models.tuning.lora.MAX_UNSAVED_SECONDS", 0.0)
    told: list[dict[str, float]] = []
    recipe = Recipe(rank=2, epochs=1, batch=2)
    Training(Base(tiny_llama), tmp_path, recipe).run(PAIRS, "a", told.append)
    assert [each["done"] for each in told] == [1, 2]


def test_a_training_on_other_pairs_or_another_base_begins_anew(tiny_llama: Path, tmp_path: Path) -> None:
    short = RECIPE.model_copy(update={"epochs": 1})
    first = Training(Base(tiny_llama), tmp_path, short).run(PAIRS, "a")
    again = Training(Base(tiny_llama), tmp_path, short).run(PAIRS, "a")
    assert again.seconds == pytest.approx(first.seconds, abs=0.5), "nothing is left to be trained"
    other = Training(Base(tiny_llama), tmp_path, short).run(PAIRS[:2], "a")
    assert (other.pairs, other.steps) == (2, 1)
    (tmp_path / TRAINING_FILE).write_bytes(b"torn")
    with pytest.raises(StorageFailure, match="cannot be read"):
        Training(Base(tiny_llama), tmp_path, short).run(PAIRS, "a")
    with pytest.raises(BadInput, match="nothing to train on"):
        Training(Base(tiny_llama), tmp_path, short).run([])


def test_an_adapter_that_is_pushed_too_hard_forgets_and_the_test_says_so(
    tiny_llama: Path, tmp_path: Path
) -> None:
    base, generic = Base(tiny_llama), facts(tiny_llama)
    before = judge(base, [], [], generic)
    Training(base, tmp_path, RECIPE.model_copy(update={"rate": 1.0})).run(PAIRS)
    assert not not_worse(before.generic, judge(base, [], [], generic).generic, 0.1).not_worse


def test_nothing_but_safetensors_is_opened(tiny_llama: Path, tmp_path: Path) -> None:
    assert find_base(str(tiny_llama)) == tiny_llama
    pickled = tmp_path / "pickled"
    pickled.mkdir()
    shutil.copy(tiny_llama / "config.json", pickled)
    (pickled / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    for named in (str(pickled), str(tmp_path / "absent.gguf"), "someone/some-model"):
        with pytest.raises(BadInput, match="is no base model"):
            find_base(named)
    unsafe = tmp_path / "adapted"
    (unsafe / ADAPTER).mkdir(parents=True)
    (unsafe / ADAPTER / "adapter_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(StorageFailure, match="has no adapter"):
        open_tuned(Base(tiny_llama), unsafe)
    mark = fingerprint(tiny_llama)
    copied = shutil.copytree(tiny_llama, tmp_path / "copied")
    assert fingerprint(copied) == mark
    (copied / "config.json").write_text("{}")
    assert fingerprint(copied) != mark


def test_not_worse_has_to_be_shown() -> None:
    """Expected: hand-counted sign flips. Without any difference, n equal sums have p = 2**-n."""
    assert not_worse([1.0] * 10, [1.0] * 10, 0.1).p == pytest.approx(2**-10, abs=5e-4)
    assert not not_worse([1.0] * 3, [1.0] * 3, 0.1).not_worse, "three questions show nothing"
    assert not not_worse([], [], 0.1).not_worse
    assert not_worse([1.0] * 60, [1.0] * 57 + [0.0] * 3, 0.1).not_worse
    assert not not_worse([1.0] * 60, [1.0] * 53 + [0.0] * 7, 0.1).not_worse
    assert not_worse([0.0] * 60, [1.0] * 60, 0.1).not_worse


def test_a_team_s_model_has_a_name_that_ollama_takes() -> None:
    assert model_name("analysts", "v3") == "mneme-analysts:v3"
    assert model_name("Ada/Red Team", "v1").startswith("mneme-ada-red-team-")
    assert model_name("Ada/Red Team", "v1") != model_name("ada/red team", "v1")
