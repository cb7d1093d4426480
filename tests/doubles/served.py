"""Questions to ask in tests, and an Ollama double that the whole process takes for the real server."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from mneme.core.settings import settings
from mneme.models.asking.asking import clear_endpoints
from mneme.models.embedding import embedders
from mneme.prompts.prompt import Prompt
from mneme.rules.registry import rule
from tests.doubles.ollama import Brain, Model, OllamaDouble, Reply


class Note(BaseModel):
    """Something somebody said."""

    message: str


class Place(BaseModel):
    """Where something is."""

    city: str
    country: str | None = None


class Sorting(BaseModel):
    """What is to be done with a note."""

    reason: str
    route: Literal["store", "discard"]
    names: list[str] = []
    place: Place | None = None
    quote: str = Field("", pattern=r".*")


sort_note = Prompt(
    name="sort_note",
    given=Note,
    answer=Sorting,
    system="You sort notes.",
    user="Note: $message",
    examples=[
        'Note: Lea is my aunt.\n{"reason": "It says who the aunt is.", "route": "store", "names": ["Lea"]}'
    ],
)


@rule(sort_note)
def sort_note_by_rule(given: Note) -> Sorting:
    """Store what speaks of the speaker."""
    stored = "I " in given.message
    return Sorting(reason="It speaks of me." if stored else "No I.", route="store" if stored else "discard")


@sort_note.check
def quote_is_verbatim(given: Note, answer: Sorting) -> None:
    """Refuse a quote that is not in the note."""
    if answer.quote not in given.message:
        raise ValueError(f"The quote {answer.quote!r} is not in the note.")


greet = Prompt(name="greet", given=Note, answer=str, system="You are kind.", user="$message")


@rule(greet)
def greet_by_rule(given: Note) -> str:
    """Greet in return."""
    return f"Hello, and thank you for: {given.message}"


NOTE = Note(message="I live in Ulm.")
STORED = {"reason": "home", "route": "store", "names": [], "quote": "Ulm"}
GOOD = json.dumps(STORED)
WHO = "ollama:llama3.1:8b"


@contextmanager
def served(monkeypatch: pytest.MonkeyPatch, *models: Model, **knobs: Any) -> Iterator[OllamaDouble]:
    """Run a double and point the settings at it, with waits short enough for a test."""
    with OllamaDouble(*models, **knobs) as double:
        point_at(monkeypatch, double.url)
        monkeypatch.setenv("MNEME_PARALLEL", str(double.parallel))
        monkeypatch.setenv("MNEME_RETRY_SECONDS", "0.01")
        settings.cache_clear()
        yield double
    settings.cache_clear()
    clear_endpoints()
    embedders.clear_embedders()


def point_at(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """Make an address the process's Ollama, and forget all that was known of another."""
    monkeypatch.setenv("MNEME_OLLAMA_URL", url)
    settings.cache_clear()
    clear_endpoints()
    embedders.clear_embedders()


def answers_up_to(number: int, double: OllamaDouble, brain: Brain) -> Brain:
    """Make a brain that leaves this request and all after it unanswered: who asks waits there."""
    return lambda body: Reply(seconds=3600) if len(double.chats) >= number else brain(body)
