"""A terminal at which a command of ours runs."""

import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def at_a_terminal(
    *words: str, **environment: str
) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[str], None], Callable[[str], object]]]:
    """Run a command at a terminal; yield its process, what waits for words to be seen, and what types."""
    master, terminal = pty.openpty()
    shown = ""

    def seen(text: str) -> None:
        nonlocal shown
        while text not in (shown := shown + os.read(master, 4096).decode()):
            pass
        shown = shown.partition(text)[2]

    command = [sys.executable, "-m", "mneme", *words]
    with subprocess.Popen(
        command, env=environment, stdin=terminal, stdout=terminal, stderr=terminal
    ) as process:
        os.close(terminal)
        try:
            yield process, seen, lambda text: os.write(master, text.encode())
        finally:
            process.kill()  # if the test failed, nobody answers its question
    os.close(master)
