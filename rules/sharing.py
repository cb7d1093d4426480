"""Rules that answer the questions of `prompts/sharing/`: by analogy, using only the shown examples.

The words that an example's question and answer share are its topic; the rest of the answer is its form. The
topic's words are replaced by those of the new question, in the order in which both questions use them. Rules
know no poems, riddles or plans: without an example they can only turn the question into a statement, so the
value of an example can be measured.
"""

import math
import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from pathlib import Path

import yaml

from mneme.prompts.sharing import grading, rubric_design, scoring, standard_answers
from mneme.prompts.sharing.answering import AskedQuestion
from mneme.prompts.sharing.answering import answer as answer_question
from mneme.prompts.sharing.examples import CJK_CHARACTER, EXAMPLE_WORD, words
from mneme.prompts.sharing.grading import Comparison, Contradiction
from mneme.prompts.sharing.rubric_design import Domain, Drafted, DraftedCriterion
from mneme.prompts.sharing.scoring import Fault, Gradeable, Judgeable, Score, Whole
from mneme.prompts.sharing.standard_answers import MAX_QUESTION_CHARS, Question, Standard
from mneme.rules.registry import rule

_DATA = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
FUNCTION_WORDS, ASKING = (frozenset(_DATA[each].split()) for each in ("function_words", "asking"))


def topic(question: str) -> list[str]:
    """Return the words of a question that carry its topic, each once, in order."""
    return [each for each in dict.fromkeys(words(question)) if each not in FUNCTION_WORDS | ASKING]


def compose(question: str, examples: Sequence[tuple[str, str]]) -> str:
    """Answer a question in the form of the example that can express most of the question."""
    # One example gives the whole form: verses of two would not rhyme. Of equals the earlier one wins.
    adapted = [_adapted(question, *example) for example in examples]
    wanted = set(topic(question))
    return max(adapted, key=lambda said: len(wanted & set(words(said))), default=_statement(question))


def _statement(question: str) -> str:
    """Return the question as a sentence: all that is known without an example."""
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
    exchange = dict(zip(theirs, ours, strict=False))  # a word without a partner stays as it is

    def other(found: re.Match[str]) -> str:
        word = exchange.get(found[0].casefold(), "")
        return (word.capitalize() if found[0][:1].isupper() else word) or found[0]

    return re.sub(rf"{CJK_CHARACTER.pattern}|{EXAMPLE_WORD.pattern}", other, answered.strip())


@rule(answer_question)
def answer(given: AskedQuestion) -> str:
    """Compose an answer after the examples, those of its own kind first; without any, state the question."""
    own = [each for each in given.examples if each.kind == given.kind]
    return compose(given.question, [(each.question, each.answer) for each in own or given.examples])


@rule(scoring.score_pair)
def score_pair(given: Judgeable) -> Score:
    """Score what can be counted, the same for every criterion: rules cannot distinguish wit from imagery."""
    found = _evidence(given.question, given.answer, given.examples, given.faults)
    told = ", ".join(f"{name} {value:.2f}" for name, value in found.items())
    points = {each.name: round(each.points * math.prod(found.values())) for each in given.criteria.root}
    return Score(rationale=f"Counted: {told}.", points=points)


@rule(scoring.score_whole)
def score_whole(given: Gradeable) -> Whole:
    """Score what can be counted, whatever the rubric says."""
    return Whole(score=round(100 * math.prod(_evidence(given.question, given.answer).values())))


def _evidence(
    question: str, answer: str, examples: Sequence[str] = (), faults: Sequence[Fault] = ()
) -> dict[str, float]:
    """Return the countable evidence, 0 to 1 each."""
    weight = sum(WHOLE_WEIGHT if each.where == "the whole" else 1 for each in faults)
    wanted, said = topic(question), words(answer)
    stems = {word[:4] for word in wanted}  # a word counts in any of its forms
    shared = len(stems & {word[:4] for word in said}) / len(stems) if stems else 1.0
    alike = max(likeness(answer, each) for each in [*examples, question])
    return {
        "form": 1 / (1 + weight / 4),
        "matter": min(1.0, 0.55 + 1.4 * shared),  # poems and jokes say it in other words: a third is enough
        "own words": 0.3 if alike >= COPY_SHARE else 1.0,
        "question": min(1.0, (1 + len(wanted)) / 5),  # four words with a topic say what is wanted
        "no repetition": min(1.0, len(set(said)) / (0.3 * len(said))) if said else 0.0,
    }


WHOLE_WEIGHT, COPY_SHARE = 4, 0.9  # a fault of the whole counts as four of parts


def likeness(one: str, other: str) -> float:
    """Return the share of two texts' words that stand in both in the same order."""
    # Without autojunk, which would leave out every frequent word of a text of 200 words or more.
    return SequenceMatcher(None, words(one), words(other), autojunk=False).ratio()


@rule(grading.grade_contradiction)
def grade_contradiction(given: Comparison) -> Contradiction:
    """Compose the answer that the example leads to, and see how unlike the right one it is."""
    led_to = compose(given.question, [(given.example.question, given.example.answer)])
    alike = likeness(led_to, given.answer)
    return Contradiction(
        rationale=f"With it an answer shares {alike:.0%} with the right one.",
        percent=round(100 * (1 - alike)),
    )


@rule(standard_answers.ask_for)
def ask_for(given: Standard) -> Question:
    """Ask for the words that the answer repeats, in the terms of the agent's instruction."""
    kind = KIND_END.split(given.does)[0].strip()
    said = [word for word in words(given.answer) if word in set(topic(given.answer))]
    ranked = sorted(set(said), key=lambda word: (-said.count(word), -len(word), word))
    first = THEME * len(given.known) % max(len(ranked), 1)  # the next words for each question asked before
    theme = ", ".join(sorted(ranked[first : first + THEME], key=said.index))
    asked = f"{kind[:1].upper()}{kind[1:]}: {theme or 'anything'}."
    return Question(question=asked[:MAX_QUESTION_CHARS])


KIND_END = re.compile(r"[.:;,：；，。]| (?:on|for) what ")
"""Pattern for the end of the answer kind's name in an agent's description."""
THEME = 5


@rule(rubric_design.draft_rubric)
def draft_rubric(given: Domain) -> Drafted:
    """Draft the criteria that every kind of answer has; those of one domain a person must add."""
    return Drafted(criteria=[DraftedCriterion(**each) for each in _DATA["criteria"]])
