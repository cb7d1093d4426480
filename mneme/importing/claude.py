"""The data export of Claude: each conversation is a list of messages, newer ones with their parents.

A message that was edited begins another branch. Where messages name their parents, the branch counts that
the conversation says it ended with, or that the latest message is on.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mneme.importing.conversations import Source, Turn, path_to, read_conversations
from mneme.importing.item import Reading, as_dict, as_list, clean, first_time

ROLES = {"human": "user", "user": "user", "assistant": "assistant"}


def read(export: Path) -> Reading:
    """Return the user's messages of an export. Raises BadInput."""
    return read_conversations(
        Source("Claude", mark="chat_messages", other=("mapping", "ChatGPT"), read=_conversation), export
    )


def _conversation(given: dict[str, Any], reading: Reading) -> tuple[str, Sequence[Turn]]:
    everything = [as_dict(each) for each in as_list(given["chat_messages"])]
    said = _ending(everything, clean(given.get("current_leaf_message_uuid")))
    reading.skipped["on branches that were left"] += _users(everything) - _users(said)
    turns = [_turn(each, given, reading) for each in said if _role(each)]
    return clean(given.get("uuid")), turns


def _ending(messages: Sequence[dict[str, Any]], last: str) -> Sequence[dict[str, Any]]:
    """Return the messages of the branch that a conversation ended with; all where it has no branches."""
    named = {str(each.get("uuid")): each for each in messages}
    parents = {name: str(each.get("parent_message_uuid") or "") for name, each in named.items()}
    if not any(parents.values()) or len(named) < len(messages):
        return messages
    if last not in named:
        last = max(named, key=lambda name: str(named[name].get("created_at") or ""))
    return [named[name] for name in path_to(last, parents)]


def _users(messages: Sequence[dict[str, Any]]) -> int:
    return sum(_role(each) == "user" for each in messages)


def _role(message: dict[str, Any]) -> str:
    return ROLES.get(str(message.get("sender")), "")


def _turn(message: dict[str, Any], conversation: dict[str, Any], reading: Reading) -> Turn:
    """Return a message in our words; the text beside blocks has stand-ins for what is no text."""
    blocks = [as_dict(each) for each in as_list(message.get("content"))]
    words = [clean(each.get("text")) for each in blocks if each.get("type") == "text"]
    text = "\n".join(filter(None, words)) if blocks else clean(message.get("text"))
    if _role(message) == "user" and not text:
        reading.skipped["of pictures, files or sound alone"] += 1
    time = first_time(message.get("created_at"), conversation.get("created_at"))
    return Turn(clean(message.get("uuid")), _role(message), text, time)
