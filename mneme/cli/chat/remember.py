"""`mneme remember TEXT|FILE`: remember a sentence or a whole conversation."""

from pathlib import Path
from typing import Annotated, Any

import typer

from mneme.api.messages import ChatMessage, to_remember
from mneme.cli.chat.conversation import Conversation, read_conversation
from mneme.cli.chat.talk import get_ready
from mneme.cli.options import Agents, User
from mneme.cli.show import console, count_of, emit, errors, print_error, progress_bar
from mneme.core.errors import BadInput, MnemeError
from mneme.importing.writing import Sent, send
from mneme.models.asking.counting import in_words
from mneme.stores.users.inbox import complete

LONGEST_NAME = 250
"""Characters from which a text cannot be the name of a file."""
FAILURES_SHOWN = 10
AGAIN = "The same command goes on where it stopped; `mneme inbox list` shows what failed."


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
    is_name = len(source.split()) == 1 and bool(file.suffix or len(file.parts) > 1)
    if source == "-" or is_name or (len(source) < LONGEST_NAME and file.is_file()):
        conversation, thread = read_conversation(file), f"file/{file.name}"
    else:
        conversation, thread = Conversation([ChatMessage(role="user", content=source)]), ""
    for number, reason in conversation.broken:
        print_error(BadInput(f"{source}, line {number}: {reason}.", "The other lines are remembered."))
    messages = [complete(each) for each in to_remember(conversation.turns, thread)]
    await get_ready({"memory_agent": agents})
    report = Sent(messages=len(messages))
    with progress_bar() as progress:
        bar = progress.add_task("remembering", total=len(messages))
        async for report in send(messages, user, {"memory_agent": agents}):
            progress.update(bar, completed=report.done)
    outcomes = [{"message_id": name, **each} for name, each in report.outcomes.items()]
    broken = len(conversation.broken)
    status = print_sent(report, {"outcomes": outcomes, "broken_lines": broken}, is_aside=True)
    if traces := dict.fromkeys(str(each["trace"]) for each in outcomes if each["trace"]):
        errors.print(f"Traces: {' '.join(traces)}", soft_wrap=True)
    return int(status or broken > 0)


def print_sent(report: Sent, more: dict[str, Any], *, is_aside: bool = False) -> int:
    """Print what became of messages, in JSON with `more`; return 1 if one failed.

    What is `aside` goes to the error stream. Raises MnemeError where the rest was not tried.
    """
    for failure in report.failed[:FAILURES_SHOWN]:
        print_error(BadInput(f"Not remembered yet: {failure.error}", AGAIN))
    emit(report.model_dump(exclude={"underway", "outcomes"}) | more)
    broken = more.get("broken_lines", 0)
    (errors if is_aside else console).print(
        f"{count_of(report.messages, 'message')}: {report.remembered} remembered, {report.nothing} with "
        f"nothing to remember, {report.known} known before, {len(report.failed)} failed"
        f"{f', {broken} broken lines' if broken else ''}. {in_words(report.asked)}",
        soft_wrap=True,
    )
    if report.stopped:
        left = count_of(report.messages - report.done, "message")
        raise MnemeError(f"Stopped with {left} not tried: {report.stopped}", AGAIN)
    return int(bool(report.failed))
