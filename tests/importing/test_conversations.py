"""What is read of the exports of ChatGPT and Claude: the user's messages of the branch that counts."""

import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from mneme.core.errors import BadInput
from mneme.importing.conversations import CHATGPT, CLAUDE, read
from tests.importing.exports import JUNE, chatgpt, claude, message, node, talk, texts, written, zipped


@pytest.fixture(autouse=True)
def in_oslo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Oslo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_of_a_chatgpt_tree_the_users_words_on_the_last_branch_count(tmp_path: Path) -> None:
    spoken = {"content_type": "audio_transcription", "text": "I sing in a choir.", "direction": "in"}
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"}
    hidden = {"metadata": {"is_visually_hidden_from_conversation": True}}
    nodes = [
        node("sys", "root", "system", "You are ChatGPT."),
        node("about", "sys", "user", "My profile", **hidden),
        node("context", "about", "user", "I like cats.", content_type="user_editable_context"),
        node("u1", "context", "user", "I live in Astin.", create_time=JUNE),
        node("a0", "u1", "assistant", "Where is that?"),
        node("u1b", "context", "user", "I live in Austin.", create_time=JUNE + 60, invented={"x": [1]}),
        node("call", "u1b", "assistant", "search('Austin')", recipient="browser"),
        node("tool", "call", "tool", "Austin is hot."),
        node("think", "tool", "assistant", "hm", content_type="thoughts"),
        node("a1", "think", "assistant", "Nice city!"),
        node(
            "u2", "a1", "user", picture, "This is my dog.", content_type="multimodal_text", create_time=None
        ),
        node("u3", "u2", "user", spoken, content_type="multimodal_text", create_time=JUNE + 14 * 3600),
        node("u4", "u3", "user", picture, content_type="multimodal_text"),
    ]
    odd = [{"mapping": {"a": None, "b": {"message": "?", "parent": "b"}}, "current_node": "b"}, 7, "x", None]
    export = zipped(tmp_path / "e.zip", conversations_json=[chatgpt("c1", "u4", *nodes), *odd], user_json={})

    reading = read(CHATGPT, export)

    assert texts(reading.items) == ["I live in Austin.", "This is my dog.", "I sing in a choir."]
    assert reading.items[1].before == ["user: I live in Austin.", "assistant: Nice city!"]
    assert [each.time and each.time.isoformat() for each in reading.items] == [
        "2024-06-01T12:01:00+02:00",
        "2024-06-01T12:00:00+02:00",  # the conversation's
        "2024-06-02T02:00:00+02:00",  # the day on which the user said it, not the day in London
    ]
    assert reading.skipped["on branches that were left"] == 1
    assert reading.skipped["of pictures, files or sound alone"] == 1
    assert reading.skipped["conversations that cannot be read"] == 3
    assert {each.thread for each in reading.items} == {"chatgpt/c1"}


def test_large_exports_come_in_several_files_and_without_an_end(tmp_path: Path) -> None:
    first, second = [talk("c1", "I own a kite.")], [talk("c2", "I own a boat.", day=-3)]
    for each in second:
        del each["current_node"]
    export = zipped(
        tmp_path / "e.zip", **{"in/conversations-000_json": first, "in/conversations-001_json": second}
    )
    chosen = read(CHATGPT, export).chosen(None, None)
    assert texts(chosen.items) == ["I own a boat.", "I own a kite."], "the older first"
    export.rename(tmp_path / "again.zip")
    again = read(CHATGPT, tmp_path / "again.zip").chosen(None, None)
    assert [each.id for each in again.items] == [each.id for each in chosen.items]
    since = read(CHATGPT, tmp_path / "again.zip").chosen(datetime(2024, 6, 1).astimezone(), None)
    assert (texts(since.items), since.skipped["older than the date given"]) == (["I own a kite."], 1)
    assert texts(read(CHATGPT, tmp_path / "again.zip").chosen(None, 1).items) == ["I own a boat."]


def test_of_claude_the_users_words_on_the_last_branch_count(tmp_path: Path) -> None:
    unsupported = "```\nThis block is not supported on your current device yet.\n```"
    tool = [{"type": "tool_use", "name": "search"}, {"type": "text", "text": "Found it."}]
    first = [
        message("m1", "human", "I live in Austin.", attachments=[{"extracted_content": "secret"}]),
        message("m2", "assistant", unsupported, content=tool),
        message("m3", "human", "I moved to Denver.", content=[]),
        message("m4", "human", "", attachments=[{"file_name": "a.pdf"}]),
    ]
    root = "00000000-0000-4000-8000-000000000000"
    second = [
        message("n1", "human", "I hae a cat.", parent_message_uuid=root),
        message("n2", "human", "I have a cat.", parent_message_uuid=root, created_at="2024-06-01T10:05:00Z"),
        message("n3", "assistant", "Lovely.", parent_message_uuid="n2", created_at="2024-06-01T10:06:00Z"),
    ]
    given = [claude("c1", *first), claude("c2", *second), claude("c3"), {"chat_messages": 5}]
    reading = read(CLAUDE, zipped(tmp_path / "e.zip", conversations_json=given, users_json=[]))
    assert texts(reading.items) == ["I live in Austin.", "I moved to Denver.", "I have a cat."]
    assert reading.items[1].before == ["user: I live in Austin.", "assistant: Found it."]
    assert reading.skipped["on branches that were left"] == 1
    told = [claude("c2", *second, current_leaf_message_uuid="n1")]
    assert texts(read(CLAUDE, written(tmp_path / "c.json", told)).items) == ["I hae a cat."]


def test_what_is_too_long_or_broken_is_left_out_and_turns_before_are_cut(tmp_path: Path) -> None:
    nodes = [
        node("u1", "root", "user", "word " * 10_000),
        node("a1", "u1", "assistant", "y" * 9_000),
        node("u2", "a1", "user", "I like \ud83d tea."),
    ]
    (tmp_path / "folder").mkdir()
    written(tmp_path / "folder" / "conversations.json", [chatgpt("c1", "u2", *nodes)])
    reading = read(CHATGPT, tmp_path / "folder")
    assert texts(reading.items) == ["I like ? tea."]
    assert reading.skipped["longer than 32,000 characters"] == 1
    assert max(map(len, reading.items[0].before)) < 2100


def test_the_other_programs_export_names_the_other_command(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as refused:
        read(CLAUDE, written(tmp_path / "c.json", [talk("c1", "I own a kite.")]))
    assert "mneme import chatgpt" in refused.value.hint
    with pytest.raises(BadInput, match="holds no conversations"):
        read(CLAUDE, written(tmp_path / "c.json", [{"what": 1}]))
