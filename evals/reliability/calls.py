"""Watch every call of a process that changes a file below a folder, in all its threads, the engine's too.

A small library in C (`calls.c`) is compiled and loaded before the C library. It asks before each call, and
this side answers: go on, fail with an error of the system, or be killed. Changes to mapped memory are no
calls; they are seen in the file, where they are at once, and count as synced when `msync` has been called.
"""

import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from mneme.core.errors import MnemeError

SOURCE = Path(__file__).with_name("calls.c")
GO_ON, KILLED = 0, -1


class Call(NamedTuple):
    """A call that is about to be made; `more` is a rename's new path, or a mapped range, else empty."""

    kind: str
    path: Path
    more: str


def compiled(folder: Path) -> Path:
    """Compile the library into a folder. Raises MnemeError where that is not possible."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if sys.platform != "linux" or compiler is None:
        raise MnemeError(
            "This evaluation compiles a small C library for Linux.",
            "Run it on Linux with a C compiler (`apt-get install gcc`).",
        )
    library = folder / "calls.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True)  # noqa: S603  (our own source)
    return library


class Watched:
    """A process that waits for an answer before each call; use it as a context.

    What it printed before a call has arrived in `printed` when `calls` yields that call.
    """

    def __init__(
        self, command: Sequence[str | Path], folder: Path, library: Path, **environment: str
    ) -> None:
        asked, ask = os.pipe()
        answer, self._answer = os.pipe()
        watching = {
            "LD_PRELOAD": str(library),
            "MNEME_CALLS_FOLDER": str(folder.resolve()),
            "MNEME_CALLS_SOCKET": f"{ask},{answer}",
        }
        self.process = subprocess.Popen(  # noqa: S603  (our own program)
            command,
            env=os.environ | environment | watching,
            pass_fds=(ask, answer),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        os.close(ask)
        os.close(answer)
        self._asked = os.fdopen(asked, encoding="utf-8", errors="surrogateescape")
        self.printed = b""

    def __enter__(self) -> Self:
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        os.close(self._answer)
        self._asked.close()
        self.process.kill()
        self.process.communicate()

    def calls(self) -> Iterator[Call]:
        """Yield each call; it is made once `answer` has been called."""
        for line in self._asked:
            self._hear()
            kind, _, rest = line.rstrip("\n").partition(" ")
            path, _, more = rest.partition("\t")
            yield Call(kind, Path(path), more)
        self._hear()

    def answer(self, what: int = GO_ON) -> None:
        """Let the call be made, fail with an errno, or kill the process."""
        os.write(self._answer, struct.pack("i", what))

    def _hear(self) -> None:
        assert self.process.stdout is not None
        while heard := self.process.stdout.read():
            self.printed += heard
