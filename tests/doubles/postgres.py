"""A Postgres server for tests: the one at MNEME_TEST_POSTGRES, else a throw-away one of our own.

The throw-away server is made with Debian's binaries in a temporary folder, listens on a Unix
socket there and nowhere else, and is gone with the test run.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

BINARIES = Path("/usr/lib/postgresql")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Give the URL of a server's maintenance database; skip, saying why, where there is none."""
    if given := os.environ.get("MNEME_TEST_POSTGRES"):
        yield given
        return
    binaries = _newest_binaries()
    if binaries is None:
        pytest.skip(f"no Postgres: MNEME_TEST_POSTGRES is unset and {BINARIES} has no server")
    with _throw_away_server(binaries) as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """Give the URL of a new empty database, dropped after the test."""
    name = f"mneme_{uuid4().hex}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
        yield _with_database(postgres_server, name)
        connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())


@pytest.fixture(params=["sqlite", "postgres"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give an empty place for checkpoints of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "checkpoints.sqlite")
    return str(request.getfixturevalue("postgres_url"))


def _newest_binaries() -> Path | None:
    found = [folder for folder in BINARIES.glob("*/bin") if (folder / "initdb").exists()]
    return max(found, key=lambda folder: float(folder.parent.name), default=None)


def _with_database(server: str, name: str) -> str:
    return re.sub(r"^(postgres(?:ql)?://[^/]*/)[^?]*", rf"\g<1>{name}", server)


@contextmanager
def _throw_away_server(binaries: Path) -> Iterator[str]:
    # A short path: a Unix socket's name has 107 characters at most.
    folder = Path(tempfile.mkdtemp(prefix="mneme-pg-", dir="/tmp"))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres", "postgres")
        _run(binaries / "initdb", "-D", folder / "data", "-A", "trust", "-U", "mneme", "-N", "-E", "UTF8")
        _start(binaries, folder)
        try:
            yield f"postgresql:///postgres?host={folder}&user=mneme"
        finally:
            _run(binaries / "pg_ctl", "-D", folder / "data", "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _start(binaries: Path, folder: Path) -> None:
    options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
    log = folder / "log"
    _run(binaries / "pg_ctl", "-D", folder / "data", "-l", log, "-o", options, "-w", "-t", "60", "start")


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
