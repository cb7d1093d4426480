"""Changes that a solution may make in a copy of a workspace: only to named text files inside it."""

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from mneme.environments.worlds import Solution

MAX_FILE_CHARS = 200_000
"""Characters of a changed file."""
MAX_CHANGED_FILES = 20
PROTECTED = (
    *("test*", "*_test.*", "*tests/*", "conftest.py", "*/conftest.py", "*/test*", ".*", "*/.*"),
    *("*.toml", "*.cfg", "*.ini", "Makefile", "*.lock", "sitecustomize.py", "usercustomize.py", "bench*"),
)
"""Files that may not change by default: they check the solution."""
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


class NotAllowed(Exception):  # noqa: N818  (as its message reads)
    """A solution that changes forbidden files; the message names them."""


def changed_files(solution: Solution, read: Mapping[str, str], may_change: Sequence[str]) -> dict[str, str]:
    """Return the files that a solution changes, with their new text. Raises NotAllowed.

    `read` has the text of the workspace's files, by path; `may_change` has patterns (`src/*.py`), or is
    empty: then any existing file except tests and settings.
    """
    changed = dict(solution.files)
    if solution.diff.strip():
        changed |= patched(solution.diff, {**read, **changed})
    if len(changed) > MAX_CHANGED_FILES:
        raise NotAllowed(f"{len(changed)} files are changed; {MAX_CHANGED_FILES} may be.")
    for path, text in changed.items():
        _check(path, text, read, may_change)
    return {path: text for path, text in changed.items() if read.get(path) != text}


def is_changeable(path: str, known: Mapping[str, str], may_change: Sequence[str]) -> bool:
    """Return whether a file may change."""
    if may_change:
        return any(fnmatchcase(path, pattern) for pattern in may_change)
    return path in known and not any(fnmatchcase(path, pattern) for pattern in PROTECTED)


def _check(path: str, text: str, read: Mapping[str, str], may_change: Sequence[str]) -> None:
    parts = PurePosixPath(path).parts
    # A colon would be a drive or a stream on Windows, a backslash a separator.
    if not parts or path.startswith(("/", "~")) or "\\" in path or ".." in parts or ":" in parts[0]:
        raise NotAllowed(f"{path!r} is not a path inside the workspace.")
    if str(PurePosixPath(path)) != path:  # `./a` or `a//b` would be a second name of a file
        raise NotAllowed(f"{path!r} is not written as a plain path.")
    # Half a surrogate pair, which a model's JSON may hold, cannot be written as UTF-8.
    if "\0" in text or any(0xD800 <= ord(letter) <= 0xDFFF for letter in text):
        raise NotAllowed(f"{path} is not text.")
    if len(text) > MAX_FILE_CHARS:
        raise NotAllowed(f"{path} has {len(text)} characters; {MAX_FILE_CHARS} are the most.")
    if not is_changeable(path, read, may_change):
        allowed = ", ".join(may_change) or "files that are there, but tests and settings"
        raise NotAllowed(f"{path} may not change. What may: {allowed}.")


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Write files into a copy. Raises NotAllowed if a link would lead out of it."""
    root = folder.resolve()
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        # The template follows no link, but a setup may have made one.
        if not target.parent.resolve().is_relative_to(root) or target.is_symlink() or target.is_dir():
            raise NotAllowed(f"{path!r} is not a plain file of the workspace.")
        target.write_text(text, encoding="utf-8", newline="")


def patched(diff: str, read: Mapping[str, str]) -> dict[str, str]:
    """Return the files of a unified diff with their new text. Raises NotAllowed if it does not fit."""
    found: dict[str, str] = {}
    for old, new, hunks in _files_of(diff):
        if new == "/dev/null":
            raise NotAllowed(f"{old} would be deleted; a solution deletes nothing.")
        path = new if old == "/dev/null" else old
        found[path] = _applied(path, read.get(path, ""), hunks)
    if not found:
        raise NotAllowed("The diff names no file: it needs lines with ---, +++ and @@.")
    return found


def _files_of(diff: str) -> list[tuple[str, str, list[list[str]]]]:
    """Split a diff into files with their hunks, each with its header first."""
    found: list[tuple[str, str, list[list[str]]]] = []
    lines = diff.splitlines()
    for number, line in enumerate(lines):
        after = lines[number + 1] if number + 1 < len(lines) else ""
        if line.startswith("--- ") and after.startswith("+++ "):
            found.append((_path(line), _path(after), []))
        elif line.startswith("@@") and found:
            found[-1][2].append([line])
        elif found and found[-1][2] and (not line or line[0] in " +-\\") and not line.startswith("+++ "):
            found[-1][2][-1].append(line or " ")  # models leave the space of an empty line out
    return found


def _path(line: str) -> str:
    path = line[4:].split("\t", maxsplit=1)[0].strip()
    return path[2:] if path.startswith(("a/", "b/")) else path


def _applied(path: str, text: str, hunks: Sequence[Sequence[str]]) -> str:
    """Replace the old lines of each hunk, at the stated place or the nearest that fits."""
    lines, shift = text.splitlines(keepends=True), 0
    for header, *body in hunks:
        place = _HUNK.match(header)
        old = [each[1:] for each in body if each[0] in " -"]
        new = [each[1:] for each in body if each[0] in " +"]
        start = max(0, (int(place[1]) if place else 1) - 1) + shift
        at = _found(lines, old, start)
        if at is None:
            raise NotAllowed(f"The diff does not fit {path}: {header} finds no such lines.")
        lines[at : at + len(old)] = [f"{each}\n" for each in new]
        shift += len(new) - len(old)
    return "".join(lines)


def _found(lines: Sequence[str], old: Sequence[str], start: int) -> int | None:
    if not old:
        return min(start, len(lines))
    places = range(len(lines) - len(old) + 1)
    stripped = [line.rstrip("\r\n") for line in lines]
    fitting = [place for place in places if stripped[place : place + len(old)] == list(old)]
    # Line numbers of models are often wrong, and what stands in the hunk is not.
    return min(fitting, key=lambda place: abs(place - start), default=None)
