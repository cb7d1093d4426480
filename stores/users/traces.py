"""What a user's inbox still holds of what was told, so that it can be forgotten with a memory."""

from collections.abc import Set
from typing import NamedTuple, cast

from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.namespaces import user_namespace
from mneme.stores.ledger.records import Value, Version
from mneme.stores.users.inbox import Message, outcome_of, trouble_of, untroubled
from mneme.stores.users.told import Told


class Traces(NamedTuple):
    """Inbox records to forget, and records that stay with a new value."""

    gone: list[Version]
    rewritten: list[tuple[Version, Value]]


class InboxTraces:
    """What one user's inbox holds, looked at by what was told."""

    def __init__(self, ledger: Ledger, user: str) -> None:
        self._ledger, self._namespace = ledger, user_namespace(user, "inbox")

    async def about(self, keys: Set[str], known: Told) -> Told:
        """Add to what is known of memories the messages whose outcome names one, and what they all said."""
        heads = await self._heads()
        about = {head.key for head in heads if head.key in known.messages or keys & _concerned(head)}
        return known | Told(frozenset(about), turns=frozenset(await self._said(about)))

    async def find(self, told: Told) -> Traces:
        """Find the records in which something of it stands.

        Closed messages only record work that is done, so all of them are forgotten, with the turns before
        them. A message that is still open stays, without the turns in question, unless it tells the same.
        """
        heads = await self._heads()
        gone = [head for head in heads if not head.live or _tells(head, told)]
        texts = await self._said({head.key for head in gone} & told.messages) | told.texts
        stays = [(head, _without(head.value, texts)) for head in heads if head not in gone]
        return Traces(gone, [(head, value) for head, value in stays if value != head.value])

    async def _heads(self) -> list[Version]:
        count = await self._ledger.count(self._namespace, include_retired=True)
        return await self._ledger.records(self._namespace, limit=count, include_retired=True)

    async def _said(self, messages: Set[str]) -> set[str]:
        """Return the words of messages as they came in; closing one takes them out of its latest version."""
        histories = [await self._ledger.history(self._namespace, message) for message in messages]
        return {said for versions in histories if (said := str(versions[0].value["message"]).strip())}


def _concerned(head: Version) -> set[str]:
    """Return the keys of the memories that a closed message was found to concern."""
    outcome = outcome_of(head)
    return {each["key"] for each in outcome["operations"]} if outcome else set()


def _tells(head: Version, told: Told) -> bool:
    return head.key in told.messages or told.is_in(str(head.value["message"]))


def _without(value: Value, texts: Set[str]) -> Value:
    """Leave out the turns before a message, and the reply to it, that hold any of these texts."""

    def holds(said: str) -> bool:
        return any(text in said for text in texts if text)

    turns = [turn for turn in cast(Message, value)["preceding"] if not holds(turn)]
    trouble = trouble_of(value)
    left = value if not holds(f"{trouble['error']} {trouble['reply']}") else untroubled(value)
    return cast(Value, left | {"preceding": turns})
