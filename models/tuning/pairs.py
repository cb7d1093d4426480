"""Pairs of question and answer on which a model is tuned and judged, from cards or from a pool."""

from collections.abc import Callable, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

SYSTEM_PROMPT = (
    "You are an agent of a team that keeps what it learned. Say how the task is best approached, and why."
)
"""The system text in training, judging and comparing: without one, a chat template may put in its own."""

LEARNED_HEADING = "What the team has learned:"

Progress = Callable[[dict[str, float]], None]
"""Called with the progress of long work: `done` of `of` steps, and the training's `loss`; must not block."""


def silent(_: dict[str, float]) -> None:
    """Ignore the progress."""


class Recipe(BaseModel):
    """Settings of a tuning."""

    epochs: int = Field(3, ge=1, le=100, description="Rounds through the training pairs.")
    rank: int = Field(16, ge=1, le=256, description="Rank of the adapter's matrices.")
    rate: float = Field(2e-4, gt=0, le=1, description="Learning rate.")
    batch: int = Field(4, ge=1, le=256, description="Pairs in one step.")
    longest: int = Field(512, ge=32, le=8192, description="Tokens of a pair; more are cut.")
    seed: int = Field(0, ge=0, description="Seed of the training.")


class Pair(BaseModel):
    """One question with its answer, and the lessons that retrieval finds before and after a promotion."""

    model_config = ConfigDict(frozen=True)

    key: str = Field(min_length=1, description="What it was learned from: a card's id, a pair's key.")
    asked: str = Field(min_length=1)
    answer: str = Field(min_length=1)
    shown: list[str] = Field([], description="Lessons that are retrieved for it now.")
    delta: list[str] = Field([], description="Lessons that are retrieved once the tuned ones are archived.")
    world: str = Field("", description="Where the task can be replayed: the name of its kind of world.")
    posed: dict[str, Any] = Field({}, description="What its world reads of it.")
    approaches: list[str] = Field([], description="What the lesson's rules say to do.")


class Pairs(BaseModel):
    """Pairs to train on, pairs that no training sees, and tasks that are replayed to compare two models."""

    model_config = ConfigDict(frozen=True)

    train: list[Pair] = []
    held_out: list[Pair] = []
    replays: list[Pair] = []
    keys: list[str] = Field(
        [], description="What the tuned model has learned, and need not be shown any more."
    )


class Question(BaseModel):
    """A question of general knowledge, and the words that a right answer contains."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: str = Field(min_length=1)
    right: str = Field(min_length=1)


def with_lessons(asked: str, lessons: Sequence[str]) -> str:
    """Return a task with lessons in front of it, as an agent is shown retrieved cards."""
    if not lessons:
        return asked
    known = "\n".join(f"- {lesson}" for lesson in lessons)
    return f"{LEARNED_HEADING}\n{known}\n\n{asked}"
