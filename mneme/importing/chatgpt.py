"""The data export of ChatGPT: each conversation is a tree of messages, of which one branch was the last.

A message that was edited, or an answer that was asked for again, begins another branch. What the user sees
of a conversation is the branch that ends with `current_node`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mneme.importing.conversations import Source, Turn, path_to, read_conversations
from mneme.importing.item import Reading, as_dict, as_list, clean, first_time

ROLES = {"user": "user", "assistant": "assistant"}
SPOKEN = {"text", "multimodal_text"}
"""Kinds of content that a person reads or says; the others are tools' calls, thoughts, and instructions."""
HIDDEN = ("is_visually_hidden_from_conversation", "is_user_system_message")


def read(export: Path) -> Reading:
    """Return the user's messages of an export. Raises BadInput."""
    return read_conversations(
        Source("ChatGPT", mark="mapping", other=("chat_messages", "Claude"), read=_conversation), export
    )


def _conversation(given: dict[str, Any], reading: Reading) -> tuple[str, Sequence[Turn]]:
    nodes = {name: as_dict(node) for name, node in as_dict(given["mapping"]).items()}
    parents = {name: str(node.get("parent")) for name, node in nodes.items()}
    last = str(given.get("current_node"))
    path = path_to(last if last in nodes else _latest(nodes), parents)
    reading.skipped["on branches that were left"] += sum(
        _role(nodes[name]) == "user" for name in nodes.keys() - {*path}
    )
    turns = [_turn(nodes[name], given, reading) for name in path]
    return clean(given.get("conversation_id") or given.get("id")), [each for each in turns if each]


def _latest(nodes: dict[str, dict[str, Any]]) -> str:
    """Return the latest message that none follows, for a conversation that does not say where it ended."""
    leaves = [name for name, node in nodes.items() if not as_list(node.get("children"))]
    return max(leaves, key=lambda name: _seconds(nodes[name]), default="")


def _seconds(node: dict[str, Any]) -> float:
    time = as_dict(node.get("message")).get("create_time")
    return float(time) if isinstance(time, int | float) else 0.0


def _role(node: dict[str, Any]) -> str:
    """Return who says something in a message that a person sees; "" for anything else."""
    message = as_dict(node.get("message"))
    about, content = as_dict(message.get("metadata")), as_dict(message.get("content"))
    is_seen = not any(about.get(each) for each in HIDDEN) and content.get("content_type") in SPOKEN
    is_to_all = message.get("recipient") in {None, "all"}
    return ROLES.get(str(as_dict(message.get("author")).get("role")), "") if is_seen and is_to_all else ""


def _turn(node: dict[str, Any], conversation: dict[str, Any], reading: Reading) -> Turn | None:
    message, role = as_dict(node.get("message")), _role(node)
    if not role:
        return None
    parts = as_list(as_dict(message.get("content")).get("parts"))
    text = "\n".join(filter(None, map(_words, parts)))
    if role == "user" and not text:
        reading.skipped["of pictures, files or sound alone"] += 1
    time = first_time(message.get("create_time"), conversation.get("create_time"))
    return Turn(clean(message.get("id") or node.get("id")), role, text, time)


def _words(part: Any) -> str:
    """Return the words of a part of a message; what was spoken counts, pictures and files have none."""
    if as_dict(part).get("content_type") == "audio_transcription":
        return clean(as_dict(part).get("text"))
    return clean(part)
