"""Conversation files: JSON Lines, plain text, and what is wrong with them."""

from pathlib import Path

import pytest

from mneme.api.inbox import MAX_MESSAGE_CHARS, to_remember
from mneme.cli.chat.remember import read_conversation
from mneme.core.errors import BadInput


def write(tmp_path: Path, text: str | bytes) -> Path:
    file = tmp_path / "talk.txt"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def test_speakers_begin_turns_and_lines_without_one_go_on(tmp_path: Path) -> None:
    read = read_conversation(write(tmp_path, "User: I live\nin Rome.\nAI: Nice!\nuser: And in Bonn.\n"))
    assert [(turn.role, turn.content) for turn in read.turns] == [
        ("user", "I live\nin Rome."),
        ("assistant", "Nice!"),
        ("user", "And in Bonn."),
    ]


def test_without_speakers_each_paragraph_is_the_users(tmp_path: Path) -> None:
    read = read_conversation(write(tmp_path, "I live\nin Rome.\n\nI have a cat.\n"))
    assert [turn.content for turn in read.turns] == ["I live\nin Rome.", "I have a cat."]


def test_a_broken_line_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    lines = [
        '{"role": "user", "content": "a"}',
        "{broken",
        '{"role": "user"}',
        '{"role": "user", "content": "b"}',
    ]
    read = read_conversation(write(tmp_path, "\n".join(lines)))
    assert [turn.content for turn in read.turns] == ["a", "b"]
    assert [number for number, _ in read.broken] == [2, 3]
    assert "content" in read.broken[1][1]


def test_a_json_array_is_read_element_by_element(tmp_path: Path) -> None:
    text = '[{"role": "user", "content": "a"}, {"role": "bot"}]'
    read = read_conversation(write(tmp_path, text))
    assert [turn.content for turn in read.turns] == ["a"]
    assert [number for number, _ in read.broken] == [2]
    with pytest.raises(BadInput, match="array"):
        read_conversation(write(tmp_path, text[:-5]))


def test_a_message_that_is_too_long_is_named(tmp_path: Path) -> None:
    read = read_conversation(write(tmp_path, f"user: {'x' * (MAX_MESSAGE_CHARS + 1)}\nuser: short\n"))
    assert [turn.content for turn in read.turns] == ["short"]
    assert read.broken[0][0] == 1


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xff\xfe\x00\x01", b"user: a\x00b"])
def test_what_is_no_conversation_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(BadInput) as refusal:
        read_conversation(write(tmp_path, content))
    assert refusal.value.hint


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="Cannot read"):
        read_conversation(tmp_path / "nowhere.txt")


def test_ids_stay_when_the_file_grows(tmp_path: Path) -> None:
    text = "user: one\nassistant: two\nuser: three\n"
    before = to_remember(read_conversation(write(tmp_path, text)).turns, "t")
    after = to_remember(read_conversation(write(tmp_path, text + "user: four\n")).turns, "t")
    assert [each["message_id"] for each in after[:2]] == [each["message_id"] for each in before]
    assert after[1]["preceding"] == ["user: one", "assistant: two"]
    assert len({str(each["message_id"]) for each in after}) == 3


def test_the_same_words_twice_are_two_messages(tmp_path: Path) -> None:
    messages = to_remember(read_conversation(write(tmp_path, "user: yes\nuser: yes\n")).turns, "t")
    assert messages[0]["message_id"] != messages[1]["message_id"]
