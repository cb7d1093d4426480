"""Answers from memories alone, for a chat without a language model."""

from collections.abc import Sequence

from mneme.rules.english.clauses import clauses_of
from mneme.rules.english.comparison import people
from mneme.rules.english.composition import worth_storing
from mneme.rules.english.judge import likeness
from mneme.rules.english.person import to_the_user
from mneme.rules.english.signs import TOPICS, content_stems, subject_stems
from mneme.rules.english.words import LONGEST_READ, phrase, stem, stems, tokens

MOST_TOLD = 5
ALIKE = 0.6
"""Cosine from which a memory answers a question that shares few words with it."""

UNKNOWN = "I don't know: you have not told me that, as far as I can find."
CANNOT = "I can only answer from what you told me before; no language model is connected."

_ASKED = (*TOPICS, "pets", "kids", "age")


def answer(message: str, memories: Sequence[str]) -> str:
    """Tell what the memories say about a question; acknowledge a statement; else say what cannot be done."""
    text = message[:LONGEST_READ].strip()
    if not text:
        return "You sent an empty message."
    if any(each.asks for each in clauses_of(text)) or phrase("asked", "^(?:{})").match(text):
        return _told(text, memories)
    return "Noted." if worth_storing(text, (), "")[0] else CANNOT


def _told(question: str, memories: Sequence[str]) -> str:
    about_self = phrase("about_self").search(question)
    scores = [1.0 if about_self else _fit(question, memory) for memory in memories]
    best = max(scores, default=0.0)
    fitting = [
        to_the_user(memory) for memory, score in zip(memories, scores, strict=True) if score == best > 0
    ]
    if not fitting:
        return UNKNOWN
    return fitting[0] if len(fitting) == 1 else "\n".join(f"- {each}" for each in fitting[:MOST_TOLD])


def _fit(question: str, memory: str) -> float:
    """Say how well a memory answers a question: 0 where it is of somebody else, or of something else."""
    read, held = tokens(question), content_stems(tokens(memory))
    wanted = content_stems(read) - stems("asking")
    whom = wanted & people() | {
        stem(each.low) for each in read[1:] if each.is_name and stem(each.low) in wanted
    }
    topics = [stems(name) for name in _ASKED if wanted & stems(name) and held & stems(name)]
    whom = frozenset(each for each in whom if not any(each in topic for topic in topics))
    others = (subject_stems(tokens(memory)) & people()) - wanted
    if not whom <= held or (not whom and any(not any(each in topic for topic in topics) for each in others)):
        return 0.0
    asked = wanted - whom
    shared = len(asked & held)
    enough = bool(topics) or shared >= min(2, len(asked)) or (likeness(question, memory) or 0.0) >= ALIKE
    return (1.0 + shared + bool(topics)) * enough if asked or whom else 0.0
