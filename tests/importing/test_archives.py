"""Archives and files that were made to do harm, or that were cut, end in an error that says so."""

import io
import json
import struct
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from mneme.core.errors import BadInput
from mneme.importing import files
from mneme.importing.conversations import CHATGPT, read
from tests.importing.exports import talk, texts, written, zipped

TALK = json.dumps([talk("c1", "I own a kite.")])


def refused(file: Path, words: str) -> None:
    with pytest.raises(BadInput, match=words) as error:
        read(CHATGPT, file)
    assert error.value.hint


def packed(file: Path, name: str, content: str, count: int = 1) -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr(name, content)
        for number in range(count - 1):
            made.writestr(f"file-{number}.png", "")
    return file


def test_bombs_and_unsafe_names_are_refused_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(packed(tmp_path / "bomb.zip", "conversations.json", " " * 50_000_000), "times larger")
    refused(packed(tmp_path / "up.zip", "../../conversations.json", TALK), "unsafe name")
    refused(packed(tmp_path / "root.zip", "/etc/conversations.json", TALK), "unsafe name")
    refused(packed(tmp_path / "none.zip", "other.json", TALK), "no conversations.json")
    monkeypatch.setattr(files, "MAX_MEMBERS", 10)
    refused(packed(tmp_path / "many.zip", "conversations.json", TALK, count=12), "12 files")
    monkeypatch.setattr(files, "MAX_BYTES", 100)
    refused(packed(tmp_path / "large.zip", "conversations.json", TALK), "have more than")


def test_encrypted_damaged_and_lying_archives_are_refused(tmp_path: Path) -> None:
    whole = packed(tmp_path / "whole.zip", "conversations.json", TALK).read_bytes()
    directory = whole.index(b"PK\x01\x02")
    encrypted = bytearray(whole)
    encrypted[directory + 8] |= 1
    (tmp_path / "encrypted.zip").write_bytes(encrypted)
    refused(tmp_path / "encrypted.zip", "encrypted")
    damaged = bytearray(whole)
    damaged[directory - 20] ^= 0xFF
    (tmp_path / "damaged.zip").write_bytes(damaged)
    refused(tmp_path / "damaged.zip", "damaged")
    lying = bytearray(whole)
    lying[directory + 24 : directory + 28] = struct.pack("<I", 50)  # says that it is shorter than it is
    (tmp_path / "lying.zip").write_bytes(lying)
    refused(tmp_path / "lying.zip", "damaged|not JSON")
    unknown = bytearray(whole)
    for place in (8, directory + 10):
        unknown[place : place + 2] = struct.pack("<H", 97)
    (tmp_path / "unknown.zip").write_bytes(unknown)
    refused(tmp_path / "unknown.zip", "cannot be read")
    (tmp_path / "cut.zip").write_bytes(whole[:-30])
    refused(tmp_path / "cut.zip", "not JSON|UTF-8")


def test_files_that_are_no_export_are_refused(tmp_path: Path) -> None:
    refused(tmp_path / "missing.zip", "No such file")
    refused(tmp_path, "no conversations.json")
    for content, words in {
        b"\xff\xfe\x00": "UTF-8",
        b"": "after 0 elements",
        b"hello": "not JSON",
        TALK.encode()[:-1]: "after 1 elements",
        TALK.encode()[:-40]: "not JSON",
        b"[" * 100_000: "nested too deeply|not JSON",
    }.items():
        (tmp_path / "c.json").write_bytes(content)
        refused(tmp_path / "c.json", words)
    (tmp_path / "c.json").write_bytes(b"\xef\xbb\xbf" + TALK.encode())
    assert texts(read(CHATGPT, tmp_path / "c.json").items) == ["I own a kite."]
    assert texts(read(CHATGPT, written(tmp_path / "one.json", talk("c1", "I own a kite."))).items)


def test_a_large_file_is_read_piece_by_piece(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(files, "CHUNK_CHARS", 1000)
    given = [{"number": number, "words": "é [{]} \\" * 40} for number in range(3000)]
    file = written(tmp_path / "large.json", given)
    tracemalloc.start()
    assert all(one == other for one, other in zip(files.elements_of(file), given, strict=True))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < file.stat().st_size / 10
    monkeypatch.setattr(files, "MAX_CHARACTERS", 5000)
    with pytest.raises(BadInput, match="more than 5,000 characters"):
        list(files.elements(io.StringIO(json.dumps(["x" * 10_000])), "large"))
    lines = "\n".join(json.dumps(each) for each in given[:50])
    assert list(files.elements(io.StringIO(lines), "lines")) == given[:50]
    zipped(tmp_path / "e.zip", conversations_json=[])
    refused(tmp_path / "e.zip", "holds no conversations")
