"""A Postgres server for tests: the one at MNEME_TEST_POSTGRES, else a throw-away one of our own.

The throw-away server is made with Debian's binaries in a temporary folder, listens on a Unix
socket there and nowhere else, and is gone with the test run.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

BINARIES = Path("/usr/lib/postgresql")


class PostgresServer:
    """A throw-away server that a test starts, kills and starts again."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self._binaries, self._folder = binaries, folder
        self.url = f"postgresql:///postgres?host={folder}&user=mneme"

    def make(self) -> None:
        _run(self._binaries / "initdb", "-D", self._data, "-A", "trust", "-U", "mneme", "-N", "-E", "UTF8")

    def start(self) -> None:
        options = f"-c listen_addresses='' -c unix_socket_directories={self._folder} -c fsync=off"
        self._control("-l", self._folder / "log", "-o", options, "-w", "-t", "60", "start")

    def kill(self) -> None:
        """End all its processes at once, as a crash does."""
        self._control("-m", "immediate", "-w", "stop")

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let none of its processes run for a while."""
        stopped = [*self._processes()]
        for process in stopped:
            os.kill(process, signal.SIGSTOP)
        yield
        for process in stopped:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)

    def _processes(self) -> Iterator[int]:
        main = int((self._data / "postmaster.pid").read_text().partition("\n")[0])
        yield main  # first: it starts no more
        for each in Path("/proc").glob("[0-9]*/stat"):
            with suppress(FileNotFoundError, ProcessLookupError):
                if int(each.read_text().rpartition(")")[2].split()[1]) == main:
                    yield int(each.parent.name)

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _control(self, *arguments: str | Path) -> None:
        _run(self._binaries / "pg_ctl", "-D", self._data, *arguments)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Give the URL of a server's maintenance database; skip, saying why, where there is none."""
    if given := os.environ.get("MNEME_TEST_POSTGRES"):
        yield given
        return
    with _throw_away_server(_newest_binaries("MNEME_TEST_POSTGRES is unset and ")) as server:
        yield server.url


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """Start a server of the test's own, which it may kill; skip, saying why, where there is none."""
    with _throw_away_server(_newest_binaries()) as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """Give the URL of a new empty database, dropped after the test."""
    name = f"mneme_{uuid4().hex}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
        yield _with_database(postgres_server, name)
        connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give an empty place for checkpoints of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "checkpoints.sqlite")
    return str(request.getfixturevalue("postgres_url"))


def _newest_binaries(besides: str = "") -> Path:
    found = [folder for folder in BINARIES.glob("*/bin") if (folder / "initdb").exists()]
    if not found:
        pytest.skip(f"no Postgres: {besides}{BINARIES} has no server")
    return max(found, key=lambda folder: float(folder.parent.name))


def _with_database(server: str, name: str) -> str:
    return re.sub(r"^(postgres(?:ql)?://[^/]*/)[^?]*", rf"\g<1>{name}", server)


@contextmanager
def _throw_away_server(binaries: Path) -> Iterator[PostgresServer]:
    # A short path: a Unix socket's name has 107 characters at most.
    root = os.environ.get("PYTEST_DEBUG_TEMPROOT", "/tmp")  # where pytest's own folders are
    folder = Path(tempfile.mkdtemp(prefix="mneme-pg-", dir=root))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres", "postgres")
        server = PostgresServer(binaries, folder)
        server.make()
        server.start()
        try:
            yield server
        finally:
            server.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(program: Path, *arguments: str | Path) -> None:
    """Run a server's program; Postgres refuses root, so root becomes the user `postgres` for it."""
    done = subprocess.run(
        [str(program), *map(str, arguments)],
        user="postgres" if os.geteuid() == 0 else None,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,  # not a pipe: the server that pg_ctl leaves behind would keep it open
        stderr=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"no Postgres: {program.name} ended with status {done.returncode}")
