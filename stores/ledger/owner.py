"""Which process has an embedded ledger open, as far as others are told."""

import os
import re
from pathlib import Path

from mneme.core.errors import LedgerInUse

OWNER = "mneme.owner"
PROCESSES = Path("/proc")
OURS = ("mneme", "langgraph")
NAME = re.compile(r"[\w.-]{1,40}")


def note_owner(folder: Path) -> None:
    """Write down that this process has the ledger in a folder open."""
    (folder / OWNER).write_text(str(os.getpid()))


def owner_of(folder: Path) -> int | None:
    """Return the process that has the ledger open; None where it has just started, or is just gone."""
    try:
        return int((folder / OWNER).read_text())
    except (OSError, ValueError):
        return None


def in_use(folder: Path) -> LedgerInUse:
    """Return the refusal of a ledger that another process has open."""
    return LedgerInUse(
        f"Another process{named(owner_of(folder))} has the ledger at {folder} open.",
        "Wait longer (`mneme --wait 120 …`, or MNEME_WAIT=120), or end that process; or start "
        "`langgraph dev`, which the command line can share; or let all use a Qdrant server: set "
        "MNEME_LEDGER to its URL.",
    )


def named(pid: int | None) -> str:
    """Name a process, as ` (pid 12, mneme chat)`; without /proc by its number alone.

    What was given to the program is left out: it may be private. Whether it is stopped is told.
    """
    if pid is None:
        return ""
    try:
        words = (PROCESSES / str(pid) / "cmdline").read_text(errors="replace").split("\0")
        state = (PROCESSES / str(pid) / "stat").read_text(errors="replace").rpartition(") ")[2][:1]
    except OSError:
        return f" (pid {pid})"
    told = [f"pid {pid}", _program(words), "stopped" if state in "Tt" else ""]
    return f" ({', '.join(filter(None, told))})"


def _program(words: list[str]) -> str:
    """Return the name of the program that a command line runs, and of our own the command."""
    names = [Path(word).name for word in words if word and not word.startswith("-")]
    if len(names) > 1 and names[0].startswith("python") and NAME.fullmatch(names[1]):
        names = names[1:]
    known = names[:2] if names[:1] and names[0] in OURS else names[:1]
    return " ".join(name for name in known if NAME.fullmatch(name) and not name.isdigit())
