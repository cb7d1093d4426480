"""Answers by the exact words that they were asked with, whatever the white space between the words."""

import hashlib
import unicodedata
from typing import Any

from pydantic import BaseModel, ConfigDict

from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change, Source, team_namespace
from mneme.stores.shelf import Shelf, kind_of


class CachedAnswer(BaseModel):
    """The answer to a task."""

    model_config = ConfigDict(frozen=True)

    task: str
    packet: dict[str, Any]
    draft: dict[str, Any]


class CacheEntry(BaseModel):
    """A prompt with its answer, as they are stored."""

    prompt: str
    answer: CachedAnswer


class PromptCache:
    """The answers of one team; the first answer to a prompt stays."""

    def __init__(self, ledger: Ledger, team: str) -> None:
        kind = kind_of(CacheEntry)
        self._kept = Shelf(ledger, team_namespace(team, "task_memory", "prompt_cache"), kind)

    async def get(self, prompt: str) -> CachedAnswer | None:
        """Return the answer to a prompt; None where it was not asked before."""
        found = await self._kept.find(_key(prompt))
        return found.answer if found else None

    async def add(self, prompt: str, answer: CachedAnswer) -> bool:
        """Keep an answer; return False where the prompt has one already."""
        change = Change(reason="answered", actor="prompt cache", source=Source(tasks=[answer.task]))
        return await self._kept.add_new(_key(prompt), CacheEntry(prompt=prompt, answer=answer), change=change)


def _key(prompt: str) -> str:
    words = " ".join(unicodedata.normalize("NFC", prompt).split())  # é is one character or two
    return hashlib.sha256(words.encode()).hexdigest()
