"""Answers by the exact words that they were asked with, whatever the white space between the words."""

import hashlib
import unicodedata
from typing import Any

from pydantic import BaseModel, ConfigDict

from mneme.core.errors import Conflict
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.namespaces import team_namespace
from mneme.stores.ledger.records import Change, Source, Value


class CachedAnswer(BaseModel):
    """What a task was answered with."""

    model_config = ConfigDict(frozen=True)

    task: str
    packet: dict[str, Any]
    draft: dict[str, Any]


class PromptCache:
    """The answers of one team; the first answer to a prompt stays."""

    def __init__(self, ledger: Ledger, team: str) -> None:
        self._ledger = ledger
        self._namespace = team_namespace(team, "task_memory", "prompt_cache")

    async def get(self, prompt: str) -> CachedAnswer | None:
        """Return the answer to a prompt; None where it was not asked before."""
        found = await self._ledger.get(self._namespace, _key(prompt))
        return CachedAnswer.model_validate(found.value["answer"]) if found and found.live else None

    async def add(self, prompt: str, answer: CachedAnswer) -> bool:
        """Keep an answer; return False where the prompt has one already."""
        change = Change(reason="answered", actor="prompt cache", source=Source(tasks=[answer.task]))
        value: Value = {"prompt": prompt, "answer": answer.model_dump(mode="json")}
        try:
            await self._ledger.insert(self._namespace, value, text="", change=change, key=_key(prompt))
        except Conflict:
            return False
        return True


def _key(prompt: str) -> str:
    words = " ".join(unicodedata.normalize("NFC", prompt).split())
    return hashlib.sha256(words.encode()).hexdigest()
