"""What a memory was told by: the messages and the words that go with it when it is erased."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from mneme.stores.ledger.records import Version

SHORTEST = 8
"""Characters of words that are looked for inside of other texts."""


@dataclass(frozen=True)
class Told:
    """The ids of messages; the texts and quotes of a memory in any version; messages as they were sent."""

    messages: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    turns: frozenset[str] = frozenset()

    def __or__(self, other: "Told") -> "Told":
        return Told(self.messages | other.messages, self.texts | other.texts, self.turns | other.turns)

    def is_in(self, text: str) -> bool:
        """Tell whether a text is one of these, or has one in it.

        A single word, such as a name, is not looked for inside of others: they may speak of something else.
        """
        return text.strip() in self.sayings or any(part in text for part in self.passages)

    @cached_property
    def sayings(self) -> frozenset[str]:
        """All texts and whole messages."""
        return self.texts | self.turns

    @cached_property
    def passages(self) -> frozenset[str]:
        """The texts of several words."""
        return frozenset(text for text in self.sayings if len(text) >= SHORTEST and " " in text.strip())


def told_by(history: Sequence[Version]) -> Told:
    """Return what all versions of a memory rest on and say; what cannot be read in them is passed over."""
    messages: set[str] = set()
    texts: set[str] = set()
    for version in history:
        messages.update(version.change.source.messages)
        statements = version.value.get("statements")
        for said in (version.value, *(statements if isinstance(statements, list) else ())):
            if isinstance(said, dict):
                messages.add(str(said.get("message_id") or ""))
                texts.update(str(said.get(name) or "").strip() for name in ("content", "quote"))
    return Told(frozenset(messages - {""}), frozenset(texts - {""}))
