"""A server and commands that are killed in the midst of writing and forgetting: nothing is lost or back."""

import json
import os
import random
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from mneme.api.operation import API_PATH
from mneme.client.home import OWN_SERVER
from mneme.stores.database import kept_of, noted_size
from tests.doubles.command_line import Running, run_mneme
from tests.doubles.ledger_files import files_with
from tests.doubles.own_server import own_server
from tests.doubles.quiet import quiet

KILLS = int(os.environ.get("MNEME_TEST_KILLS", "4"))
WRITERS = 3
FACTS, KILLS_OF_A_TALK = 8, 4

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]


@dataclass
class Acknowledged:
    """What a server said is kept, and what it said is forgotten; of what was asked last nothing is known."""

    kept: set[str] = field(default_factory=set)
    forgotten: set[str] = field(default_factory=set)


def write(url: str, name: str, said: Acknowledged) -> None:
    """Write memories, and forget every fourth, until the server is gone."""
    number = 0
    with httpx.Client(base_url=f"{url}{API_PATH}", timeout=30) as client:
        while True:
            number += 1
            text = f"{name} has {random.getrandbits(60):x} stones."
            try:
                added = client.post("/memories", json={"content": text}).raise_for_status().json()
                if number % 4:
                    said.kept.add(text)
                else:
                    client.delete(f"/memories/{added['key']}").raise_for_status()
                    said.forgotten.add(text)
            except httpx.TransportError:
                return


def remembered(home: Path, *words: str) -> list[str]:
    """Return what the memories say, as often as they say it."""
    done = run_mneme(["memories", "export", *words], quiet(home))
    assert done.returncode == 0, done.stderr
    return [json.loads(line)["value"]["content"] for line in done.stdout.splitlines()]


def test_a_server_that_is_killed_loses_nothing_and_brings_nothing_back(tmp_path: Path) -> None:
    home, chance, said = tmp_path / "home", random.Random(7), Acknowledged()
    for kill in range(KILLS):
        before = len(said.kept)
        (home / "ledger" / OWN_SERVER).unlink(missing_ok=True)  # of the server that was killed
        with own_server(home) as server:
            writers = [
                threading.Thread(target=write, args=[server.url, f"Writer {kill}-{each}", said])
                for each in range(WRITERS)
            ]
            for writer in writers:
                writer.start()
            while len(said.kept) == before or not said.forgotten:
                assert any(writer.is_alive() for writer in writers)
                time.sleep(0.01)
            time.sleep(chance.uniform(0, 2))
            server.running.kill()
            for writer in writers:
                writer.join()
    there = remembered(home)
    assert said.kept and said.kept <= {*there} and len({*there}) == len(there)
    assert said.forgotten and not said.forgotten & {*there}
    assert not files_with(home, *said.forgotten)
    verified = run_mneme(["verify"], quiet(home))
    assert verified.returncode == 0, verified.stdout
    print(f"{KILLS} kills, {len(said.kept)} kept, {len(said.forgotten)} forgotten")


def killed(home: Path, words: list[str], entries: int) -> bool:
    """Kill a command once the log has so many entries more; say whether it had not ended by then."""
    note = kept_of(home / "ledger")
    until = entries + (noted_size(note) if note.exists() else 0)
    with Running(words, quiet(home)) as command:
        while is_alive := command.is_alive():
            if note.exists() and noted_size(note) >= until:
                break
            time.sleep(0.001)
    return is_alive


def test_commands_that_are_killed_remember_each_fact_once_and_forget_for_good(tmp_path: Path) -> None:
    home, chance, kills = tmp_path / "home", random.Random(7), 0
    for number in range(-(-KILLS // KILLS_OF_A_TALK)):
        user, talk = ["--user", f"user{number}"], tmp_path / f"talk{number}.txt"
        names = [f"Nam{random.getrandbits(40):x}" for _ in range(FACTS)]
        facts = (f"user: My friend number {n} is called {name}.\n" for n, name in enumerate(names))
        talk.write_text("".join(facts))
        remember = ["remember", str(talk), "--agents", "rules", *user]
        kills += sum(killed(home, remember, chance.randint(1, 6)) for _ in range(KILLS_OF_A_TALK - 1))
        assert run_mneme(remember, quiet(home)).returncode == 0
        texts = remembered(home, *user)
        assert [sum(name in text for text in texts) for name in names] == [1] * FACTS
        found = run_mneme(["memories", "search", names[0], "--json", *user], quiet(home)).stdout
        forget = ["memories", "forget", json.loads(found.splitlines()[0])["key"], "--yes", *user]
        kills += killed(home, forget, 1)
        run_mneme(forget, quiet(home))  # it fails where the one that was killed has done it
        texts = remembered(home, *user)
        [gone] = [name for name in names if not any(name in text for text in texts)]
        assert not files_with(home, gone)
        assert run_mneme(remember, quiet(home)).returncode == 0
        assert len(remembered(home, *user)) == FACTS - 1, "nothing comes back"
    verified = run_mneme(["verify"], quiet(home))
    assert verified.returncode == 0, verified.stdout
    print(f"{kills} kills")
