"""Read a conversation from a file: JSON Lines with role and content, or plain text with speakers."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mneme.api.messages import ChatMessage
from mneme.cli.show import read_file
from mneme.core.errors import BadInput, first_fault

SPEAKER = re.compile(r"^(user|human|me|assistant|ai|bot)\s*:\s*", re.IGNORECASE)
ASSISTANTS = {"assistant", "ai", "bot"}
HINT = "Give a text file or JSON Lines."


@dataclass
class Conversation:
    """The turns of a file in order, and the lines that could not be read."""

    turns: list[ChatMessage] = field(default_factory=list)
    broken: list[tuple[int, str]] = field(default_factory=list)

    def take(self, number: int, given: Any) -> None:
        """Add a turn, or note why it is none."""
        try:
            turn = ChatMessage.model_validate(given)
        except ValidationError as error:
            self.broken.append((number, first_fault(error).removesuffix(".")))
            return
        if turn.content.strip():
            self.turns.append(turn)
        else:
            self.broken.append((number, "the message is empty"))


def read_conversation(file: Path) -> Conversation:
    """Read a conversation; a broken line is noted with its number, and the other lines are read.

    Raises:
        BadInput: the file does not exist, is not text, or has no message.
    """
    text = read_file(file, HINT)
    if "\x00" in text:
        raise BadInput(f"{file} is binary.", HINT)
    conversation = Conversation()
    if file.suffix in {".json", ".jsonl"} or text.lstrip().startswith(("{", "[{")):
        _take_json(text, conversation)
    else:
        _take_text(text, conversation)
    if not conversation.turns and not conversation.broken:
        raise BadInput(f"{file} has no message.", "Write lines like `user: …`, or JSON Lines.")
    return conversation


def _take_json(text: str, conversation: Conversation) -> None:
    """Take the elements of a JSON array, or the lines of JSON."""
    lines = text.split("\n")
    if text.lstrip().startswith("["):
        try:
            lines = [json.dumps(element) for element in json.loads(text)]
        except ValueError as error:
            raise BadInput(f"The JSON array is not valid: {error}.", "Write one object per line.") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            given = json.loads(line)
        except ValueError as error:
            conversation.broken.append((number, f"no JSON: {error}"))
        else:
            conversation.take(number, given)


def _take_text(text: str, conversation: Conversation) -> None:
    """Begin a turn at each speaker's name, or at each paragraph if no speaker is named."""
    named = any(SPEAKER.match(line) for line in text.splitlines())
    start, role, words = 1, "user", list[str]()
    for number, line in enumerate([*text.splitlines(), "user:" if named else ""], start=1):
        speaker = SPEAKER.match(line)
        if not speaker and (named or line.strip()):
            words.append(line)
            continue
        if "".join(words).strip():
            conversation.take(start, {"role": role, "content": "\n".join(words).strip()})
        start, words = number, [line[speaker.end() :]] if speaker else []
        role = "assistant" if speaker and speaker[1].lower() in ASSISTANTS else "user"
