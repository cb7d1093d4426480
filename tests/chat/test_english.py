"""What answers without a model in English, over plain strings: what is kept and what it changes."""

import json
import re
from pathlib import Path

import pytest

from mneme.rules.english.comparison import compare
from mneme.rules.english.composition import compose
from mneme.rules.english.rewriting import rewrite
from mneme.rules.english.words import stem, tokens

SET = Path(__file__).parents[2] / "evals" / "chat" / "data" / "contradictions.jsonl"
CASES = [json.loads(line) for line in SET.read_text(encoding="utf-8").splitlines()]
ADDED = {
    stem(word)
    for word in [
        "the",
        "user",
        "user's",
        "themself",
        "no",
        "longer",
        "is",
        "are",
        "has",
        "does",
        "doesn't",
        "hasn't",
        "will",
        "would",
        "had",
    ]
}
WORDS = " ".join(case["message"] for case in CASES).split()


def contents(message: str, *preceding: str) -> list[str]:
    return [fact.content for fact in compose(message, preceding, "")]


def remember(message: str, memories: list[str], *preceding: str) -> list[str]:
    """Return the memories after a message, as version 3 of the memory agent works."""
    after = list(memories)
    for fact in compose(message, preceding, ""):
        relations = [compare(fact.content, memory, message).relation for memory in memories]
        if set(relations) <= {"unrelated"}:
            after.append(fact.content)
        for number, relation in enumerate(relations):
            if relation in {"conflict", "addition"}:
                after[number] = rewrite(fact.content, after[number], message)
    return after


def stems_of(*texts: str) -> set[str]:
    return {part for text in texts for each in tokens(text) if each.is_word for part in _parts(each.low)}


def _parts(word: str) -> set[str]:
    """Return what a word may be read as: `i'm` and `im` as `i am`, `dog's` as `dog is`."""
    return {stem(word), stem(re.sub(r"('s|'m|'ll|'ve|'re|'d|s)$", "", word)), word, word.removesuffix("'s")}


def test_the_papers_table_1() -> None:
    memories = remember("My dog Max is a golden retriever. He loves playing fetch.", [])
    assert memories == ["The user's dog Max is a golden retriever. Max loves playing fetch."]
    memories = remember("Actually, Max is a Labrador mix, not a purebred.", memories)
    assert memories == ["The user's dog Max is a Labrador mix, not a purebred. Max loves playing fetch."]
    memories = remember("Max gets anxious during thunderstorms.", memories)
    memories = remember("Max lives with my sister Emily in Portland.", memories)
    assert memories[1:] == [
        "Max gets anxious during thunderstorms.", "Max lives with the user's sister Emily in Portland.",
    ]  # fmt: skip
    assert remember("What do we know about Max?", memories) == memories
    memories = remember("Max is now 5 years old.", memories)
    assert memories[0].endswith("Max loves playing fetch. Max is now 5 years old.")
    assert len(memories) == 3


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_no_memory_holds_a_word_that_nobody_said(case: dict[str, list[str]]) -> None:
    message = str(case["message"])
    said = stems_of(message, *case["preceding"]) | ADDED
    for fact in compose(message, case["preceding"], ""):
        assert (
            stems_of(fact.content) & said
            >= {stem(each.low) for each in tokens(fact.content) if each.is_word} & said
        )
        assert not {each.low for each in tokens(fact.content) if each.is_word and not _parts(each.low) & said}
        assert fact.quote in message
