"""Concurrent clients, killed and paused at random: is what they saw of each record linearisable?

Several processes of several threads and tasks read, insert, update (compare-and-set), retire and forget a
few records of one ledger. One of them is killed or paused every moment; a killed one is replaced. On a server
they work at the same time. A folder has one owner: there the threads and tasks of one process work at the
same time, and the processes take turns, or find the ledger free after a kill. Afterwards the history of what
they began and what they were told is searched for an order that explains it (see `linear`).
"""

import asyncio
import json
import random
import signal
import sys
import time
from asyncio.subprocess import Process
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

from pydantic import BaseModel, Field

from mneme.evals.options import RUNS, Out, Positive
from mneme.evals.reliability.linear import NEVER, Operation, Record, impossible
from mneme.evals.report import Progress, Report, Row, open_journal, table

CLIENT = "mneme.evals.reliability.history_client"
PAUSE = 0.5


class Options(BaseModel):
    """Which ledger, how many clients, and for how long."""

    ledger: str = Field("", description="A Qdrant server's URL with an empty collection; else a new folder.")
    seconds: Positive = Field(60, description="How long the clients work.")
    processes: Positive = Field(3, description="Processes at a time.")
    threads: Positive = Field(2, description="Threads of each process.")
    tasks: Positive = Field(3, description="Tasks of each thread.")
    keys: Positive = Field(4, description="Number of records.")
    seed: int = Field(0, description="Seed of kills, pauses and operations.")
    out: Out = RUNS


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Let clients work, kill and pause them, and check the history."""
    asked = options.model_dump(mode="json", exclude={"out"})
    journal = open_journal(options.out, "history", asked, fresh=True)
    with TemporaryDirectory(prefix="mneme-history-") as room:
        location = options.ledger or str(Path(room) / "ledger")
        with (Path(room) / "told").open("w+b") as told:
            faults = await disturb(location, options, told, progress)
            told.seek(0)
            history = read(told)
    for number, operation in enumerate(history):
        journal.add(str(number), operation._asdict())
    wrong = await asyncio.to_thread(impossible, history)
    results = Counter(f"{each.kind}: {each.result}" for each in history)
    counted = [
        *sorted(results.items()),
        *sorted(faults.items()),
        ("records that no order explains", len(wrong)),
    ]
    summary: Row = {"operations": len(history), **faults, "impossible": wrong}
    where = "on a server" if options.ledger else "in a folder"
    tables = [table(f"What the clients of a ledger {where} met", ["what", "times"], counted)]
    return Report("history", "no model", journal.path, [], summary, tables)


async def disturb(location: str, options: Options, told: IO[bytes], progress: Progress) -> Counter[str]:
    """Keep processes at work, and kill or pause one every moment; return how often."""
    chance, faults = random.Random(options.seed), Counter[str]()  # noqa: S311  (no secret)
    running = [await _start(location, options, str(n), told) for n in range(options.processes)]
    ends = time.monotonic() + options.seconds
    while (left := ends - time.monotonic()) > 0:
        progress(int(options.seconds - left), options.seconds, "clients at work")
        await asyncio.sleep(min(left, chance.uniform(0.5, 2)))
        number = chance.randrange(len(running))
        if chance.random() < 0.5:
            await _kill(running[number])
            faults["kills"] += 1
            name = f"{number}-{faults['kills']}"
            running[number] = await _start(location, options, name, told)
        else:
            running[number].send_signal(signal.SIGSTOP)
            await asyncio.sleep(PAUSE)
            running[number].send_signal(signal.SIGCONT)
            faults["pauses"] += 1
    for process in running:
        await _kill(process)
    return faults


async def _start(location: str, options: Options, name: str, told: IO[bytes]) -> Process:
    given = [location, f"{options.seed}-{name}", *map(str, (options.keys, options.threads, options.tasks))]
    return await asyncio.create_subprocess_exec(sys.executable, "-m", CLIENT, *given, stdout=told)


async def _kill(process: Process) -> None:
    process.kill()
    await process.wait()


def read(told: Iterable[bytes]) -> list[Operation]:
    """Put together what clients told before and after each operation; without the latter, it is unknown."""
    begun: dict[str, dict[str, Any]] = {}
    for line in told:
        try:
            said = json.loads(line)
        except ValueError:  # cut off by a kill
            continue
        begun.setdefault(said.pop("id"), {}).update(said)
    return [_operation(each) for each in begun.values() if "begun" in each]


def _operation(told: dict[str, Any]) -> Operation:
    seen = told.get("seen")
    whole: dict[str, Any] = {"ended": NEVER, "result": "unknown"} | told
    whole["seen"] = Record(*seen) if seen else None
    return Operation(**{name: whole[name] for name in Operation._fields})
