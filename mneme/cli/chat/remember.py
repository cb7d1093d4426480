"""`mneme remember TEXT|FILE`: remember a sentence or a whole conversation."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from mneme.api.messages import ChatMessage, to_remember
from mneme.cli.chat.conversation import Conversation, read_conversation
from mneme.cli.chat.talk import Context, get_ready
from mneme.cli.options import Agents, User
from mneme.cli.show import emit, errors, print_error, prints_json, progress_bar
from mneme.client.session import Session, open_session
from mneme.core.errors import BadInput
from mneme.models.asking.counting import NOTHING, added, in_words
from mneme.stores.users.inbox import complete

LONGEST_NAME = 250
"""Characters from which a text cannot be the name of a file."""
AT_ONCE = 20
"""Messages in one run; a killed process leaves at most this many unfinished."""


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
    context: Context = {"memory_agent": agents}
    conversation, thread = _given(source)
    for number, reason in conversation.broken:
        print_error(BadInput(f"{source}, line {number}: {reason}.", "The other lines are remembered."))
    await get_ready(context)
    async with open_session(user) as session:
        report = await _remember(session, conversation, thread, context)
    _print_report(report, len(conversation.broken))
    return 1 if conversation.broken or report["failed"] else 0


def _given(source: str) -> tuple[Conversation, str]:
    """Return what to remember, and its thread's name. One word with a dot or slash in it names a file."""
    file = Path(source)
    is_name = len(source.split()) == 1 and bool(file.suffix or len(file.parts) > 1)
    if source == "-" or is_name or (len(source) < LONGEST_NAME and file.is_file()):
        return read_conversation(file), f"file/{file.name}"
    return Conversation([ChatMessage(role="user", content=source)]), ""


async def _remember(
    session: Session, conversation: Conversation, thread: str, context: Context
) -> dict[str, Any]:
    """Remember the messages in batches; messages that were remembered before cost nothing."""
    messages = [complete(each) for each in to_remember(conversation.turns, thread)]
    config, left_over = await session.background(), await session.inbox.waiting()
    report: dict[str, Any] = {
        "messages": len(messages),
        "remembered": 0,
        "failed": [],
        "asked": NOTHING,
        "outcomes": [],
    }
    with progress_bar() as progress:
        bar = progress.add_task("remembering", total=len(messages))
        for start in range(0, len(messages), AT_ONCE):
            batch = messages[start : start + AT_ONCE]
            given, own = {"messages": batch}, context | {"user": session.user, "reread": False}
            done = await session.flows.invoke("remember", given, config, own)
            report["remembered"] += done["remembered"]
            report["failed"] += done["failed"]
            report["asked"] = added(report["asked"], done["asked"])
            report["outcomes"] += await _outcomes(session, [each["message_id"] for each in batch])
            progress.update(bar, advance=len(batch))
    report["remembered"] = max(0, report["remembered"] - left_over)
    return report


async def _outcomes(session: Session, ids: Sequence[str]) -> list[dict[str, Any]]:
    """Return what became of messages, as far as it is known."""
    found = [(each, await session.inbox.outcome(each)) for each in ids]
    return [{"message_id": each, **outcome} for each, outcome in found if outcome]


def _print_report(report: dict[str, Any], broken: int) -> None:
    for failure in report["failed"]:
        hint = "Run the command again, or see `mneme inbox list`."
        print_error(BadInput(f"Not remembered yet: {failure['error']}", hint))
    if prints_json():
        emit(report | {"broken_lines": broken})
        return
    known = report["messages"] - report["remembered"] - len(report["failed"])
    errors.print(
        f"{report['messages']} messages: {report['remembered']} processed now, {known} before, "
        f"{len(report['failed'])} to be tried again, {broken} broken lines. {in_words(report['asked'])}",
        soft_wrap=True,
    )
    if traces := dict.fromkeys(each["trace"] for each in report["outcomes"] if each["trace"]):
        errors.print(f"Traces: {' '.join(traces)}", soft_wrap=True)
