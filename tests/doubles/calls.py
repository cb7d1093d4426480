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
from typing import NamedTuple, Self

import pytest

SOURCE = Path(__file__).with_name("calls.c")
GO_ON, KILLED = 0, -1


class Call(NamedTuple):
    """A call that is about to be made; `more` is a rename's new path, or a mapped range, else empty."""

    kind: str
    path: Path
    more: str = ""


def compiled(folder: Path) -> Path:
    """Compile the library into a folder; skip the test where that is not possible."""
    compiler = shutil.which("cc")
    if sys.platform != "linux" or compiler is None:
        pytest.skip("a small C library for Linux is compiled: that takes a C compiler")
    library = folder / "calls.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True)
    return library


class Watched:
    """A process that waits for an answer before each call, while its `with` lasts.

    What it printed before a call is in the file `printed` when `calls` yields that call.
    """

    def __init__(
        self, command: Sequence[str], folder: Path, library: Path, environment: dict[str, str]
    ) -> None:
        self.printed, self._complaints = (library.with_name(name) for name in ("out", "err"))
        asked, ask = os.pipe()
        answer, self._answer = os.pipe()
        watching = {
            "LD_PRELOAD": str(library),
            "MNEME_CALLS_FOLDER": str(folder.resolve()),
            "MNEME_CALLS_SOCKET": f"{ask},{answer}",
        }
        with self.printed.open("wb") as out, self._complaints.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, *command],
                env=environment | watching,
                pass_fds=(ask, answer),
                stdout=out,
                stderr=err,
            )
        os.close(ask)
        os.close(answer)
        self._asked = os.fdopen(asked, encoding="utf-8", errors="surrogateescape")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._answer)
        self._asked.close()
        self.process.kill()
        self.process.wait()

    def complaints(self) -> str:
        return self._complaints.read_text(errors="replace")

    def calls(self) -> Iterator[Call]:
        """Yield each call; it is made once `answer` has been called."""
        for line in self._asked:
            kind, _, rest = line.rstrip("\n").partition(" ")
            path, _, more = rest.partition("\t")
            yield Call(kind, Path(path), more)

    def answer(self, what: int = GO_ON) -> None:
        """Let the call be made, fail with an errno, or kill the process."""
        os.write(self._answer, struct.pack("i", what))
