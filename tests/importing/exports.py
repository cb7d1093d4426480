"""Exports as other programs write them, made for a test."""

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

DAY = 86_400.0
JUNE = 1_717_236_000.0
"""1 June 2024, 10:00 UTC."""


def node(name: str, parent: str | None, role: str, *parts: Any, **more: Any) -> dict[str, Any]:
    """Return a node of a ChatGPT conversation."""
    content = {"content_type": more.pop("content_type", "text"), "parts": [*parts]}
    message: dict[str, Any] = {
        "id": name,
        "author": {"role": role, "name": None, "metadata": {}},
        "content": content,
    }
    message |= {"create_time": JUNE, "recipient": "all", "status": "finished_successfully", "metadata": {}}
    return {"id": name, "parent": parent, "children": [], "message": message | more}


def chatgpt(name: str, last: str, *nodes: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return a ChatGPT conversation that ended with a node, below a root without a message."""
    root: dict[str, Any] = {"id": "root", "parent": None, "children": [], "message": None}
    mapping = {each["id"]: {**each, "children": []} for each in [root, *nodes]}
    for each in nodes:
        mapping[each["parent"]]["children"].append(each["id"])
    about = {"title": "A talk", "create_time": JUNE, "moderation_results": [], "plugin_ids": None}
    return {"conversation_id": name, "id": name, "current_node": last, "mapping": mapping} | about | more


def talk(name: str, *said: str, day: float = 0.0) -> dict[str, Any]:
    """Return a ChatGPT conversation in which the user says this, an hour apart, and is answered."""
    nodes: list[dict[str, Any]] = []
    for number, words in enumerate(said):
        time = JUNE + day * DAY + number * 3600
        before = nodes[-1]["id"] if nodes else "root"
        nodes.append(node(f"{name}-u{number}", before, "user", words, create_time=time))
        nodes.append(
            node(f"{name}-a{number}", f"{name}-u{number}", "assistant", "I see.", create_time=time + 5)
        )
    return chatgpt(name, nodes[-1]["id"], *nodes, create_time=JUNE + day * DAY)


def claude(name: str, *messages: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return a Claude conversation."""
    about = {
        "uuid": name,
        "name": "A talk",
        "created_at": "2024-06-01T10:00:00.000000Z",
        "account": {"uuid": "x"},
    }
    return {**about, "chat_messages": [*messages], **more}


def message(name: str, sender: str, text: str, **more: Any) -> dict[str, Any]:
    """Return a message of a Claude conversation."""
    said = {"uuid": name, "sender": sender, "text": text, "content": [{"type": "text", "text": text}]}
    return said | {"created_at": "2024-06-01T10:00:00.000000Z", "attachments": [], "files": []} | more


def zipped(file: Path, **files: Any) -> Path:
    """Write a zip archive with files of JSON, with underlines for full stops in their names."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("_json", ".json"), json.dumps(content))
    return file


def written(file: Path, content: Any) -> Path:
    """Write a file of JSON."""
    file.write_text(json.dumps(content), encoding="utf-8")
    return file


def texts(items: Sequence[Any]) -> list[str]:
    """Return the texts of what was read."""
    return [each.text for each in items]
