"""Conversations of a user: the messages, the memories made from them, and the texts shown to each reply.

User messages from every interface are in the inbox, with the turns before them; a thread of the chatbot has
all turns, and the memories recalled for each.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from pydantic import BaseModel

from mneme.models.asking.counting import Asked, tokens
from mneme.stores.checkpoints.checkpointer import opened_checkpointer
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Namespace, Version, user_namespace
from mneme.stores.recall import read_again
from mneme.stores.users.inbox import Message, MessageOutcome, outcome_of

MAX_MESSAGES = 1000
"""Maximum number of the user's latest messages that are searched."""
MAX_TRACED_TURNS = 50
"""Number of latest turns of a thread for which the texts shown to the reply are looked up."""
MESSAGE_ROLES = {"human": "user", "ai": "assistant"}


class ConversationSummary(BaseModel):
    """A conversation: where it was held, how it begins, and how many messages of the user it has."""

    thread: str
    name: str = ""
    begins_with: str
    messages: int
    last: datetime


class ShownText(BaseModel):
    """One text shown to a reply beside the conversation, with its tokens."""

    kind: str
    text: str
    key: str = ""
    tokens: int


class ConversationTurn(BaseModel):
    """One turn of a conversation; a user's turn has its outcome and the texts shown to its reply."""

    role: str
    text: str
    message_id: str = ""
    at: datetime | None = None
    outcome: MessageOutcome | None = None
    shown: Sequence[ShownText] | None = None
    """Texts shown to the reply; None if unknown."""
    asked: Asked | None = None
    """The tokens of the reply's whole prompt, and its own."""

    def of(self, head: Version | None) -> "ConversationTurn":
        """Return the turn with the time and outcome that the inbox has for its message."""
        known = {"at": head.created, "outcome": outcome_of(head)} if head else {}
        return self.model_copy(update=known)


async def conversations(
    ledger: Ledger, user: str, names: Mapping[str, str], limit: int
) -> list[ConversationSummary]:
    """Return the conversations of a user, the latest first; `names` maps thread ids to names."""
    inbox, threads = user_namespace(user, "inbox"), defaultdict[str, list[Version]](list)
    for head in await ledger.records(inbox, limit=MAX_MESSAGES, include_retired=True, newest_first=True):
        if head.value["thread"] and not head.value.get("rereads"):
            threads[str(head.value["thread"])].append(head)
    found = list[ConversationSummary]()
    for thread, heads in [*threads.items()][:limit]:  # in the order of each one's latest message
        (*_, first) = await told(ledger, heads[-1:])
        known = {"begins_with": first.text, "messages": len(heads), "last": heads[0].created}
        found.append(ConversationSummary(thread=thread, name=names.get(thread, ""), **known))
    return found


async def messages_in(ledger: Ledger, user: str, thread: str, message_id: str) -> list[Version]:
    """Return the user's messages in a thread, or in that of a message, the oldest first."""
    inbox = user_namespace(user, "inbox")
    head = await ledger.get(inbox, message_id) if message_id and not thread else None
    if not (thread := thread or (str(head.value["thread"]) if head else "")):
        return [head] if head else []
    found = await ledger.records(
        inbox, filter={"thread": thread}, limit=MAX_MESSAGES, include_retired=True, newest_first=True
    )
    return [each for each in reversed(found) if not each.value.get("rereads")]


async def told(ledger: Ledger, messages: Sequence[Version]) -> list[ConversationTurn]:
    """Return the turns of these messages from the inbox: each message follows the turns before it."""
    said, turns = list[str](), list[ConversationTurn]()
    for head in messages:
        # Its first version: closing a message takes its text out of the head.
        message = cast(Message, (await ledger.history(head.namespace, head.key))[0].value)
        before = message.get("preceding", [])
        # The longest beginning of `before` with which `said` ends; 0 always fits.
        known = next(n for n in range(len(before), -1, -1) if said[len(said) - n :] == before[:n])
        for each in before[known:]:
            role, _, text = each.partition(": ")
            turns.append(ConversationTurn(role=role, text=text))
        turns.append(ConversationTurn(role="user", text=message["message"], message_id=head.key))
        said += [*before[known:], f"user: {message['message']}"]
    return turns


async def turns_of_thread(
    ledger: Ledger, thread: str, sees: Callable[[Namespace], bool]
) -> list[ConversationTurn]:
    """Return all turns of a graph's thread, and the texts shown to the latest replies."""
    place: Any = {"configurable": {"thread_id": thread}}
    async with opened_checkpointer(to_read=True) as saver:
        latest = await saver.aget_tuple(place)
        # a turn begins where the last one ended
        begun = [
            each async for each in saver.alist(place, filter={"source": "input"}, limit=MAX_TRACED_TURNS)
        ]
    states = [each.checkpoint["channel_values"] for each in (latest, *begun) if each]
    if not (states and "recalled" in states[0]):  # another graph's
        return []
    replies = {  # by the message that each answers; the latest state of a message stays
        next((each.id for each in reversed(state.get("messages") or ()) if each.type == "human"), ""): state
        for state in reversed(states)
    }
    names = [name for state in states for name in state.get("shared") or ()]
    read = {each.name: each for each in await read_again(ledger, list(dict.fromkeys(names)), sees)}

    def shown(state: Mapping[str, Any]) -> list[ShownText]:
        keys = state.get("keys") or [""] * len(state["recalled"])  # threads of earlier versions have none
        memories = zip(state["recalled"], keys, strict=True)
        shared = [read[name] for name in state.get("shared") or () if name in read]
        texts = [
            *(("memory", each["content"], key) for each, key in memories),
            *((each.kind, each.line, each.key) for each in shared),
            *(("not remembered yet", each, "") for each in state.get("said") or ()),
        ]
        return [ShownText(kind=kind, text=text, key=key, tokens=tokens(text)) for kind, text, key in texts]

    def turn(message: Any) -> ConversationTurn:
        role, state = MESSAGE_ROLES.get(message.type, message.type), replies.get(message.id, {})
        known = {"shown": shown(state), "asked": state.get("asked")} if "recalled" in state else {}
        return ConversationTurn(role=role, text=message.text, message_id=message.id or "", **known)

    return [turn(each) for each in states[0].get("messages") or ()]
