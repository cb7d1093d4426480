"""`mneme connect`, and its hooks as the editors call them: their documented JSON, played to the commands."""

import json
import os
import signal
import subprocess
import time
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from mneme.client.home import OWN_SERVER, Announcement
from tests.doubles.command_line import Run, failed, run_mneme
from tests.doubles.editor import FILES, Json, command_of, played, prompt, told
from tests.doubles.own_server import OwnServer, chat, chat_server, own_server, user

Play = Callable[..., str]
LINT = "Always run make lint before committing."


@pytest.fixture
def person(tmp_path: Path) -> dict[str, str]:
    """The environment of a person with an empty home."""
    without = {name: value for name, value in os.environ.items() if not name.startswith(("CLAUDE", "CODEX"))}
    return {**without, "HOME": str(tmp_path), "MNEME_HOME": str(tmp_path / "mneme"), "MNEME_AUTO": "rules"}


@pytest.fixture
def mneme(person: dict[str, str]) -> Run:
    return lambda *words: run_mneme(words, person)


def until_known(server: OwnServer, text: str) -> None:
    """Wait until a text has been delivered and remembered."""
    end = time.monotonic() + 30
    while text not in " ".join(server.memories()):
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.parametrize("editor", ["claude-code", "codex"])
def test_what_is_said_in_one_session_is_shown_in_the_next(
    editor: str, tmp_path: Path, person: dict[str, str], mneme: Run
) -> None:
    assert mneme("connect", editor).returncode == 0
    hook = command_of(tmp_path, editor, "UserPromptSubmit")
    begins = {"session_id": "s2", "cwd": "/tmp/kite", "hook_event_name": "SessionStart", "source": "startup"}
    transcript = tmp_path / "talk.jsonl"
    words = {"role": "assistant", "content": [{"type": "text", "text": "Shall I always lint first?"}]}
    transcript.write_text(f"no json\n{json.dumps({'type': 'assistant', 'message': words})}\n")
    with own_server(tmp_path / "mneme") as server:
        assert played(hook, prompt(LINT, transcript_path=str(transcript)), person) == {}
        until_known(server, LINT)
        (outcome,) = server.get("memories")
        assert outcome["memory"]["thread"] == "editor/s1"
        assert LINT in told(played(hook, begins, person))
        asked = prompt("What do I do before a commit?", "s2")
        assert not told(played(hook, asked, person)), "the session was shown it when it began"
        of_another = told(played(hook, prompt("What do I do before a commit?", "s3"), person))
        assert f"- {LINT} [local said, " in of_another
        for nothing in ("/compact", "<task-notification>x</task-notification>", " "):
            played(hook, prompt(nothing), person)
        wrong: list[Json | str] = ["nonsense", "[]", {"hook_event_name": "Stop"}, prompt("x" * 100_000)]
        for each in wrong:
            played(hook, each, person)
        played(hook, {"session_id": "s3", "hook_event_name": "SessionEnd"}, person)
        shown = [each for each in (tmp_path / "mneme" / "sessions").iterdir() if not each.suffix]
        assert len(shown) == 2


SECRETS = "curl -u ann:hunter2 https://x.test/t0ken && TOKEN=s3cret deploy && export KEY=s3cret"
WORK: dict[str, list[Json]] = {
    "claude-code": [
        {"tool_name": "Edit", "tool_input": {"file_path": "/tmp/kite/src/wing.py", "old_string": "a"}},
        {"tool_name": "Write", "tool_input": {"file_path": "/etc/hosts", "content": "not of the project"}},
        {"tool_name": "Bash", "tool_input": {"command": "cd /tmp/kite && make test 2>&1 | tail -3"}},
        {"tool_name": "Bash", "tool_input": {"command": SECRETS}},
    ],
    "codex": [
        {
            "tool_name": "apply_patch",
            "tool_input": {
                "command": "*** Begin Patch\n*** Update File: src/wing.py\n@@\n-a\n+b\n*** End Patch"
            },
        },
        {"tool_name": "Bash", "tool_input": {"command": "make test"}},
    ],
    "cursor": [
        {"hook_event_name": "afterFileEdit", "file_path": "/tmp/kite/src/wing.py", "edits": []},
        {"hook_event_name": "afterShellExecution", "command": "make test", "output": "ok"},
    ],
}


NAMES = (
    ("SessionStart", "UserPromptSubmit", "SessionEnd"),
    ("sessionStart", "beforeSubmitPrompt", "sessionEnd"),
)
"""The events of a session, as others name them and as Cursor does."""


def event_of(editor: str, name: str, session: str, folder: str = "/tmp/kite", **more: Any) -> Json:
    """Return an event as the editor sends it."""
    if editor == "cursor":
        about: Json = {"conversation_id": session, "workspace_roots": [folder]}
    else:
        about = {"session_id": session, "cwd": folder}
    return {**about, "hook_event_name": name, **more}


@pytest.mark.parametrize("editor", FILES)
def test_what_a_session_did_is_one_memory_that_the_next_one_is_shown(
    editor: str, tmp_path: Path, person: dict[str, str], mneme: Run
) -> None:
    assert mneme("connect", editor).returncode == 0
    start, asks, ends = NAMES[editor == "cursor"]
    hook = command_of(tmp_path, editor, start)
    event = partial(event_of, editor)
    with own_server(tmp_path / "mneme") as server:
        for request in ("Make the wing wider.", "And test it."):
            played(hook, event(asks, "s1", prompt=request), person)
        for each in WORK[editor]:
            assert played(hook, event("PostToolUse", "s1") | each, person) == {}
        notes = tmp_path / "mneme" / "sessions"
        if editor == "codex":  # it never says that a session ended: one that begins an hour later does
            played(hook, event(start, "s2"), person)
            assert "Worked on" not in " ".join(server.memories())
            (file,) = notes.glob("*.done")
            os.utime(file, (0, 0))
            played(hook, event(start, "s3"), person)
        else:
            played(hook, event(ends, "s1"), person)
        until_known(server, "Worked on kite")
        (account,) = (
            each["memory"] for each in server.get("memories") if "Worked" in each["memory"]["content"]
        )
        more = ", curl, deploy" if editor == "claude-code" else ""
        assert account["kind"] == "episodic"
        assert account["content"] == (
            "Worked on kite: asked “Make the wing wider.” and 1 more; changed src/wing.py; "
            f"ran make test{more}."
        )
        assert not any(secret in " ".join(server.memories()) for secret in ("hunter2", "t0ken", "s3cret"))
        shown = json.dumps(played(hook, event(start, "s9"), person), ensure_ascii=False)
        assert "Worked on kite" in shown
        assert not list(notes.glob("*.done"))
        played(hook, event(asks, "s10", prompt="Only a question?"), person)
        played(hook, event(ends, "s10"), person)
        played(hook, event(start, "s11", "/tmp/boat"), person)
        assert " ".join(server.memories()).count("Worked on") == 1


def test_what_a_session_of_one_user_did_goes_to_no_other(
    tmp_path: Path, person: dict[str, str], mneme: Run
) -> None:
    hooks = {}
    for name, editor in (("ann", "codex"), ("bob", "claude-code")):
        assert mneme("connect", editor, "--user", name).returncode == 0
        hooks[name] = command_of(tmp_path, editor, "SessionStart")
    told = {"session_id": "s1", "cwd": "/tmp/kite", "hook_event_name": "PostToolUse", **WORK["codex"][1]}
    begins = {"session_id": "s2", "cwd": "/tmp/kite", "hook_event_name": "SessionStart"}
    with own_server(tmp_path / "mneme") as server:
        played(hooks["ann"], told, person)
        (notes,) = (tmp_path / "mneme" / "sessions").glob("*.done")
        os.utime(notes, (0, 0))
        played(hooks["bob"], begins, person)
        played(hooks["bob"], begins | {"hook_event_name": "SessionEnd"}, person)
        assert notes.is_file()
        played(hooks["ann"], begins, person)
        end = time.monotonic() + 30
        while notes.exists():
            assert time.monotonic() < end
            time.sleep(0.1)
        assert server.get("memories", user="bob") == []
        (account,) = server.get("memories", user="ann")
        assert account["memory"]["content"] == "Worked on kite: ran make test."


def test_a_fact_goes_from_the_editor_to_the_chat_to_the_console_and_is_gone(
    tmp_path: Path, person: dict[str, str], mneme: Run
) -> None:
    mneme("connect", "claude-code")
    hook = command_of(tmp_path, "claude-code", "UserPromptSubmit")
    begins = {"session_id": "s9", "cwd": "/tmp/kite", "hook_event_name": "SessionStart", "source": "startup"}
    heron, crane = "The staging server is called heron.", "The staging server is called crane."
    with chat_server() as model, own_server(tmp_path / "mneme", MNEME_UPSTREAM=model.url) as server:
        played(hook, prompt(heron), person)
        until_known(server, heron)
        chat(server, user("What is the staging server called?"))
        assert heron in model.shown()
        (known,) = server.get("memories")
        body = {"content": crane, "reason": "it moved"}  # what the console sends
        httpx.post(f"{server.url}/mneme/v1/memories/{known['key']}/update", json=body).raise_for_status()
        shown = told(played(hook, begins, person))
        assert crane in shown and heron not in shown
        httpx.post(f"{server.url}/mneme/v1/memories/{known['key']}/forget", json={}).raise_for_status()
        assert not told(played(hook, {**begins, "session_id": "s10"}, person))


def test_cursor_is_shown_memories_when_a_session_begins(
    tmp_path: Path, person: dict[str, str], mneme: Run
) -> None:
    mneme("connect", "cursor")
    base = {"conversation_id": "c1", "workspace_roots": ["/tmp/kite"]}
    with own_server(tmp_path / "mneme") as server:
        said = {**base, "hook_event_name": "beforeSubmitPrompt", "prompt": LINT, "attachments": []}
        hook = command_of(tmp_path, "cursor", "beforeSubmitPrompt")
        assert played(hook, said, person) == {"continue": True}
        until_known(server, LINT)
        begins = {**base, "conversation_id": "c2", "hook_event_name": "sessionStart"}
        hook = command_of(tmp_path, "cursor", "sessionStart")
        assert LINT in played(hook, begins, person)["additional_context"]


def test_a_session_starts_the_server_where_none_runs_and_it_ends_by_itself(
    tmp_path: Path, person: dict[str, str], mneme: Run, ended: list[int]
) -> None:
    mneme("connect", "claude-code")
    ledger = tmp_path / "mneme" / "ledger"
    ledger.mkdir(parents=True)
    gone = subprocess.Popen(["true"])
    gone.wait()
    (ledger / OWN_SERVER).write_text(Announcement(url="http://127.0.0.1:9", pid=gone.pid).model_dump_json())
    hook = command_of(tmp_path, "claude-code", "UserPromptSubmit")
    assert played(hook, prompt(LINT), person) == {}, "nobody waits for a server that was killed"
    end = time.monotonic() + 30
    while (found := announced(ledger)).pid == gone.pid or not kept(found.url):
        assert time.monotonic() < end
        time.sleep(0.1)
    ended.append(found.pid)
    listed = json.loads(mneme("memories", "list", "--json").stdout.splitlines()[0])
    assert listed["memory"]["content"] == LINT


def announced(ledger: Path) -> Announcement:
    return Announcement.model_validate_json((ledger / OWN_SERVER).read_bytes())


def kept(url: str) -> bool:
    return bool(httpx.get(f"{url}/mneme/v1/memories").json())


@pytest.fixture
def ended() -> Iterator[list[int]]:
    """Processes that are ended with the test."""
    pids = list[int]()
    yield pids
    for each in pids:
        os.kill(each, signal.SIGTERM)


@pytest.mark.parametrize("editor", FILES)
def test_what_else_stands_in_the_files_stays(editor: str, tmp_path: Path, mneme: Run) -> None:
    hooks, servers = (tmp_path / each for each in FILES[editor])
    other = {"command": "beep"} if editor == "cursor" else {"hooks": [{"type": "command", "command": "beep"}]}
    start = "sessionStart" if editor == "cursor" else "SessionStart"
    before = {"version": 1, "theme": "dark", "hooks": {start: [other]}}
    hooks.parent.mkdir(parents=True, exist_ok=True)
    hooks.write_text(json.dumps(before))
    hooks.chmod(0o640)
    text = 'model = "x"\n' if editor == "codex" else '{"mcpServers": {"other": {"command": "y"}}}'
    servers.write_text(text)
    for _ in range(2):
        assert mneme("connect", editor, "--team", "kites").returncode == 0
    written = json.loads(hooks.read_text())
    assert len(written["hooks"][start]) == 2
    assert written["theme"] == "dark"
    assert hooks.stat().st_mode & 0o777 == 0o640
    parsed = tomllib.loads(servers.read_text()) if editor == "codex" else json.loads(servers.read_text())
    server = parsed["mcp_servers" if editor == "codex" else "mcpServers"]["mneme"]
    assert server["args"][-2:] == ["--team", "kites"]
    assert "already" in mneme("connect", editor, "--team", "kites").stdout
    assert mneme("connect", editor, "--undo").returncode == 0
    assert json.loads(hooks.read_text()) == before
    assert json.loads(servers.read_text()) == json.loads(text) if editor != "codex" else True
    assert "Nothing of Mneme's" in mneme("connect", editor, "--undo").stdout


def test_a_file_that_cannot_be_read_is_left_alone(tmp_path: Path, mneme: Run) -> None:
    for editor, (hooks, servers) in FILES.items():
        for name in (hooks, servers):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text("{ = broken")
            failed(mneme("connect", editor), str(tmp_path / name), "repair")
            assert (tmp_path / name).read_text() == "{ = broken"
            (tmp_path / name).unlink()
    config = tmp_path / ".codex/config.toml"
    config.write_text('[mcp_servers.mneme]\ncommand = "mine"\n')
    failed(mneme("connect", "codex"), "already")


def test_a_name_that_no_user_or_team_can_have_is_refused(tmp_path: Path, mneme: Run) -> None:
    for option in ("--user", "--team"):
        failed(mneme("connect", "codex", option, "x" * 300), "at most 256 characters")
    assert not (tmp_path / ".codex").exists()


def test_a_project_has_files_and_a_memory_of_its_own(
    tmp_path: Path, mneme: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "kite"
    place.mkdir()
    monkeypatch.chdir(place)
    assert "remembered for kite" in mneme("connect", "claude-code", "--project").stdout
    command = json.loads((place / ".claude/settings.local.json").read_text())["hooks"]["SessionEnd"]
    assert "--user kite" in command[0]["hooks"][0]["command"]
    of_project = json.loads((tmp_path / ".claude.json").read_text())["projects"][str(place)]
    assert of_project["mcpServers"]["mneme"]["args"][3:5] == ["--user", "kite"]
    mneme("connect", "claude-code", "--project", "--undo")
    assert json.loads((tmp_path / ".claude.json").read_text()) == {}
