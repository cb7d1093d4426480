"""Traces of a memory: its source messages and their remains in the inbox, which are erased with it."""

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, cast

from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import LOCAL, Value, Version, user_namespace
from mneme.stores.users.inbox import Message, outcome_of, trouble_of, untroubled

MIN_CHARS = 8
"""Minimum characters of a text that is searched for inside other texts."""

THE_USER = re.compile(
    r"(?<=\band )the user\b|\b[Tt]he user(?=['’]s\b|\W*$|[.,;]|\s+(?:\||no longer|will|would|can|could|may"
    r"|might|must|had|and|\w*(?:[^\Ws]s|ed)\b))"
)
"""The owner of a memory, in what the memory agent wrote; not `the user table`."""


def third_person(text: str, owner: str) -> str:
    """Return a memory's text for other readers: "the user" becomes the owner's name."""
    return text if owner == LOCAL else THE_USER.sub(lambda _: owner, text)


@dataclass(frozen=True)
class Origins:
    """The sources of a memory: message ids, all its texts and quotes in any version, and sent messages."""

    messages: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    turns: frozenset[str] = frozenset()

    def __or__(self, other: "Origins") -> "Origins":
        return Origins(self.messages | other.messages, self.texts | other.texts, self.turns | other.turns)

    def is_in(self, text: str) -> bool:
        """Return whether a text is or contains one of these."""
        # A single word, such as a name, is not searched inside others, which may be about something else.
        return text.strip() in self.sayings or any(part in text for part in self.passages)

    @cached_property
    def sayings(self) -> frozenset[str]:
        """All texts and whole messages."""
        return self.texts | self.turns

    @cached_property
    def passages(self) -> frozenset[str]:
        """The texts of several words, without punctuation at their end."""
        ended = (text.strip().rstrip(".!?") for text in self.sayings)
        return frozenset(text for text in ended if len(text) >= MIN_CHARS and " " in text)


def origins_of(history: Sequence[Version]) -> Origins:
    """Return the sources and texts of all versions of a memory; unreadable versions are skipped."""
    messages: set[str] = set()
    texts: set[str] = set()
    for version in history:
        messages.update(version.change.source.messages)
        statements = version.value.get("statements")
        for said in (version.value, *(statements if isinstance(statements, list) else ())):
            if isinstance(said, dict):
                messages.add(str(said.get("message_id") or ""))
                texts.update(str(said.get(name) or "").strip() for name in ("content", "quote"))
    return Origins(frozenset(messages - {""}), frozenset(texts - {""}))


class Traces(NamedTuple):
    """Inbox records to forget, and records that stay with a new value."""

    gone: list[Version]
    rewritten: list[tuple[Version, Value]]


class InboxTraces:
    """The traces of memories in one user's inbox."""

    def __init__(self, ledger: Ledger, user: str) -> None:
        self._ledger, self._namespace = ledger, user_namespace(user, "inbox")

    async def about(self, keys: Set[str], known: Origins) -> Origins:
        """Add to known sources the messages whose outcome names one of the memories, and their texts."""
        about = set[str]()
        for head in await self._heads():
            outcome = outcome_of(head)
            if head.key in known.messages or (outcome and keys & {e["key"] for e in outcome["operations"]}):
                about.add(head.key)
        return known | Origins(frozenset(about), turns=frozenset(await self._said(about)))

    async def find(self, told: Origins) -> Traces:
        """Find the inbox records that contain anything from these sources.

        All closed messages are forgotten, with the turns before them. An open one stays, without the turns in
        question, unless it has the same content itself.
        """
        heads = await self._heads()
        # All closed ones: they only record finished work, and their rationales may repeat anything.
        gone = [head for head in heads if not head.live or _tells(head, told)]
        texts = await self._said({head.key for head in gone} & told.messages) | told.texts
        stays = [(head, _without(head.value, texts)) for head in heads if head not in gone]
        return Traces(gone, [(head, value) for head, value in stays if value != head.value])

    async def _heads(self) -> list[Version]:
        return await self._ledger.records(self._namespace, limit=None, include_retired=True)

    async def _said(self, messages: Set[str]) -> set[str]:
        """Return the original texts of messages; closing one removes them from its latest version."""
        histories = [await self._ledger.history(self._namespace, message) for message in messages]
        return {said for versions in histories if (said := str(versions[0].value["message"]).strip())}


def _tells(head: Version, told: Origins) -> bool:
    return head.key in told.messages or told.is_in(str(head.value["message"]))


def _without(value: Value, texts: Set[str]) -> Value:
    """Remove from a message the turns, and the failed reply, that contain any of these texts."""

    def holds(said: str) -> bool:
        return any(text in said for text in texts if text)

    turns = [turn for turn in cast(Message, value)["preceding"] if not holds(turn)]
    trouble = trouble_of(value)
    left = value if not holds(f"{trouble['error']} {trouble['reply']}") else untroubled(value)
    return cast(Value, left | {"preceding": turns})
