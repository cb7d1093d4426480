"""An editor that has a memory: its hooks, called with the JSON that its documentation names."""

import json
import subprocess
import time
from pathlib import Path
from typing import Any

Json = dict[str, Any]
FILES = {
    "claude-code": (".claude/settings.json", ".claude.json"),
    "codex": (".codex/hooks.json", ".codex/config.toml"),
    "cursor": (".cursor/hooks.json", ".cursor/mcp.json"),
}


def command_of(home: Path, editor: str, event: str) -> str:
    """Return the command that an editor's file has for an event."""
    (entry,) = json.loads((home / FILES[editor][0]).read_text())["hooks"][event]
    return str(entry["hooks"][0]["command"] if "hooks" in entry else entry["command"])


def played(command: str, event: Json | str, environment: dict[str, str]) -> Json:
    """Play an event to a hook as an editor does; return what it prints. It always succeeds, and soon."""
    given = event if isinstance(event, str) else json.dumps(event)
    began = time.monotonic()
    done = subprocess.run(
        ["/bin/sh", "-c", command], input=given, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    event_name = event.get("hook_event_name", "") if isinstance(event, dict) else ""
    assert time.monotonic() - began < (10 if "tart" in event_name else 2)
    return dict(json.loads(done.stdout)) if done.stdout else {}


def prompt(text: str, session: str = "s1", **more: Any) -> Json:
    return {
        "session_id": session,
        "transcript_path": "/nowhere.jsonl",
        "cwd": "/tmp/kite",
        "hook_event_name": "UserPromptSubmit",
        "prompt": text,
        **more,
    }


def told(answer: Json) -> str:
    """Return what Claude Code or Codex adds to a session."""
    return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))
