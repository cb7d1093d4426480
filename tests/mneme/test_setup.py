"""`mneme setup`: what it finds on a machine, what it proposes, and what it does once and no more."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from mneme.cli import setup as setting_up
from mneme.cli.setup import setup
from mneme.client.measured import Fitness, keep_measured
from mneme.core.errors import MnemeError
from mneme.core.settings import settings
from mneme.models.ollama.catalogue import Facts, Server
from mneme.models.ollama.catalogue import survey as real_survey
from tests.doubles.command_line import failed, run_mneme
from tests.doubles.ollama import Model
from tests.doubles.quiet import quiet
from tests.doubles.served import served

SMALL, LARGE = "llama3.2:3b", "qwen2.5:32b"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's empty home, in which settings are kept, on a machine without a GPU."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MNEME_SETTINGS", str(tmp_path / "config" / "settings.env"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "MNEME_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(setting_up, "_amd_memory", lambda: 0.0)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    smi(tmp_path, "exit 9")
    return tmp_path


def smi(home: Path, script: str) -> None:
    """Let `nvidia-smi` say so."""
    program = home / "bin" / "nvidia-smi"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The models that were tested, which is done elsewhere."""
    names = list[str]()

    async def check(name: str) -> None:
        names.append(name)
        keep_measured(f"ollama:{name}", "", {"chat: chatbot": Fitness(fit=True, on="2026-11-27")})

    monkeypatch.setattr(setting_up, "_check", check)
    return names


@pytest.mark.parametrize("columns", [40, 80])
def test_what_is_said_is_broken_between_words(tmp_path: Path, columns: int) -> None:
    settings = {"MNEME_SETTINGS": str(tmp_path / "none"), "COLUMNS": str(columns)}
    told = run_mneme(("setup", "--dry-run"), quiet(tmp_path, **settings)).stdout
    explained = told[told.index("No Ollama answers") : told.index("The embedder")]
    assert all(len(line) <= columns for line in explained.splitlines())
    assert {"another", "provider:", "MNEME_AUTO=openai:NAME.", "discussions"} <= set(explained.split())


async def test_a_model_that_fits_is_pulled_chosen_and_tested_once(
    machine: Path, monkeypatch: pytest.MonkeyPatch, checked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (machine / ".codex").mkdir()
    smi(machine, "echo 24576; echo 12288")
    with served(monkeypatch, Model(SMALL)) as ollama:
        await setup(dry_run=True)
        told = capsys.readouterr().out
        assert "36 GB for models, on 2 NVIDIA GPUs" in told
        assert f"Would: pull {LARGE}" in told
        assert not (machine / "config").exists() and not checked
        ollama.models[LARGE] = Model(LARGE)
        smi(machine, "exit 9")
        pulls = [each.path for each in ollama.requests].count("/api/pull")
        await setup(model=SMALL, yes=True)
        assert [each.path for each in ollama.requests].count("/api/pull") == pulls, "it is there"
        kept = machine / "config" / "settings.env"
        assert kept.read_text() == f"MNEME_MODEL={SMALL}\n"
        assert kept.stat().st_mode & 0o777 == 0o600
        assert settings().model == SMALL
        assert checked == [SMALL]
        assert (machine / ".codex" / "hooks.json").is_file()
        kept.write_text(f"# mine\nMNEME_RETRIES=2\n{kept.read_text()}")
        capsys.readouterr()
        await setup(yes=True)
        told = capsys.readouterr().out
        assert f"{SMALL} is there, chosen and tested." in told and "connect" not in told
        assert kept.read_text() == f"# mine\nMNEME_RETRIES=2\nMNEME_MODEL={SMALL}\n"
        monkeypatch.setenv("MNEME_MODEL", "other")
        settings.cache_clear()
        assert settings().model == "other", "the environment goes before"


async def test_a_pull_tells_its_progress_or_why_not(
    machine: Path, monkeypatch: pytest.MonkeyPatch, checked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with served(monkeypatch, Model("other")) as ollama:
        await setup(model="llama3.9:1b", dry_run=True)
        assert "pull llama3.9:1b into Ollama, if its library has a model" in capsys.readouterr().out
        with pytest.raises(MnemeError, match=r"could not pull llama3\.9:1b"):
            await setup(model="llama3.9:1b", yes=True)
        assert not (machine / "config").exists(), "what is not there is not chosen"
        shown = dict(ollama.models)
        ollama.models[SMALL] = Model(SMALL)
        monkeypatch.setattr(setting_up, "survey", hidden(shown))
        await setup(model=SMALL, yes=True)
        assert f"{SMALL} is in Ollama." in capsys.readouterr().out


def hidden(models: dict[str, Model]) -> Any:
    """Return a survey of Ollama as it was before a pull."""

    async def survey(url: str) -> Any:
        found = await real_survey(url)
        return found.model_copy(update={"models": [each for each in found.models if each.name in models]})

    return survey


async def test_without_ollama_it_says_what_works_and_how_to_get_one(
    machine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MNEME_OLLAMA_URL", "http://127.0.0.1:9")
    settings.cache_clear()
    await setup(yes=True)
    told = capsys.readouterr().out
    await setup(model="nosuch:1b", dry_run=True)
    assert "has nosuch:1b is seen once it runs: it is not chosen" in capsys.readouterr().out
    assert "no GPU found" in told and "https://ollama.com/download" in told and "rules remember" in told
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    await setup(yes=True)
    assert "ollama serve" in " ".join(capsys.readouterr().out.split())


def test_what_fits_is_recommended_and_what_was_measured_fit_goes_first(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = Server(url="", version="1", models=[Facts(name="tested")], loaded=[])
    known = {80.0: "llama3.3:70b", 24.0: "qwen2.5:14b", 8.0: "llama3.1:8b", 5.0: SMALL, 2.0: ""}
    for memory, name in known.items():
        assert setting_up._recommended(there, memory, "on 1 NVIDIA GPU") == name
    assert setting_up._recommended(there, 64.0, setting_up.PROCESSOR) == SMALL
    keep_measured("ollama:tested", "", {"chat: chatbot": Fitness(fit=True, on="2026-11-27")})
    assert setting_up._recommended(there, 80.0, "on 1 NVIDIA GPU") == "tested"
    keep_measured("ollama:tested", "", {"chat: memory_agent": Fitness(fit=False, on="2026-11-27")})
    assert setting_up._recommended(there, 8.0, "on 1 NVIDIA GPU") == "llama3.1:8b"


def test_an_amd_gpu_is_found_by_the_kernel_s_files(tmp_path: Path) -> None:
    device = tmp_path / "card0" / "device"
    device.mkdir(parents=True)
    (device / "mem_info_vram_total").write_text(f"{16 * 1024**3}\n")
    assert setting_up._amd_memory(tmp_path) == 16


def test_where_nobody_can_answer_nothing_is_done(machine: Path) -> None:
    failed(run_mneme(("setup",), dict(os.environ)), "--yes", "--dry-run")
