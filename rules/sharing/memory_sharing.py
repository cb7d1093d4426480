"""How rules answer the questions of `prompts/sharing/`."""

import math
import re

from mneme.prompts.sharing import grading, rubric_design, scoring, standard_answers
from mneme.prompts.sharing.answering import Asked
from mneme.prompts.sharing.answering import answer as answer_question
from mneme.prompts.sharing.examples import Criteria, Criterion, words
from mneme.prompts.sharing.grading import Comparison, Contradiction, Leads
from mneme.prompts.sharing.rubric_design import Domain, Drafted, DraftedCriterion
from mneme.prompts.sharing.scoring import Gradeable, Judgeable, Score, Whole
from mneme.prompts.sharing.standard_answers import LONGEST_QUESTION, Question, Standard
from mneme.rules.registry import rule
from mneme.rules.sharing.analogy import compose, kept_of, likeness, topic
from mneme.rules.words import stem


@rule(answer_question)
def answer(given: Asked) -> str:
    """Compose an answer after the examples, those of its own kind first; without any, say what was asked."""
    own = [each for each in given.examples if each.kind == given.kind]
    return compose(given.question, [(each.question, each.answer) for each in own or given.examples])


@rule(scoring.score_pair)
def score_pair(given: Judgeable) -> Score:
    """Score what can be counted: form, matter taken up, own words, a question to answer, no idle repetition.

    A criterion leans on the evidence that it speaks of; one that speaks of none, such as wit, gets the mean
    of what all evidence says, since rules cannot tell wit from imagery, and do not try.
    """
    found = _evidence(given)
    told = ", ".join(f"{name} {value:.2f}" for name, value in found.items())
    return Score(
        rationale=f"Counted: {told}.",
        points={each.name: round(each.points * _share(each, found)) for each in given.criteria.root},
    )


@rule(scoring.score_whole)
def score_whole(given: Gradeable) -> Whole:
    """Take the rubric for one criterion, which leans on whatever it speaks of."""
    criterion = Criterion(name="whole", points=100, looks_at=given.rubric)
    pair = Judgeable(question=given.question, answer=given.answer, criteria=Criteria([criterion]))
    return Whole(score=round(100 * _share(criterion, _evidence(pair))))


def _evidence(given: Judgeable) -> dict[str, float]:
    """Return what can be counted, 0 to 1 each."""
    return {
        "form": _form(given),
        "matter": _on_topic(given),
        "own words": _own(given),
        "question": _asks(given),
        "no repetition": _varied(given),
    }


SPEAKS_OF = {
    "form": re.compile(r"form|metr|rhym|struct|scheme|measure|parts|complete|cover|detail|conventions", re.I),
    "matter": re.compile(r"asks|asked|relevan|topic|theme|needs|belongs|accura|correct|answers", re.I),
    "own words": re.compile(r"origin|creativ|innovat|fresh|own|surpris|copy", re.I),
    "question": re.compile(r"question", re.I),
    "no repetition": re.compile(r"clear|clarity|coheren|easy", re.I),
}
"""By which words a criterion speaks of what can be counted."""


LEANS, HARDLY = 1.5, 0.8


def _share(criterion: Criterion, found: dict[str, float]) -> float:
    """Return the share of its points that a criterion gives: a pair that fails in one thing is no example."""
    told = f"{criterion.name} {criterion.looks_at}"
    spoken = [name for name in found if SPEAKS_OF[name].search(told)]
    weights = {name: (LEANS if name in spoken else HARDLY) if spoken else 1.0 for name in found}
    return math.prod(math.pow(value, weights[name]) for name, value in found.items())


def _form(given: Judgeable) -> float:
    """Return 1 for a form without faults; one of the whole weighs as much as many of its parts."""
    weight = sum(WHOLE if each.where == "the whole" else 1 for each in given.faults)
    return 1 / (1 + weight / 4)


WHOLE = 4


def _on_topic(given: Judgeable) -> float:
    """Return how much of the question's matter the answer takes up; poems and jokes say it in other words."""
    wanted = {_stem(word) for word in topic(given.question)}
    said = {_stem(word) for word in words(given.answer)}
    shared = len(wanted & said) / len(wanted) if wanted else 1.0
    return min(1.0, 0.55 + 1.4 * shared)


def _stem(word: str) -> str:
    """Return what the forms of a word have in common."""
    return stem(word)[:6]


def _own(given: Judgeable) -> float:
    """Return how far the answer is from a copy, of its question or of an example, and from a copied frame.

    A frame is what is left of an answer without the question's words: filling in another's is less than
    writing one's own, and more than repeating it.
    """
    if max((likeness(given.answer, each) for each in [*given.examples, given.question]), default=0) >= COPY:
        return 0.3
    frame = [word for word in words(given.answer) if word not in set(topic(given.question))]
    alike = max((kept_of(frame, words(each)) for each in given.examples), default=0.0)
    return 1 - 0.25 * min(1.0, max(0.0, (alike - 0.5) / 0.35))


COPY = 0.9


def _asks(given: Judgeable) -> float:
    """Return whether the question says enough to be answered: four words that carry a topic do."""
    return min(1.0, (1 + len(topic(given.question))) / 5)


def _varied(given: Judgeable) -> float:
    """Return whether the answer goes on, or says the same again and again."""
    said = words(given.answer)
    return min(1.0, len(set(said)) / (0.3 * len(said))) if said else 0.0


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
    """Ask for the words that the answer dwells on, as the agent is told what to write."""
    kind = KIND.split(given.does)[0].strip()
    theme = ", ".join(_theme(given.answer, len(given.known)))
    asked = f"{kind[:1].upper()}{kind[1:]}: {theme or 'anything'}."
    return Question(question=asked[:LONGEST_QUESTION])


KIND = re.compile(r"[.:;,：；，。]| (?:on|for) what ")
"""What ends the name of a kind of answer in the description of what an agent does."""


THEME = 5


def _theme(text: str, before: int) -> list[str]:
    """Return words that carry a text: those it repeats, then its longest; others than the times before."""
    said = [word for word in words(text) if word in set(topic(text))]
    ranked = sorted(set(said), key=lambda word: (-said.count(word), -len(word), word))
    first = THEME * before % max(len(ranked), 1)
    return sorted(ranked[first : first + THEME], key=said.index)


@rule(rubric_design.draft_rubric)
def draft_rubric(given: Domain) -> Drafted:
    """Draft the criteria that every kind of answer has; those of one domain a person must add."""
    common = (
        ("Does what is asked", 30, "The answer takes up everything that the question asks for."),
        ("Form", 25, "The answer has the form, the length and the parts of its kind."),
        ("Clarity", 20, "Question and answer can be understood by themselves."),
        ("Correctness", 15, "What is said is true and follows."),
        ("Originality", 10, "It is no copy of an example and adds something of its own."),
    )
    return Drafted(criteria=[DraftedCriterion(name=n, points=p, looks_at=what) for n, p, what in common])


@rule(grading.contradicts)
def contradicts(given: Comparison) -> Leads:
    """Hold it for more probable than not, by the graded question."""
    return Leads(contradicts=grade_contradiction(given).percent > 50)
