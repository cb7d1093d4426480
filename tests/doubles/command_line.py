"""The command line in processes of its own, forked from one that has imported the libraries already.

So a test meets a whole process, from its environment to its exit status, without waiting for the imports,
which take most of a short command's time. What is about starting, or is killed, runs `python -m mneme`.
"""

import asyncio
import atexit
import fcntl
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir
from multiprocessing.forkserver import ensure_running
from pathlib import Path
from typing import Any, Self

Done = subprocess.CompletedProcess[str]
Run = Callable[..., Done]
PAGE = 4096
ROOT = Path(__file__).parents[2]

_forking = multiprocessing.get_context("forkserver")
_forking.set_forkserver_preload(
    [
        "tests.doubles.uncollected",
        "anyio.from_thread",
        "h2.connection",
        "httpcore",
        "mcp.server.streamable_http_manager",
        "uvicorn",
        "langgraph_sdk",
        "mneme.graphs.chatbot",
        "mneme.graphs.compound_learning",
        "mneme.graphs.intrinsic_memory",
        "mneme.graphs.memory_sharing",
        "mneme.graphs.mita",
        "mneme.stores.checkpoints.saver",
        "onnxruntime",
        "scipy.stats",
        "tests.doubles.command_line",
        "tokenizers",
        "unified_planning.shortcuts",
        "tests.doubles.preloaded",  # the last: it freezes what is there, and collects again
    ]
)


class Running:
    """A run of `mneme` with these words, while its `with` lasts; `output` reads what it prints.

    Where it is `piped`, the output comes through a pipe that holds one page: where nobody reads, it stops.
    """

    def __init__(
        self, words: Sequence[str], environment: dict[str, str], stdin: str = "", *, piped: bool = False
    ) -> None:
        self.words, self.environment, self.stdin, self.piped = words, environment, stdin, piped

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory()
        stdin, out, self._err = (Path(self._folder.name, name) for name in ("in", "out", "err"))
        stdin.write_text(self.stdin, encoding="utf-8")
        self._err.touch()
        (os.mkfifo if self.piped else Path.touch)(out)
        given = (self.words, self.environment, Path.cwd(), (stdin, out, self._err))
        with chdir(ROOT):  # what cannot be imported from where the forking process starts is not preloaded
            ensure_running()
        self._process = _forking.Process(target=_become, args=given)
        self._process.start()
        self.output = out.open(encoding="utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.output.close()
        self._folder.cleanup()

    def kill(self) -> None:
        """End the process at once, as a power cut would."""
        self._process.kill()
        self._process.join()

    def is_alive(self) -> bool:
        """Return whether it has not ended."""
        return bool(self._process.is_alive())

    def complaints(self) -> str:
        """Return what it has printed to stderr so far."""
        return self._err.read_text(encoding="utf-8")

    def end(self) -> Done:
        """Wait for the end, and return the exit status and what was printed."""
        self._process.join()
        return Done(self.words, self._process.exitcode or 0, self.output.read(), self.complaints())


def run_mneme(words: Sequence[str], environment: dict[str, str], stdin: str = "") -> Done:
    """Run `mneme` with these words to its end."""
    with Running(words, environment, stdin) as command:
        return command.end()


def _become(words: Sequence[str], environment: dict[str, str], place: Path, files: Sequence[Path]) -> None:
    """Be the command in this process, which was forked for it."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(place)
    for number, file in enumerate(files):
        os.dup2(os.open(file, os.O_RDWR), number)
    if files[1].is_fifo():
        fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, PAGE)
    sys.argv = ["mneme", *words]
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  (it lasts as long as the process)
    from mneme.cli.main import main  # noqa: PLC0415  (the forking process has loaded it)

    try:
        main()
    finally:
        atexit._run_exitfuncs()  # a process that multiprocessing made ends without them


def failed(done: Done, *words: str) -> None:
    """Assert that a command failed in one line and a hint, naming these words."""
    assert done.returncode == 1
    assert done.stderr.splitlines()[-2].startswith("mneme: "), done.stderr
    assert done.stderr.splitlines()[-1].startswith("  "), "there is a hint"
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


async def chat(
    environment: Mapping[str, str], *words: str
) -> tuple[asyncio.subprocess.Process, asyncio.StreamWriter, asyncio.StreamReader]:
    """Start a chat; return its process, what it reads and what it prints."""
    command = (sys.executable, "-m", "mneme", "chat", *words)
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = await asyncio.create_subprocess_exec(*command, env=environment, **pipes)
    assert process.stdin is not None and process.stdout is not None
    return process, process.stdin, process.stdout
