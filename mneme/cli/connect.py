"""`mneme connect`: register Mneme's MCP server and hooks with an editor, by the editor's documented files.

All other content of those files stays unchanged; a file that cannot be read is never written.
"""

import json
import os
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from mneme.cli.options import User
from mneme.cli.show import console, emit, say
from mneme.core.durable import write_durably
from mneme.core.errors import BadInput, MnemeError, needs
from mneme.core.settings import settings
from mneme.integrations.hook import MODULE
from mneme.stores.ledger.addresses import place_of
from mneme.stores.ledger.records import LOCAL, check_name

Json = dict[str, Any]
Editor = Literal["claude-code", "codex", "cursor"]
SERVER_NAME = "mneme"
BLOCK_BEGIN, BLOCK_END = "# mneme: begin (`mneme connect codex --undo` removes this)\n", "# mneme: end\n"
HOOK_SECONDS = 10
"""Seconds after which an editor ends a hook."""
START_SECONDS = 60
"""Startup timeout of Codex for the tools, in seconds: its default, 10, is too short on a busy machine."""
EVENTS = ("SessionStart", "UserPromptSubmit", "PostToolUse")
EVENTS_OF_CURSOR = (
    "sessionStart", "beforeSubmitPrompt", "afterFileEdit", "afterShellExecution", "sessionEnd",
)  # fmt: skip
MATCHERS = {"PostToolUse": "Edit|MultiEdit|Write|NotebookEdit|Bash|apply_patch"}
"""The tools after which an editor calls a hook: those that change files and run programs."""


@dataclass(frozen=True)
class Files:
    """Paths of an editor's hooks and MCP servers, and the events on which it calls hooks."""

    hooks: Path
    servers: Path
    events: Sequence[str]
    project: str = ""
    """Key of the project in a file that has the servers of all projects."""


def _files(editor: Editor, project: Path | None) -> Files:
    """Return an editor's files, for one project or for all of a person's."""
    if editor == "claude-code":
        own = os.environ.get("CLAUDE_CONFIG_DIR")  # the servers' file is in this folder, else beside it
        home = Path(own) if own else Path.home() / ".claude"
        servers = home / ".claude.json" if own else Path.home() / ".claude.json"
        # the local file of a project is not committed: the hooks name paths of this machine
        hooks = project / ".claude" / "settings.local.json" if project else home / "settings.json"
        return Files(hooks, servers, (*EVENTS, "SessionEnd"), str(project or ""))
    if editor == "codex":
        home = project / ".codex" if project else Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")
        return Files(home / "hooks.json", home / "config.toml", EVENTS)
    home = (project or Path.home()) / ".cursor"
    return Files(home / "hooks.json", home / "mcp.json", EVENTS_OF_CURSOR)


def connect(
    editor: Annotated[Editor, "claude-code, codex or cursor."],
    project: Annotated[bool, "This folder alone, with a memory of its own; else every project."] = False,
    undo: Annotated[bool, "Take out what this command has put in."] = False,
    user: User = "",
    team: Annotated[str, typer.Option(envvar="MNEME_TEAM", help="Whose findings are shown, too.")] = "local",
    tokens: Annotated[int, typer.Option(min=0, help="Tokens of memories for each prompt at most.")] = 300,
) -> None:
    """Give Claude Code, Codex or Cursor a memory, which recalls for each prompt and keeps what is done."""
    here = Path.cwd() if project else None
    files = _files(editor, here)
    whose = check_name(user or (here.name if here else LOCAL), "user")
    check_name(team, "team")
    # both texts are made before the first is written: a file that cannot be read leaves the other as it was
    changed = [_hooks(files, None if undo else _hook(whose, team, tokens), editor)]
    changed.append(_servers(files, None if undo else _server(whose, team)))
    if not undo:  # a hook starts the server, an editor the tools: what they lack would be seen only there
        with needs("The hooks' server", "serve"):
            import uvicorn  # noqa: F401
        with needs("The tools", "mcp"):
            import mcp  # noqa: F401
    for path, text in changed:
        if text is not None:
            _write(path, text)
            emit({"file": str(path)})
            say(f"{'Cleaned' if undo else 'Written'}: {path}")
    if all(text is None for _, text in changed):
        console.print(f"Nothing of Mneme's is in the files of {editor}." if undo else "It is there already.")
    elif not undo:
        console.print(f"What is said in {editor} is remembered for {whose}, from its next session on.")
        if editor == "codex":
            trusted = "this folder and then the hooks" if project else "the hooks"
            console.print(f"Codex asks you once to trust {trusted}: /hooks.")
        if editor == "cursor":
            console.print("Cursor shows memories when a session begins; its hooks cannot add to a prompt.")


def is_there(editor: Editor) -> bool:
    """Return whether this person has an editor: the folder of its settings."""
    return _files(editor, None).hooks.parent.is_dir()


def is_connected(editor: Editor) -> bool:
    """Return whether an editor has our hooks, for all projects."""
    path = _files(editor, None).hooks
    return path.is_file() and MODULE in path.read_text(encoding="utf-8")


def _write(path: Path, text: str) -> None:
    """Replace a file with its permissions kept."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path = path.resolve()  # settings are often links into a repository of dotfiles: the link stays one
    write_durably(path, text, path.stat().st_mode & 0o777 if path.is_file() else 0o600)


def _hook(user: str, team: str, tokens: int) -> str:
    """Return the command of the hooks. Raises MnemeError where the ledger has no folder here."""
    folder = place_of(settings().ledger_location).folder  # in it a hook finds the server that runs
    if folder is None:
        raise MnemeError(
            "The hooks need a ledger in a folder of this machine.",
            "Connect the editor by MCP to your server instead: docs/mcp.md.",
        )
    words = [sys.executable, "-m", MODULE, "--ledger", str(folder.absolute()), "--home", _home()]
    words += ["--user", user, "--team", team, "--tokens", str(tokens)]
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


def _server(user: str, team: str) -> Json:
    words = ["-m", "mneme", "mcp", "--user", user, "--team", team]
    places = {"MNEME_HOME": _home(), "MNEME_LEDGER": settings().ledger}
    return {
        "command": sys.executable,
        "args": words,
        "env": {name: place for name, place in places.items() if place},
    }


def _home() -> str:
    return str(settings().home.absolute())


def _hooks(files: Files, command: str | None, editor: Editor) -> tuple[Path, str | None]:
    """Return the hooks' file and its next text; None: unchanged."""
    before = _read(files.hooks)
    after = json.loads(json.dumps(before))  # a copy in depth: the two are compared at the end
    hooks = after.setdefault("hooks", {})
    for event in [*hooks]:
        hooks[event] = _without_ours(hooks[event])  # an earlier version's, too: its options may differ
    if command is not None:
        call: Json = {"command": command}
        if editor != "cursor":  # Cursor's hooks stand alone, the others' in groups with a matcher
            call = {"hooks": [{"type": "command", **call, "timeout": HOOK_SECONDS}]}
        for event in files.events:
            matcher = {"matcher": MATCHERS[event]} if event in MATCHERS else {}
            hooks.setdefault(event, []).append(matcher | call)
        if editor == "cursor":
            after.setdefault("version", 1)
    after["hooks"] = {event: each for event, each in hooks.items() if each}
    return files.hooks, _next_text(before, _without_empty(after, "hooks"))


def _without_ours(entries: Any) -> Any:
    """Return hooks without those that this command has added, also inside a group."""
    if not isinstance(entries, list):
        return entries
    kept = [each for each in entries if MODULE not in str(each.get("command", ""))]
    inner = [{**each, "hooks": _without_ours(each["hooks"])} if "hooks" in each else each for each in kept]
    return [each for each in inner if each.get("hooks") != []]


def _servers(files: Files, server: Json | None) -> tuple[Path, str | None]:
    """Return the file of MCP servers and its next text; None: unchanged."""
    if files.servers.suffix == ".toml":
        return files.servers, _toml(files.servers, server)
    before = _read(files.servers)
    after = json.loads(json.dumps(before))
    place = after
    if files.project:
        place = after.setdefault("projects", {}).setdefault(files.project, {})
    servers = place.setdefault("mcpServers", {})
    servers.pop(SERVER_NAME, None)
    if server is not None:
        servers[SERVER_NAME] = {"type": "stdio", **server}
    # what the command made for its own entry goes with it, so that `--undo` leaves the file as it was
    _without_empty(place, "mcpServers")
    if files.project:
        _without_empty(after["projects"], files.project)
        _without_empty(after, "projects")
    return files.servers, _next_text(before, after)


def _toml(path: Path, server: Json | None) -> str | None:
    """Return the next text of a TOML file, in which our lines are between two comments of ours."""
    # by text, since the standard library writes no TOML, and a parsed file has lost the person's comments
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    start, _, rest = before.partition(BLOCK_BEGIN)
    after = start + rest.partition(BLOCK_END)[2]
    if server is not None:
        known = _parsed(path, after).get("mcp_servers", {})
        if SERVER_NAME in known:
            raise BadInput(
                f"{path} has an MCP server called {SERVER_NAME} already.", "Take it out, or rename it."
            )
        lines = [f"{name} = {json.dumps(server[name])}\n" for name in ("command", "args")]
        places = ", ".join(f"{name} = {json.dumps(place)}" for name, place in server["env"].items())
        lines.append(f"env = {{ {places} }}\nstartup_timeout_sec = {START_SECONDS}\n")
        ours = f"[mcp_servers.{SERVER_NAME}]\n{''.join(lines)}"
        after = f"{after.rstrip()}\n\n{BLOCK_BEGIN}{ours}{BLOCK_END}".lstrip()
        _parsed(path, after)  # a file that Codex could not read is never written
    return None if after == before else after


def _parsed(path: Path, text: str) -> Json:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path} is not TOML: {error}.", "Nothing was changed; repair it first.") from error


def _read(path: Path) -> Json:
    """Return a JSON file's object; an empty one if there is no file. Raises BadInput."""
    hint = "Nothing was changed; repair it first."
    try:
        found = json.loads(path.read_text(encoding="utf-8") or "{}") if path.is_file() else {}
    except ValueError as error:
        raise BadInput(f"{path} is not JSON: {error}.", hint) from error
    if not isinstance(found, dict):
        raise BadInput(f"{path} holds no JSON object.", hint)
    return found


def _without_empty(place: Json, name: str) -> Json:
    if not place.get(name):
        place.pop(name, None)
    return place


def _next_text(before: Json, after: Json) -> str | None:
    return None if after == before else f"{json.dumps(after, indent=2, ensure_ascii=False)}\n"
