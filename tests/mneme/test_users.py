"""The file of users: keys shown once, changes whole and one at a time, checks in microseconds."""

import asyncio
import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mneme.core.errors import BadInput, Conflict, Forbidden, NotFound, StorageFailure
from mneme.server.users import add_user, authenticate, list_users, remove_user


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "not there yet" / "users.json"


def test_a_key_names_its_user_and_no_other(path: Path) -> None:
    alice, bob = add_user(path, "alice"), add_user(path, "bob")
    assert (authenticate(path, alice), authenticate(path, bob)) == ("alice", "bob")
    assert [user.name for user in list_users(path)] == ["alice", "bob"]


@pytest.mark.parametrize("spoil", [str.upper, lambda key: key[:-1], lambda key: f"{key} ", lambda key: ""])
def test_what_is_not_quite_a_key_is_refused(path: Path, spoil: object) -> None:
    key = add_user(path, "alice")
    assert callable(spoil)
    with pytest.raises(Forbidden):
        authenticate(path, spoil(key))


def test_one_user_s_number_with_another_s_secret_is_refused(path: Path) -> None:
    alice, bob = add_user(path, "alice").split("-"), add_user(path, "bob").split("-")
    with pytest.raises(Forbidden):
        authenticate(path, "-".join([*alice[:2], bob[2]]))


def test_the_file_holds_no_key_and_is_for_its_owner_only(path: Path) -> None:
    key = add_user(path, "alice")
    text = path.read_text()
    assert key.rpartition("-")[2] not in text
    assert "alice" in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(each.name for each in path.parent.iterdir()) == ["users.json", "users.json.lock"]


def test_a_removed_user_is_out_at_once_and_a_new_key_replaces_the_old(path: Path) -> None:
    old, bob = add_user(path, "alice"), add_user(path, "bob")
    assert authenticate(path, old) == "alice"
    remove_user(path, "alice")
    with pytest.raises(Forbidden):
        authenticate(path, old)
    new = add_user(path, "alice")
    with pytest.raises(Forbidden):
        authenticate(path, old)
    assert (authenticate(path, new), authenticate(path, bob)) == ("alice", "bob")


def test_a_name_is_taken_once_and_an_unknown_one_is_not_removed(path: Path) -> None:
    add_user(path, "alice")
    with pytest.raises(Conflict):
        add_user(path, "alice")
    with pytest.raises(NotFound):
        remove_user(path, "bob")
    assert [user.name for user in list_users(path)] == ["alice"]


@pytest.mark.parametrize("name", ["", "Alice", "a.b", "a/b", "../a", "-a", "a b", "a" * 64, "ä", "a\n"])
def test_a_name_must_do_as_a_namespace_s_label(path: Path, name: str) -> None:
    with pytest.raises(BadInput):
        add_user(path, name)
    assert not path.exists()


WRITER = """
import sys
from pathlib import Path
from mneme.server.users import add_user
for number in range(10):
    add_user(Path(sys.argv[1]), f"{sys.argv[2]}-{number}")
"""


def test_writers_at_once_lose_nobody(path: Path) -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", WRITER, str(path)]
    writers = [subprocess.Popen([*command, f"writer{number}"], cwd=root) for number in range(4)]
    assert [writer.wait() for writer in writers] == [0] * 4
    assert len({user.name for user in list_users(path)}) == 40


def test_who_fails_to_write_leaves_the_file_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = add_user(path, "alice")

    def no_space(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched, pytest.raises(StorageFailure, match="No space") as failure:
        patched.setattr(os, "fsync", no_space)
        add_user(path, "bob")
    assert failure.value.hint
    assert authenticate(path, key) == "alice"
    assert len(list(path.parent.iterdir())) == 2


@pytest.mark.parametrize("text", ["", "no json", "[]", '{"users": [{"name": "alice"}]}', "\udcff"])
def test_a_file_of_something_else_lets_nobody_in_and_is_left_alone(path: Path, text: str) -> None:
    key = add_user(path, "alice")
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises((BadInput, StorageFailure)) as failure:
        authenticate(path, key)
    assert failure.value.hint
    with pytest.raises((BadInput, StorageFailure)):
        add_user(path, "bob")
    assert path.read_bytes() == text.encode("utf-8", "surrogateescape")


def test_no_file_lets_nobody_in(path: Path) -> None:
    assert list_users(path) == []
    with pytest.raises(StorageFailure):
        authenticate(path, f"mneme-{'0' * 16}-{'0' * 64}")


def test_a_folder_is_no_file_of_users(tmp_path: Path) -> None:
    with pytest.raises(StorageFailure):
        add_user(tmp_path, "alice")


async def test_a_check_takes_microseconds(path: Path) -> None:
    """Count the thread's CPU seconds, which a busy machine does not make more."""
    key = [add_user(path, f"user{number}") for number in range(50)][25]
    authenticate(path, key)
    start = time.thread_time()
    for _ in range(1000):
        authenticate(path, key)
    assert (time.thread_time() - start) / 1000 < 0.001
    assert await asyncio.to_thread(authenticate, path, key) == "user25"


def test_the_file_is_plain_json(path: Path) -> None:
    add_user(path, "alice")
    held = json.loads(path.read_text())
    assert held["version"] == 1
    assert set(held["users"][0]) == {"name", "number", "salt", "digest", "added"}
