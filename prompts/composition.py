"""How rules write an answer from examples: by analogy, with nothing but what they are shown.

What an example's question and answer share is taken for its topic; the rest of the answer for how an answer
of that kind is made. The topic's words are replaced by those of the new question in the order in which both
questions say them. A rule knows no poem, no riddle and no plan: without an example it can only turn the
question into a statement, which is what makes the worth of an example show.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from prompts.language import lexicon

WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
HAN = re.compile(r"[\u3400-\u9fff]")
FUNCTION_WORDS = frozenset().union(
    lexicon.DETERMINERS,
    lexicon.PREPOSITIONS,
    lexicon.COORDINATORS,
    lexicon.SUBORDINATORS,
    lexicon.SUBJECT_PRONOUNS,
    lexicon.OBJECT_PRONOUNS,
    lexicon.POSSESSIVES,
    *(lexicon.MODALS, lexicon.BE, lexicon.HAVE, lexicon.DO, lexicon.NEGATORS, lexicon.WH),
)
ASKING = lexicon.WH | lexicon.bag(
    "write compose craft create make give tell pen draft plan design suggest explain describe answer solve "
    "please want need help"
)
"""Words by which a question asks, that name no topic."""


@lru_cache(maxsize=4096)
def words(text: str) -> tuple[str, ...]:
    """Split a text into words, lower-cased; each Chinese character is a word."""
    return tuple(word.casefold() for word in WORD.findall(HAN.sub(r" \g<0> ", text)))


def topic(question: str) -> list[str]:
    """Return the words of a question that carry its topic, each once, in order."""
    return list(dict.fromkeys(each for each in words(question) if is_topical(each)))


def is_topical(word: str) -> bool:
    return word not in FUNCTION_WORDS and word not in ASKING


def likeness(one: str, other: str) -> float:
    """Return ROUGE-L's F of two texts over words: 1 where they are the same, 0 where nothing is shared."""
    a, b = words(one), words(other)
    common = _longest_common(a, b)
    return 2 * common / (len(a) + len(b)) if common else 0.0


def _longest_common(a: Sequence[str], b: Sequence[str]) -> int:
    before = [0] * (len(b) + 1)
    for word in a:
        now = [0]
        for column, other in enumerate(b):
            now.append(before[column] + 1 if word == other else max(before[column + 1], now[column]))
        before = now
    return before[-1]


def compose(question: str, examples: Sequence[tuple[str, str]]) -> str:
    """Answer a question after the fashion of its examples, the first of which leads."""
    if not examples:
        return _statement(question)
    adapted = [list(_adapted(question, *example)) for example in examples]
    return "\n".join(_chosen(question, adapted))


def _statement(question: str) -> str:
    """Say what was asked as a sentence: all that is known without an example."""
    said = " ".join(
        word for word in re.findall(r"\S+", question) if word.casefold().strip(",.;:?!") not in ASKING
    )
    said = said.strip(" ,.;:?!")
    return f"{said[:1].upper()}{said[1:]}." if said else question.strip()


def _adapted(question: str, asked: str, answered: str) -> Iterator[str]:
    """Yield an example's answer line by line, its topic replaced by the question's."""
    theirs = [word for word in topic(asked) if word in set(words(answered))]
    ours = [word for word in topic(question) if word not in set(topic(asked))]
    exchange = dict(zip([word for word in theirs if word not in set(topic(question))], ours, strict=False))
    for line in answered.strip().splitlines():
        if line.strip():
            yield _exchanged(line, exchange)


def _exchanged(line: str, exchange: dict[str, str]) -> str:
    def other(found: re.Match[str]) -> str:
        word = exchange.get(found[0].casefold(), "")
        return (word.capitalize() if found[0][:1].isupper() else word) or found[0]

    return re.sub(rf"{HAN.pattern}|{WORD.pattern}", other, line)


def _chosen(question: str, adapted: list[list[str]]) -> Iterator[str]:
    """Take each line from the example whose line says most of the question, else from the first."""
    wanted = set(topic(question))
    for number, line in enumerate(adapted[0]):
        others = [each[number] for each in adapted if len(each) == len(adapted[0])]
        yield max([line, *others], key=lambda said: len(wanted & set(words(said))))
