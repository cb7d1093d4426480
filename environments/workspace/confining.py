"""Run a command on a copy with limits on processor time, memory, output, processes and network.

`confined_by` lists the limits: those of the kernel (`ulimit`), and on Linux, where the kernel allows it,
namespaces of its own without a network, in which every process dies with the first. Its files are a copy, but
it runs as the user who runs Mneme, and can read what that user can read.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil
from pydantic import BaseModel, Field

USAGE_POLL_SECONDS = 0.1
"""Seconds between two looks at what a command's processes have used."""
IDLE_SECONDS = 10.0
"""Seconds without a busy process after which a command counts as hanging."""
# A user namespace needs no root; --kill-child: with unshare its first process ends, and with that all others.
NAMESPACES = ("unshare", "--user", "--map-current-user", "--net", "--pid", "--fork", "--kill-child")
# For each process, in seconds, KiB and blocks of 512 bytes; -v is left out where the system has none.
ULIMITS = "ulimit -c 0; ulimit -t {cpu}; ulimit -v {memory} 2>/dev/null; ulimit -f {file}; "
ENVIRONMENT_VARIABLES = ("PATH", "VIRTUAL_ENV", "SYSTEMROOT", "LD_LIBRARY_PATH", "PYTHONHOME")
"""Environment variables that a command inherits: no key, no password."""


class Bounds(BaseModel, frozen=True, extra="forbid"):
    """Limits of a command."""

    seconds: float = Field(60.0, gt=0, le=3600, description="Processor seconds of all its processes.")
    memory_mb: int = Field(2048, ge=64, description="Address space of each process.")
    file_mb: int = Field(256, ge=1, description="Of each file that it writes, its output too.")
    processes: int = Field(64, ge=1, description="At the same time.")
    output: int = Field(8_000_000, ge=1_000, description="Bytes of its output that are read.")


@dataclass(frozen=True)
class Ran:
    """The result of a command: its exit, usage and output; `stopped` names the exceeded limit."""

    exit: int
    seconds: float
    output: str
    stopped: str = ""
    is_late: bool = False

    @property
    def is_good(self) -> bool:
        return self.exit == 0 and not self.stopped

    @property
    def is_broken(self) -> bool:
        """Return whether the command could not be completed, for another reason than time."""
        return bool(self.stopped) and not self.is_late


@cache
def namespaces() -> tuple[str, ...]:
    """Return the command prefix for separate namespaces; empty if the kernel refuses them."""
    if sys.platform != "linux" or shutil.which(NAMESPACES[0]) is None:
        return ()
    tried = subprocess.run([*NAMESPACES, "true"], capture_output=True, check=False, timeout=10)  # noqa: S603
    return NAMESPACES if tried.returncode == 0 else ()


def confined_by() -> str:
    """Return the limits that apply to a command on this machine, and those that do not."""
    network = "no network" if namespaces() else "the network is NOT shut off (no user namespaces here)"
    return f"a copy of the files, limits on processor time, memory, output and processes; {network}"


def run(command: str, folder: Path, bounds: Bounds) -> Ran:
    """Run a shell command in a folder. Whatever the command does, it ends, and so do its children."""
    with (
        tempfile.TemporaryDirectory(prefix="mneme-run-") as scratch,
        Path(scratch, "output").open("wb") as printed,
    ):
        # Two seconds more than is watched for: the kernel counts one process, and stops what polling misses.
        cpu, memory, file = int(bounds.seconds) + 2, bounds.memory_mb * 1024, bounds.file_mb * 2048
        limits = ULIMITS.format(cpu=cpu, memory=memory, file=file)
        started = subprocess.Popen(  # noqa: S603
            [*namespaces(), "/bin/sh", "-c", f"{limits}{command}"],
            cwd=folder,
            env=_environment(Path(scratch)),
            stdin=subprocess.DEVNULL,
            stdout=printed,  # a file: its size is limited, and no child can keep a pipe open for ever
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a process group, which one signal ends
        )
        stopped, seconds = _watched(started, bounds)
        return _ended(started, stopped, seconds, Path(printed.name), bounds)


def _environment(scratch: Path) -> dict[str, str]:
    """Return the environment variables of a command: the path of programs, and a temporary home."""
    home = scratch / "home"
    home.mkdir()
    found = {name: os.environ[name] for name in ENVIRONMENT_VARIABLES if name in os.environ}
    beside = str(Path(sys.executable).parent)
    found["PATH"] = os.pathsep.join([found.get("PATH", os.defpath), beside])
    # No caches that make a second run faster; sets in one order, so that outputs can be compared.
    python = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}
    return found | {"HOME": str(home), "TMPDIR": str(home), "LANG": "C.UTF-8", **python}


def _watched(started: "subprocess.Popen[bytes]", bounds: Bounds) -> tuple[str, float]:
    """Wait until a command ends or exceeds a limit; return the exceeded limit and the processor seconds."""
    used, idle, stopped = 0.0, 0.0, ""
    pause = 0.002  # growing, so that a short command is not waited for, nor a long one disturbed
    while True:
        found, status, usage = os.wait4(started.pid, os.WNOHANG)  # unlike Popen.wait, it tells the usage
        if found:
            started.returncode = os.waitstatus_to_exitcode(status)
            # The kernel's figure lacks children that nobody waited for; the polled one, the last moments.
            return stopped, max(used, usage.ru_utime + usage.ru_stime)
        if not stopped and pause >= USAGE_POLL_SECONDS:
            used, processes, is_busy = _used(started.pid)
            idle = 0.0 if is_busy else idle + USAGE_POLL_SECONDS
            if used > bounds.seconds:
                stopped = f"It took more than {bounds.seconds:g} s of processor time and was stopped."
            elif idle > max(IDLE_SECONDS, bounds.seconds):
                stopped = f"It did nothing for {idle:.0f} s, and was stopped."
            elif processes > bounds.processes:
                stopped = f"It ran {processes} processes at once; {bounds.processes} are allowed."
            if stopped:
                _kill(started.pid)
        time.sleep(pause)
        pause = min(USAGE_POLL_SECONDS, pause * 1.5)


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _ended(
    started: "subprocess.Popen[bytes]", stopped: str, seconds: float, printed: Path, bounds: Bounds
) -> Ran:
    _kill(started.pid)  # what it left behind in its group
    with printed.open("rb") as read:
        output = read.read(bounds.output + 1)  # one byte more tells that there is more
    if not stopped and len(output) > bounds.output:
        stopped = f"It printed more than {bounds.output} bytes."
    is_late = "processor time" in stopped or started.returncode == -signal.SIGXCPU
    text = output[: bounds.output].decode("utf-8", errors="replace")
    return Ran(exit=started.returncode, seconds=seconds, output=text, stopped=stopped, is_late=is_late)


def _used(root: int) -> tuple[float, int, bool]:
    """Return the processor seconds of a process and all below it, how many they are, and if one is busy."""
    seconds, count, is_busy = 0.0, 0, False
    with contextlib.suppress(psutil.Error):
        first = psutil.Process(root)
        for each in [first, *first.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                seconds += sum(each.cpu_times()[:4])  # its own, and those of its children that have ended
                count += 1
                # What waits for the disk is busy, too: on a loaded machine it may take seconds.
                is_busy |= each.status() in (psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP)
    return seconds, count, is_busy
