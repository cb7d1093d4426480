"""Copies of a workspace: a template for each state of it, and a copy of that for each run."""

import atexit
import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from mneme.core.errors import BadInput
from mneme.environments.workspace.confining import Bounds, run
from mneme.environments.workspace.description import Held

IGNORED_NAMES = frozenset(
    ".git .hg .mypy_cache .pytest_cache .tox .venv __pycache__ node_modules venv".split()  # noqa: SIM905
)
MAX_TEMPLATE_FILES = 5_000
MAX_TOTAL_BYTES = 200 * 2**20
MAX_FILE_BYTES = 200_000
"""Maximum bytes of a file that is read as text."""
_making = threading.Lock()


class Template:
    """A workspace as it was when it was read, with what its setup made."""

    def __init__(self, key: str, folder: Path) -> None:
        self.key, self.folder = key, folder

    @contextmanager
    def copy(self) -> Iterator[Path]:
        """Yield a copy in its own folder, which is deleted at the end."""
        # Errors of cleaning up are ignored: a process that is being killed may still write.
        with tempfile.TemporaryDirectory(prefix="mneme-work-", ignore_cleanup_errors=True) as place:
            target = Path(place) / "work"
            shutil.copytree(self.folder, target)
            yield target

    def names(self) -> list[str]:
        """Return the paths of all files."""
        files = sorted(self.folder.rglob("*"))
        return [file.relative_to(self.folder).as_posix() for file in files if file.is_file()]

    def texts(self) -> dict[str, str]:
        """Return the text files by path, without large and binary files."""
        found = {}
        for path in self.names():
            file = self.folder / path
            if file.stat().st_size <= MAX_FILE_BYTES:
                with suppress(UnicodeDecodeError):
                    found[path] = file.read_bytes().decode("utf-8")
        return {path: text for path, text in found.items() if "\0" not in text}  # binary, though it decodes


def template_of(workspace: str, files: Mapping[str, str], held: Held, snapshot: str = "") -> Template:
    """Return the template of a folder, or of files given as texts. Raises BadInput.

    If this process has the `snapshot`, an earlier template's key, the folder is not read again: edits while a
    task is being solved do not change its baseline.
    """
    # A key has letters and digits alone: whatever else a checkpoint says is no path.
    if snapshot.isalnum() and (_folder() / snapshot).is_dir():
        return Template(snapshot, _folder() / snapshot)
    setup = held.setup
    # By sizes and times of change, so that a step of a task does not read all files again.
    state = _state(Path(workspace)) if workspace else repr(sorted(files.items()))
    key = hashlib.sha256(f"{workspace}\n{state}\n{setup}".encode()).hexdigest()[:16]
    with _making:
        target = _folder() / key
        if not target.exists():
            _make(target, workspace, files, setup, held.bounds)
    return Template(key, target)


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="mneme-worlds-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _state(workspace: Path) -> str:
    """Return the content of a folder as names, sizes and times of change."""
    found = [(str(file), (stat := file.stat()).st_mtime_ns, stat.st_size) for file in _plain_files(workspace)]
    if len(found) > MAX_TEMPLATE_FILES or sum(size for _, _, size in found) > MAX_TOTAL_BYTES:
        raise BadInput(
            f"{workspace} has more than {MAX_TEMPLATE_FILES} files, "
            f"or more than {MAX_TOTAL_BYTES // 2**20} MB.",
            "Name a smaller folder with --workspace.",
        )
    return repr(found)


def _plain_files(workspace: Path) -> Iterator[Path]:
    """Yield the files of a folder: no link is followed, since it could lead anywhere."""
    if not workspace.is_dir():
        raise BadInput(f"There is no folder {workspace}.", "Name the folder of the files with --workspace.")
    for root, folders, files in os.walk(workspace):
        folders[:] = sorted({*folders} - IGNORED_NAMES)
        for file in (Path(root, name) for name in sorted({*files} - IGNORED_NAMES)):
            if file.is_file() and not file.is_symlink():
                yield file


def _make(target: Path, workspace: str, files: Mapping[str, str], setup: str, bounds: Bounds) -> None:
    making = target.with_name(f"{target.name}.making")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir()
    for file in _plain_files(Path(workspace)) if workspace else ():
        place = making / file.relative_to(workspace)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, place)
    for path, text in files.items():
        (making / path).parent.mkdir(parents=True, exist_ok=True)
        (making / path).write_text(text, encoding="utf-8")
    if setup and not (ran := run(setup, making, bounds)).is_good:
        raise BadInput(f"The setup failed: {ran.stopped or ran.output[-500:]}", f"It is: {setup}")
    making.rename(target)  # last: what a kill has left half made is never taken for a template
