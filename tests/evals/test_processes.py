"""Processes that work for another one."""

import subprocess
import sys
from pathlib import Path

OPENS = """
import asyncio
import time
from mneme.evals.measuring import processes

async def sleep(seconds):
    time.sleep(seconds)
    return {"slept": seconds}

async def main():
    with processes(2, sleep) as one:
        print((await one(0))["slept"], flush=True)
        await one(600)

if __name__ == "__main__":
    asyncio.run(main())
"""
PATIENCE = 60
"""Seconds, on a loaded machine, until a process that should end is taken for one that does not."""


def test_they_end_where_the_one_that_they_work_for_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "opens.py"
    script.write_text(OPENS)
    process = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "0\n"
    process.kill()
    process.communicate(timeout=PATIENCE)  # the output ends when nobody is left who could write to it
