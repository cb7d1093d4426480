"""`mneme remember TEXT|FILE`: remember a sentence or a whole conversation."""

import json
import re
from dataclasses import dataclass, field
from os.path import isfile
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from mneme.api.inbox import ChatMessage, to_remember
from mneme.api.rendering import count_of
from mneme.cli.chat.chat import print_remembered
from mneme.cli.chat.responders import get_ready
from mneme.cli.options import Agents, User
from mneme.cli.show import (
    console,
    emit,
    errors,
    must_be_unicode,
    print_error,
    progress_bar,
    read_file,
    say,
)
from mneme.core.errors import BadInput, MnemeError, first_fault
from mneme.importing.writing import MessageCounts, send
from mneme.models.asking.counting import in_words
from mneme.stores.users.inbox import complete

MAX_PRINTED_FAILURES = 10
RESUME_HINT = "The same command goes on where it stopped; `mneme inbox list` shows what failed."


async def remember(
    source: Annotated[
        str,
        typer.Argument(
            metavar="TEXT|FILE",
            help="What the user said; or a file with a conversation: JSON Lines or plain text; `-` is stdin.",
        ),
    ],
    user: User = "local",
    agents: Agents = "auto",
) -> int:
    """Remember a sentence or a whole conversation; the same command continues an interrupted run."""
    file = Path(source)
    # one word with a suffix or a slash is a file that was mistyped, not a sentence to be remembered
    is_name = len(source.split()) == 1 and bool(file.suffix or len(file.parts) > 1)
    # `Path.is_file` raises where words are too long for a name, by bytes: some 85 Chinese letters
    if source == "-" or is_name or isfile(source):  # noqa: PTH113
        # the thread names the messages, by which the same command passes over those that are known
        conversation, thread = read_conversation(file), f"file/{file.name}"
    else:
        must_be_unicode(source, "What you gave", "Nothing of it is kept.")
        conversation, thread = Conversation([ChatMessage(role="user", content=source)]), ""
    rest = "The other lines are remembered." if conversation.turns else "Nothing is remembered."
    for number, reason in conversation.broken:
        print_error(BadInput(f"{source}, line {number}: {reason}.", rest))
    messages = [complete(each) for each in to_remember(conversation.turns, thread)]
    await get_ready({"memory_agent": agents})
    report = MessageCounts(messages=len(messages))
    with progress_bar() as progress:
        bar = progress.add_task("remembering", total=len(messages))
        async for report in send(messages, user, {"memory_agent": agents}):
            progress.update(bar, completed=report.done)
    outcomes = [{"message_id": name, **each} for name, each in report.outcomes.items()]
    broken = len(conversation.broken)
    new = [each for name, each in report.outcomes.items() if name not in report.earlier]
    await print_remembered(new, user)
    status = print_sent(report, {"outcomes": outcomes, "broken_lines": broken}, is_aside=True)
    if traces := dict.fromkeys(str(each["trace"]) for each in outcomes if each["trace"]):
        say(f"Traces: {' '.join(traces)}", errors)
    return int(status or broken > 0)


def print_sent(report: MessageCounts, more: dict[str, Any], *, is_aside: bool = False) -> int:
    """Print the outcomes of messages, in JSON with `more`; return 1 if one failed.

    With `is_aside` the count goes to the error stream. Raises MnemeError if the rest was not tried.
    """
    for failure in report.failed[:MAX_PRINTED_FAILURES]:
        print_error(BadInput(f"Not remembered yet: {failure.error}", RESUME_HINT))
    emit(report.model_dump(exclude={"underway", "earlier", "outcomes"}) | more)
    broken = more.get("broken_lines", 0)
    (errors if is_aside else console).print(
        f"{count_of(report.messages, 'message')}: {report.remembered} remembered, {report.nothing} with "
        f"nothing to remember, {report.known} known before, {len(report.failed)} failed"
        f"{f', {broken} broken lines' if broken else ''}. {in_words(report.asked)}",
        soft_wrap=True,
    )
    if report.stopped:
        left = count_of(report.messages - report.done, "message")
        raise MnemeError(f"Stopped with {left} not tried: {report.stopped}", RESUME_HINT)
    return int(bool(report.failed))


SPEAKER_PREFIX = re.compile(r"^(user|human|me|assistant|ai|bot)\s*:\s*", re.IGNORECASE)
ASSISTANTS = {"assistant", "ai", "bot"}
MESSAGE_FILE_HINT = "Give a text file or JSON Lines."


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
    """Read a conversation; a broken line is reported with its number, and the other lines are read.

    Raises:
        BadInput: the file does not exist, is not text, or has no message.
    """
    text = read_file(file, MESSAGE_FILE_HINT)
    if "\x00" in text:  # valid UTF-8, yet no text file has it
        raise BadInput(f"{file} is binary.", MESSAGE_FILE_HINT)
    conversation = Conversation()
    if file.suffix in {".json", ".jsonl"} or text.lstrip().startswith(("{", "[{")):
        _take_json(text, conversation)
    else:
        _take_text(text, conversation)
    if not conversation.turns and not conversation.broken:
        raise BadInput(f"{file} has no message.", "Write lines like `user: …`, or JSON Lines.")
    return conversation


def _take_json(text: str, conversation: Conversation) -> None:
    """Add the elements of a JSON array, or the lines of JSON, to a conversation. Raises BadInput."""
    lines = text.split("\n")  # `splitlines` would cut a string at U+2028, which JSON leaves as it is
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
    named = any(SPEAKER_PREFIX.match(line) for line in text.splitlines())
    start, role, words = 1, "user", list[str]()
    # the line that is added, a speaker or an empty one, ends the last turn
    for number, line in enumerate([*text.splitlines(), "user:" if named else ""], start=1):
        speaker = SPEAKER_PREFIX.match(line)
        if not speaker and (named or line.strip()):
            words.append(line)
            continue
        if "".join(words).strip():
            conversation.take(start, {"role": role, "content": "\n".join(words).strip()})
        start, words = number, [line[speaker.end() :]] if speaker else []
        role = "assistant" if speaker and speaker[1].lower() in ASSISTANTS else "user"
