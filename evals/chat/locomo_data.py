"""LoCoMo's conversations and questions, read from the user's own copy, and its scores for answers.

LoCoMo (Maharana et al., ACL 2024; CC BY-NC 4.0) is not shipped: `--data` or MNEME_DATA says where it is.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from importlib import import_module
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

from pydantic import BaseModel, Field, TypeAdapter, ValidationError, field_validator, model_validator

from mneme.core.errors import BadInput, first_fault
from mneme.core.settings import settings

LOCOMO_CONVERSATIONS = 10
"""Number of conversations in the whole benchmark."""
QUESTION_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
LOCOMO_HINT = "Give LoCoMo's JSON file, or the folder that holds it, with --data or MNEME_DATA."
NOT_MENTIONED = "Not mentioned in the conversation"
REQUEST = "Answer with a short phrase, in exact words of the memories whenever possible. Short answer:"

_TURN_ID = re.compile(r"D\d+:\d+")
_LETTER = re.compile(r"(?:\(|^)([ab])(?:\)|\W*$)")  # "(a)", "a)", or a reply that is the letter alone
_SESSION = re.compile(r"session_(\d+)")


class Turn(BaseModel):
    """One utterance; `date` is its session's."""

    speaker: str
    dia_id: str
    text: str
    blip_caption: str = ""
    date: str = ""

    @property
    def wording(self) -> str:
        """Return speaker, text and time of the turn, as the benchmark's own retrieval units have them."""
        return f"{self.speaker} ({self.date}): {self.said}"

    @property
    def said(self) -> str:
        """Return the text, and the caption of a shared photo."""
        return self.text + (f" [shares a photo: {self.blip_caption}]" if self.blip_caption else "")

    @property
    def session(self) -> str:
        """Return the session that the turn belongs to: D1 of D1:3."""
        return self.dia_id.partition(":")[0]

    @property
    def day(self) -> str:
        """Return the session's day as an ISO date; empty where it is not written as in the benchmark."""
        try:
            return datetime.strptime(self.date.partition(" on ")[2], "%d %B, %Y").date().isoformat()
        except ValueError:
            return ""


class Question(BaseModel):
    """One question; `evidence` names the turns that answer it."""

    question: str
    category: int = Field(ge=1, le=5)
    answer: str = ""
    adversarial_answer: str = ""
    evidence: list[str]

    @field_validator("answer", "adversarial_answer", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        return str(value) if isinstance(value, int | float) else value

    @field_validator("evidence")
    @classmethod
    def _one_each(cls, value: list[str]) -> list[str]:
        """Split entries that name several turns: the file has `D8:6; D9:17`."""
        return list(dict.fromkeys(turn for entry in value for turn in _TURN_ID.findall(entry)))


class Conversation(BaseModel):
    """A conversation over many sessions, with its questions."""

    sample_id: str
    turns: list[Turn] = Field(min_length=1)
    questions: list[Question] = Field(alias="qa")

    @model_validator(mode="before")
    @classmethod
    def _flatten(cls, raw: Any) -> Any:
        if not isinstance(raw, dict) or not isinstance(raw.get("conversation"), dict):
            raise ValueError("each conversation needs `sample_id`, `qa` and `conversation`")  # noqa: TRY004  (as below)
        sessions, turns = raw["conversation"], list[Any]()
        for number in sorted(int(found[1]) for name in sessions if (found := _SESSION.fullmatch(name))):
            said, date = sessions[f"session_{number}"], sessions.get(f"session_{number}_date_time", "")
            # The data is unchecked here, and Pydantic reports a ValueError; a TypeError would be a crash.
            if not isinstance(said, list) or not all(isinstance(turn, dict) for turn in said):
                raise ValueError(f"session_{number} is not a list of turns")
            turns += [turn | {"date": date} for turn in said]
        return raw | {"turns": turns}

    def evidence_of(self, question: Question) -> list[str]:
        """Return the turns that answer a question; none where one of them is not in the conversation."""
        known = {turn.dia_id for turn in self.turns}
        # Partial evidence would make a recall of 1 too easy.
        return question.evidence if known.issuperset(question.evidence) else []


def find(given: Path | None) -> Path:
    """Return LoCoMo's file: the path itself, or `locomo*.json` in it or in its folder `locomo`."""
    place = given or settings().data
    if place is None:
        raise BadInput("LoCoMo's data is not shipped.", LOCOMO_HINT)
    if not place.is_dir():
        return place
    found = sorted([*place.glob("locomo*.json"), *place.glob("locomo/locomo*.json")])
    if not found:
        raise BadInput(f"There is no locomo*.json in {place}.", LOCOMO_HINT)
    return found[0]


def load(path: Path) -> list[Conversation]:
    """Read the benchmark's file. Raises BadInput at the place that is not in its format."""
    try:
        conversations = TypeAdapter(list[Conversation]).validate_json(path.read_bytes())
    except OSError as error:
        raise BadInput(f"Cannot read LoCoMo's data at {path}: {error.strerror}.", LOCOMO_HINT) from error
    except ValidationError as error:
        wrong = first_fault(error, "the file")
        raise BadInput(f"{path} is not in LoCoMo's format: {wrong}", LOCOMO_HINT) from error
    if not conversations:
        raise BadInput(f"{path} holds no conversation.", LOCOMO_HINT)
    if len({conversation.sample_id for conversation in conversations}) < len(conversations):
        raise BadInput(f"{path} names two conversations alike.", LOCOMO_HINT)
    if not any(c.evidence_of(question) for c in conversations for question in c.questions):
        raise BadInput(f"{path} names no turn that answers any question.", LOCOMO_HINT)
    return conversations


def picked(conversations: list[Conversation], names: Sequence[str]) -> list[Conversation]:
    """Return the conversations of these names; all where none is named. Raises BadInput."""
    known = {each.sample_id: each for each in conversations}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise BadInput(f"There is no conversation {unknown[0]}.", f"There are: {', '.join(known)}.")
    return [known[name] for name in dict.fromkeys(names)] or conversations


def first_turns(conversations: Sequence[Conversation], limit: int) -> list[Conversation]:
    """Return the first turns of each conversation, and the questions on them; all where the limit is 0.

    Raises BadInput where no question can be answered from so few turns.
    """
    if not limit:
        return list(conversations)
    cut = [each.model_copy(update={"turns": each.turns[:limit]}) for each in conversations]
    for each in cut:
        each.questions = [question for question in each.questions if each.evidence_of(question)]
    if not any(each.questions for each in cut):
        raise BadInput(f"No question is on the first {limit} turns.", "Give a larger --turns.")
    return cut


def put(name: str, question: Question) -> str:
    """Format a question as the benchmark does: a date for temporal ones, a choice for adversarial ones."""
    if question.category == 2:
        return f"{question.question} Use DATE of CONVERSATION to answer with an approximate date. {REQUEST}"
    if question.category == 5:
        first, second = _options(name, question)
        return f"{question.question} Select the correct answer: (a) {first} (b) {second}. {REQUEST}"
    return f"{question.question} {REQUEST}"


def chosen(name: str, question: Question, answer: str) -> str:
    """Return the text of an answer; for an adversarial question, of the selected option."""
    if question.category != 5:
        return answer
    letters = set(_LETTER.findall(answer.lower()))
    if len(letters) != 1:  # none or both: judged as free text
        return answer
    return _options(name, question)["ab".index(letters.pop())]


def _options(name: str, question: Question) -> tuple[str, str]:
    """Return the two options in an order drawn for this question, the same in every run."""
    trap = question.adversarial_answer or question.answer
    return (NOT_MENTIONED, trap) if Random(name).random() < 0.5 else (trap, NOT_MENTIONED)  # noqa: S311


def answer_score(question: Question, prediction: str) -> float:
    """Score an answer as the benchmark does (`task_eval/evaluation.py`).

    Token F1 of stemmed words; for multi-hop the mean over the answer's parts of the best part given;
    for open-domain against the part of the answer before `;`; for adversarial 1 where the prediction
    says that it is not mentioned.
    """
    if question.category == 5:
        said = prediction.lower()  # the benchmark's own two phrases
        return float("no information available" in said or "not mentioned" in said)
    if question.category == 1:
        given, wanted = prediction.split(","), question.answer.split(",")  # multi-hop answers are lists
        return fmean(max(_f1(part, answer) for part in given) for answer in wanted)
    if question.category == 3:  # a second answer after the semicolon is its reason
        return _f1(prediction, question.answer.split(";")[0])
    return _f1(prediction, question.answer)


def _f1(prediction: str, answer: str) -> float:
    given, wanted = _stems(prediction), _stems(answer)
    same = sum((Counter(given) & Counter(wanted)).values())
    return 2 * same / (len(given) + len(wanted)) if same else 0.0


def _stems(text: str) -> list[str]:
    """Normalise as the benchmark: no case, punctuation or articles (`and` among them), Porter's stems."""
    bare = text.lower().translate(str.maketrans("", "", string.punctuation))
    words = re.sub(r"\b(a|an|the|and)\b", " ", bare).split()
    stemmer = import_module("snowballstemmer").stemmer("porter")  # imported by name: it ships no types
    return list(stemmer.stemWords(words))
