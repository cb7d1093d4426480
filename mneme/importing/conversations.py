"""The data exports of ChatGPT and Claude: the user's messages, with the turns before them.

A conversation is a tree: a message that was edited, or an answer that was asked for again, begins another
branch. Only one branch is read: the one that the export marks as current, or that has the latest message.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mneme.core.errors import BadInput
from mneme.importing.files import conversations
from mneme.importing.item import Item, Reading, as_dict, as_list, clean, first_time, id_of
from mneme.stores.users.inbox import PRECEDING

MAX_SPOKEN_CHARS = 2000
"""Maximum characters of each turn before a message; these turns only give its context."""
EXPORT_ROLES = {"user": "user", "human": "user", "assistant": "assistant"}
SPOKEN = {"text", "multimodal_text"}
"""ChatGPT's kinds of content that a person reads or says; others are tools' calls, thoughts, instructions."""
HIDDEN_MARKS = ("is_visually_hidden_from_conversation", "is_user_system_message")
FIRST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Message:
    """A message of a conversation; its role is `user`, `assistant`, or "" for what no person sees."""

    name: str
    """Name in the tree."""
    parent: str
    id: str
    role: str
    text: str
    time: datetime | None


@dataclass(frozen=True)
class Program:
    """A program whose conversations are read, and the names of their fields."""

    name: str
    messages: str
    """The field with the messages; only this program's conversations have it."""
    ids: Sequence[str]
    last: str
    """The field with the name of the message that the conversation ended with."""
    began: str
    read: Callable[[Any], Iterable[Message]]


def read(program: Program, export: Path) -> Reading:
    """Return all messages of the user in an export. Raises BadInput if it is not the program's export."""
    reading, known = Reading(), 0
    for given in conversations(export):
        if isinstance(given, dict) and program.messages in given:
            known += 1
            _take(program, given, reading)
            continue
        for other in PROGRAMS:
            if isinstance(given, dict) and other.messages in given:
                hint = f"Say `mneme import {other.name.lower()} {export}`."
                raise BadInput(f"This is an export of {other.name}, not of {program.name}.", hint)
        reading.skipped["conversations that cannot be read"] += 1
    if not known:
        raise BadInput(f"{export} holds no conversations of {program.name}.", "Give its data export.")
    return reading


def _take(program: Program, given: Mapping[str, Any], reading: Reading) -> None:
    messages = [*program.read(given[program.messages])]
    branch = _branch(messages, clean(given.get(program.last)))
    users = [each for each in branch if each.role == "user"]
    reading.skipped["on branches that were left"] += sum(each.role == "user" for each in messages) - len(
        users
    )
    reading.skipped["of pictures, files or sound alone"] += sum(not each.text for each in users)
    name = next(filter(None, (clean(given.get(each)) for each in program.ids)), "")
    spoken = [each for each in branch if each.role and each.text]
    cut = [each.text[:MAX_SPOKEN_CHARS] + "…" * (len(each.text) > MAX_SPOKEN_CHARS) for each in spoken]
    shown = [f"{each.role}: {text}" for each, text in zip(spoken, cut, strict=True)]
    for number, each in enumerate(spoken):  # `number` stands in the id of a message that has none
        if each.role == "user":
            reading.take(
                Item(
                    id=id_of(program.name, name, each.id or f"{number} {each.text}"),
                    text=each.text,
                    time=each.time or first_time(given.get(program.began)),
                    thread=f"{program.name.lower()}/{name}",
                    before=shown[max(0, number - PRECEDING) : number],
                )
            )


def _branch(messages: Sequence[Message], last: str) -> Sequence[Message]:
    """Return the messages of the branch that ends with `last`; all messages if there are no branches."""
    named = {each.name: each for each in messages}
    if len(named) < len(messages) or not any(each.parent for each in messages):
        return messages
    if last not in named:  # else the latest message without a successor
        followed = {each.parent for each in messages}
        leaves = [each for each in messages if each.name not in followed] or messages
        last = max(leaves, key=lambda each: each.time or FIRST).name
    path: dict[str, Message] = {}
    while last in named and last not in path:  # broken links can form a circle
        path[last] = named[last]
        last = named[last].parent
    return [*path.values()][::-1]


def _of_chatgpt(given: Any) -> Iterator[Message]:
    for name, each in as_dict(given).items():
        node, message = as_dict(each), as_dict(as_dict(each).get("message"))
        about, content = as_dict(message.get("metadata")), as_dict(message.get("content"))
        is_seen = content.get("content_type") in SPOKEN and not any(about.get(mark) for mark in HIDDEN_MARKS)
        speaker = as_dict(message.get("author")).get("role") if is_seen else None
        yield Message(
            name=name,
            parent=clean(node.get("parent")),
            id=clean(message.get("id") or node.get("id")),
            role=EXPORT_ROLES.get(str(speaker), "") if message.get("recipient") in {None, "all"} else "",
            text="\n".join(filter(None, map(_words, as_list(content.get("parts"))))),
            time=first_time(message.get("create_time")),
        )


def _words(part: Any) -> str:
    """Return the text of a part of a message; speech counts, pictures and files have none."""
    is_spoken = as_dict(part).get("content_type") == "audio_transcription"
    return clean(part.get("text") if is_spoken else part)


def _of_claude(given: Any) -> Iterator[Message]:
    """Yield the messages; the export's plain text has placeholders for blocks that are not text."""
    for each in map(as_dict, as_list(given)):
        blocks = [as_dict(block) for block in as_list(each.get("content"))]
        words = [clean(block.get("text")) for block in blocks if block.get("type") == "text"]
        name = clean(each.get("uuid"))
        yield Message(
            name=name,
            parent=clean(each.get("parent_message_uuid")),
            id=name,
            role=EXPORT_ROLES.get(str(each.get("sender")), ""),
            text="\n".join(filter(None, words)) if blocks else clean(each.get("text")),
            time=first_time(each.get("created_at")),
        )


CHATGPT = Program("ChatGPT", "mapping", ("conversation_id", "id"), "current_node", "create_time", _of_chatgpt)
CLAUDE = Program("Claude", "chat_messages", ("uuid",), "current_leaf_message_uuid", "created_at", _of_claude)
PROGRAMS = (CHATGPT, CLAUDE)
