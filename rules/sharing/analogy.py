"""How rules write an answer from examples: by analogy, with nothing but what they are shown.

The words that an example's question and answer share are its topic; the rest of the answer is its form. The
topic's words are replaced by those of the new question, in the order in which both questions use them. Rules
know no poems, riddles or plans: without an example they can only turn the question into a statement, so the
value of an example can be measured.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import yaml

from mneme.prompts.sharing.examples import HAN, WORD, words
from mneme.rules.words import words_in

_WORDS = yaml.safe_load(Path(__file__).with_name("topics.yaml").read_text(encoding="utf-8"))
FUNCTION_WORDS, ASKING = words_in(_WORDS["function_words"]), words_in(_WORDS["asking"])


def topic(question: str) -> list[str]:
    """Return the words of a question that carry its topic, each once, in order."""
    return [each for each in dict.fromkeys(words(question)) if each not in FUNCTION_WORDS | ASKING]


def compose(question: str, examples: Sequence[tuple[str, str]]) -> str:
    """Answer a question after the fashion of that of its examples which can say most of the question.

    One example gives the whole form: verses of two would not rhyme. The earlier one goes first.
    """
    adapted = [_adapted(question, *example) for example in examples]
    wanted = set(topic(question))
    return max(adapted, key=lambda said: len(wanted & set(words(said))), default=_statement(question))


def _statement(question: str) -> str:
    """Say what was asked as a sentence: all that is known without an example."""
    said = re.findall(r"\S+", question)
    while len(said) > 1 and (said[0].casefold().strip(",.;:?!") in ASKING):
        said = said[1:]
    text = " ".join(said).strip(" ,.;:?!")
    return f"{text[:1].upper()}{text[1:]}." if text else question.strip()


def _adapted(question: str, asked: str, answered: str) -> str:
    """Return an example's answer, its topic replaced by the question's word by word, in order."""
    said = set(words(answered))
    theirs = [word for word in topic(asked) if word in said and word not in topic(question)]
    ours = [word for word in topic(question) if word not in topic(asked)]
    exchange = dict(zip(theirs, ours, strict=False))

    def other(found: re.Match[str]) -> str:
        word = exchange.get(found[0].casefold(), "")
        return (word.capitalize() if found[0][:1].isupper() else word) or found[0]

    return re.sub(rf"{HAN.pattern}|{WORD.pattern}", other, answered.strip())
