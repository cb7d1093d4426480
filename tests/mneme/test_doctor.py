"""What the doctor finds, against a stand-in for Ollama."""

from pathlib import Path
from typing import Any, cast

import pytest
from langsmith import utils

from mneme.cli.doctor import Finding, examine
from mneme.core.settings import settings
from tests.doubles.ollama import Model, OllamaDouble
from tests.doubles.served import served

LLAMA = Model("llama3.1:8b", context_length=131072)


@pytest.fixture(autouse=True)
def untraced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGSMITH_TRACING", "false")


async def findings() -> dict[str, Finding]:
    return {finding.what: finding async for finding in examine()}


def load(double: OllamaDouble, name: str, context: int) -> None:
    """Let the double hold a model in memory, as `/api/ps` shows it."""
    double.loaded[name] = context


async def test_models_are_listed_with_what_they_can_and_where(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    half = Model(
        "big:70b", size=40_000_000_000, size_vram=20_000_000_000, capabilities=("completion", "thinking")
    )
    with served(monkeypatch, LLAMA, half) as double:
        load(double, "big:70b", 16384)
        found = await findings()

    assert found["Ollama"].state == "ok"
    assert "tools" in found["llama3.1:8b"].detail and "131072" in found["llama3.1:8b"].detail
    assert found["auto"] == Finding(what="auto", state="ok", detail="llama3.1:8b answers")
    assert found["big:70b"].state == "warning"
    assert "50% on the GPU" in found["big:70b"].detail and "thinking" in found["big:70b"].detail
    assert found["big:70b"].fix


async def test_a_missing_model_names_the_command_that_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch, Model("other")):
        found = await findings()
    assert found["auto"].state == "warning"
    assert found["auto"].fix == "ollama pull llama3.1:8b"


async def test_a_context_beyond_the_models_own_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch, Model("llama3.1:8b", context_length=4096)):
        found = await findings()
    assert found["auto"].fix == "MNEME_NUM_CTX=4096"


async def test_a_key_that_is_missing_for_langsmith_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    monkeypatch.delenv("LANGSMITH_API_KEY", raising=False)
    monkeypatch.delenv("LANGCHAIN_API_KEY", raising=False)
    cast(Any, utils.get_env_var).cache_clear()
    found = await findings()
    monkeypatch.setenv("LANGSMITH_TRACING", "false")
    cast(Any, utils.get_env_var).cache_clear()
    assert found["LangSmith"].state == "warning"
    assert "LANGSMITH_API_KEY" in found["LangSmith"].fix


async def test_a_folder_that_is_no_ledger_keeps_the_system_from_running(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"\xff\xd8")
    monkeypatch.setenv("MNEME_LEDGER", str(tmp_path / "photos"))
    settings.cache_clear()
    found = await findings()
    assert found["ledger"].state == "failure"
    assert found["ledger"].fix


async def test_passwords_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEME_CHECKPOINTS", "postgresql://ann:secret@127.0.0.1:9/none")
    settings.cache_clear()
    found = await findings()
    assert found["checkpoints"].state == "failure"
    assert "secret" not in found["checkpoints"].detail + found["checkpoints"].fix


async def test_the_layout_on_a_qdrant_server_is_shown_and_settings_without_effect(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, _, index = location.partition("|")
    monkeypatch.setenv("MNEME_LEDGER", log)
    monkeypatch.setenv("MNEME_INDEX", index)
    settings.cache_clear()
    found = (await findings()).get("Qdrant")
    if not index:
        assert found is None, "there is nothing to lay out in a folder"
        return
    assert found and found.state == "ok" and "a write counts with 1" in found.detail
    monkeypatch.setenv("MNEME_QDRANT_REPLICAS", "3")
    settings.cache_clear()
    found = (await findings())["Qdrant"]
    assert found.state == "warning" and "MNEME_QDRANT_REPLICAS=3 has no effect" in found.detail
    assert "reembed" in found.fix


async def test_a_layout_that_cannot_be_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEME_INDEX", "http://127.0.0.1:9")
    for name, count, why in (
        ("MNEME_QDRANT_WRITES", "2", "2 replicas cannot take a write where there are 1"),
        ("MNEME_QDRANT_REPLICAS", "0", "MNEME_QDRANT_REPLICAS=0"),
    ):
        monkeypatch.setenv(name, count)
        settings.cache_clear()
        failures = [each.detail for each in (await findings()).values() if each.state == "failure"]
        assert any(why in each for each in failures)
        monkeypatch.delenv(name)


async def test_who_answers_for_auto_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, state in (("rules", "ok"), ("nobody:there", "failure")):
        monkeypatch.setenv("MNEME_AUTO", name)
        settings.cache_clear()
        found = (await findings())["auto"]
        assert found.state == state and name.partition(":")[0] in found.detail
