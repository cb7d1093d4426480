"""Public conversations that the user brings, each a course: LoCoMo, LongMemEval, MemoryAgentBench.

Each JSON file in a folder is recognised by its fields, and is a family of its own, named as the file:

- LoCoMo (CC BY-NC 4.0): a list with `conversation` and `qa`.
- LongMemEval (MIT), S, M and oracle: a list with `haystack_sessions` and one `question`.
- MemoryAgentBench (MIT): lines, or a list, with `context`, `questions` and `answers`.

A task is right where the answer has every word of an expected one. By rules the answer is all that was
recalled: so what is compared is whether a memory finds the evidence. LoCoMo's own scores are those of
`mneme eval locomo`; LongMemEval's are a model's judgement. Of a question about what was never said, the right
answer says so, which rules cannot.
"""

import json
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from mneme.core.errors import BadInput, first_fault
from mneme.evals.chat.locomo_data import Conversation
from mneme.evals.compare.memory import UNKNOWN, Course, Event, Family, Outcome, Score, Situation
from mneme.evals.report import read_lines
from mneme.stores.ledger.words import words_in

NARRATOR = "text"
"""Speaker of a text without one."""
ADVERSARIAL = 5
SENTENCE_BREAK = re.compile(r"(?<=[.!?])\s+|\n+")
PUBLIC_DATA_HINT = (
    "A folder with files of LoCoMo, LongMemEval or MemoryAgentBench (.json or .jsonl), as they are released."
)


class Question(BaseModel):
    """A question, and the answers that are right."""

    text: str
    right: list[str]
    day: str = ""


class History(BaseModel):
    """The messages of a conversation, and the questions about it."""

    events: list[Event]
    questions: list[Question]


class LongMemEval(BaseModel):
    """One question with its history, in the published format."""

    question_id: str
    question: str
    answer: str | int | float
    question_date: str
    haystack_dates: list[str]
    haystack_sessions: list[list[dict[str, Any]]]

    @property
    def history(self) -> History:
        """Return it as a history."""
        sessions = zip(self.haystack_dates, self.haystack_sessions, strict=True)
        events = [
            Event(_day(day), str(turn["role"]), str(turn["content"]))
            for day, turns in sessions
            for turn in turns
        ]
        # LongMemEval's abstention questions.
        right = UNKNOWN if self.question_id.endswith("_abs") else str(self.answer)
        return History(
            events=events,
            questions=[Question(text=self.question, right=[right], day=_day(self.question_date))],
        )


class MemoryAgentBench(BaseModel):
    """A long text, and questions about it."""

    context: str
    questions: list[str]
    answers: list[list[str] | str]

    @property
    def history(self) -> History:
        """Return it as a history, a sentence at a time."""
        events = [Event("", NARRATOR, each) for each in SENTENCE_BREAK.split(self.context) if each.strip()]
        both = zip(self.questions, self.answers, strict=True)
        questions = [
            Question(text=text, right=[right] if isinstance(right, str) else right) for text, right in both
        ]
        return History(events=events, questions=questions)


def _of_locomo(conversation: Conversation) -> History:
    events = [Event(turn.day, turn.speaker, turn.said) for turn in conversation.turns]
    questions = [
        Question(text=each.question, right=[UNKNOWN if each.category == ADVERSARIAL else each.answer])
        for each in conversation.questions
    ]
    return History(events=events, questions=questions)


ENTRY_READERS: dict[str, tuple[Any, Callable[[Any], History]]] = {
    "conversation": (Conversation, _of_locomo),
    "haystack_sessions": (LongMemEval, lambda each: each.history),
    "context": (MemoryAgentBench, lambda each: each.history),
}
"""Types and readers of the formats, by a field that only one format has."""


def of_folder(folder: Path) -> dict[str, Family]:
    """Return a family for each file of a folder, or of a file itself. Raises BadInput."""
    if not (files := files_in(folder)):
        raise BadInput(f"There is no file with conversations in {folder}.", PUBLIC_DATA_HINT)
    people = {
        each: sorted({event.who for history in read(each) for event in history.events}) for each in files
    }
    return {each.stem: Family(each.stem, partial(_play, each), who) for each, who in people.items()}


def files_in(folder: Path) -> list[Path]:
    """Return the files that are read: those of a folder, or a file itself."""
    return [folder] if folder.is_file() else sorted([*folder.glob("*.json"), *folder.glob("*.jsonl")])


@cache
def read(file: Path) -> tuple[History, ...]:
    """Read a file's histories. Raises BadInput with the fault."""
    if file.suffix == ".jsonl":
        return tuple(_histories(file, read_lines(file, dict, PUBLIC_DATA_HINT)))
    try:
        entries = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{file} cannot be read: {error}.", PUBLIC_DATA_HINT) from error
    return tuple(_histories(file, entries))


def _histories(file: Path, entries: Any) -> Iterator[History]:
    first = entries[0] if isinstance(entries, list) and entries and isinstance(entries[0], dict) else {}
    field = next((each for each in ENTRY_READERS if each in first), "")
    if not field:
        raise BadInput(f"{file} has none of the forms that are read.", PUBLIC_DATA_HINT)
    kind, made = ENTRY_READERS[field]
    try:
        for each in TypeAdapter(list[kind]).validate_python(entries):  # type: ignore[valid-type]
            yield made(each)
    except ValidationError as error:
        raise BadInput(f"{file}: {first_fault(error, 'an entry')}", PUBLIC_DATA_HINT) from error


def _play(file: Path, seed: int, size: int) -> Course:
    """Play the history of a number, with that many of its questions."""
    histories = read(file)
    history = histories[(seed - 1) % len(histories)]
    for event in history.events:  # noqa: UP028  (a list cannot be sent an answer)
        yield event
    for question in history.questions[:size]:
        today = f" (Today is {question.day}.)" if question.day else ""
        answer = yield Situation(f"{question.text}{today} If it was not said: {UNKNOWN}.", " ".join)
        is_right = any(words_in(each) <= words_in(answer) for each in question.right if each)
        yield Score(Outcome(question.text, is_right, "", question.day))


def _day(text: str) -> str:
    """Return the ISO date of LongMemEval's `2023/05/20 (Sat) 02:36`."""
    return text[:10].replace("/", "-")
