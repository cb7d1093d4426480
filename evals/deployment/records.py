"""What records take: memory, disk, and time to write and to load, in this process and on a Qdrant server.

One process writes all records, a fresh one opens what is there and searches; the memory is what the second
takes for it. A server is a process of our own as well, started anew before it is searched, and its memory is
measured of that process, beyond what it takes when it is empty. Embedding is no part of any figure (Linux).
"""

import asyncio
import json
import multiprocessing
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import httpx

from mneme.core.errors import MnemeError
from mneme.evals.engine.corpus import QUERIES, load
from mneme.evals.engine.engines import OurLedger
from mneme.evals.measuring import seconds_of
from mneme.evals.report import Row

Place = Literal["embedded", "Qdrant server"]
PAGE = 4096
SEARCHES = 50
STARTING = 120.0
"""Seconds that a server may take to start."""


def keep(place: Place, corpus: Path, binary: str) -> Row:
    """Measure the records of a corpus in one place, in a folder of its own that is removed again. Blocks."""
    with TemporaryDirectory(prefix="mneme-records-") as folder:
        if place == "embedded":
            return _embedded(Path(folder) / "ledger", corpus)
        return _served(Path(folder), corpus, binary)


def _embedded(folder: Path, corpus: Path) -> Row:
    written = _alone(_write, str(folder), corpus)
    return written | {"disk": _on_disk(folder)} | _alone(_load, str(folder), corpus)


def _served(folder: Path, corpus: Path, binary: str) -> Row:
    with _qdrant(folder, binary) as (url, process):
        empty = _resident(process.pid)
        written = _alone(_write, url, corpus)
    began = time.perf_counter()
    with _qdrant(folder, binary) as (url, process):
        ready = time.perf_counter() - began
        searched = _alone(_load, url, corpus)
        memory = _resident(process.pid) - empty
    return written | {"disk": _on_disk(folder), **searched, "memory": memory, "load_s": ready}


def _alone(work: Callable[[str, Path], Row], location: str, corpus: Path) -> Row:
    """Do the work in a fresh process, so that the memory is that of nothing else."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, location, corpus).result()


def _write(location: str, corpus: Path) -> Row:
    async def work() -> Row:
        ledger = OurLedger(load(corpus), location)
        await ledger.open()
        seconds = await seconds_of(ledger.insert())
        await ledger.close()
        return {"write_s": seconds}

    return asyncio.run(work())


def _load(location: str, corpus: Path) -> Row:
    """Open what is there and search; a server's own figures take the place of some of these."""

    async def work() -> Row:
        ledger = OurLedger(load(corpus), location)
        before = _resident("self")
        seconds = await seconds_of(_open_and_ask(ledger))
        asked = await seconds_of(_ask(ledger))
        memory = _resident("self") - before
        await ledger.close()
        return {"load_s": seconds, "search_ms": 1000 * asked / SEARCHES, "memory": memory}

    return asyncio.run(work())


async def _open_and_ask(ledger: OurLedger) -> None:
    await ledger.open()
    await ledger.search(0, "user0", 10)


async def _ask(ledger: OurLedger) -> None:
    for query in range(SEARCHES):
        await ledger.search(query % QUERIES, f"user{query % 100}", 10)


def _resident(pid: int | str) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE


def _on_disk(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


@contextmanager
def _qdrant(folder: Path, binary: str) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """Run a server with its files in the folder. Raises MnemeError where it does not start."""
    with ExitStack() as free:
        ports = [free.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
        http, grpc = (each.getsockname()[1] for each in ports)
    service = {"host": "127.0.0.1", "http_port": http, "grpc_port": grpc}
    config = {"service": service, "storage": {"storage_path": str(folder / "storage")}, "log_level": "ERROR"}
    (folder / "config.yaml").write_text(json.dumps(config))
    command = [binary, "--disable-telemetry", "--config-path", "config.yaml"]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)  # noqa: S603  (the user's own)
    url = f"http://127.0.0.1:{http}"
    try:
        _wait_until_ready(url, process, folder / "log")
        yield url, process
    finally:
        process.terminate()
        process.wait()


def _wait_until_ready(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    until = time.monotonic() + STARTING
    while process.poll() is None and time.monotonic() < until:
        try:
            if httpx.get(f"{url}/readyz").is_success:
                return
        except httpx.TransportError:
            time.sleep(0.02)
    raise MnemeError(f"The Qdrant server did not start: {log.read_text()[-2000:]}")
