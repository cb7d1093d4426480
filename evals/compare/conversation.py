"""Conversation over months: the user changes their mind, knows two people of one name, has facts erased.

Each question is a task. Its answer is a word that was said once, long before; distractors are other people's
words of the same kind, and texts that were read somewhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from mneme.evals.compare.memory import (
    UNKNOWN,
    Course,
    Event,
    Family,
    Outcome,
    Score,
    Situation,
    day,
    day_of,
    drawing,
    latest,
    says,
)

USER_SPEAKER = "user"
CITIES = (
    "Oslo", "Bergen", "Lisbon", "Porto", "Ghent", "Leeds", "Turin", "Graz", "Malmo", "Nantes", "Cork", "Brno",
)  # fmt: skip
FIRMS = ("Acme", "Globex", "Initech", "Hooli", "Umbra", "Vandelay", "Stark", "Wayne", "Tyrell", "Cyberdyne")
DRINKS = ("coffee", "espresso", "oolong", "chai", "cocoa", "matcha", "rooibos", "lemonade")
SPORTS = ("rowing", "fencing", "tennis", "judo", "archery", "climbing", "sailing", "squash")
USER_CHATTER = (
    "What a day. The bus was late again.",
    "Can you think of a title for my talk about bridges?",
    "I read that rents in {city} have doubled.",
    "A colleague told me that {firm} is hiring.",
    "The weather report says rain until Friday.",
    "How do I get a wine stain out of a shirt?",
    "My neighbour almost moved to {city}, and then did not.",
    "In the film that I saw yesterday somebody drinks {drink} for breakfast.",
    "Remind me how many grams an ounce has.",
    "Somebody on the train talked about {sport} for an hour.",
)
CHATTER_WORDS = {"city": CITIES, "firm": FIRMS, "drink": DRINKS, "sport": SPORTS}
CHANGE_SHARE, FORGET_SHARE, MAX_CHATTER, FORGOTTEN_TOPICS = 0.35, 0.05, 6, 2


@dataclass
class Topic:
    """A fact that changes over time: its statement, its question, and its values with their days."""

    values: Sequence[str]
    said: str
    changed: str
    asked: str
    asked_then: str
    about: Sequence[str]
    not_about: Sequence[str] = ()
    known: list[tuple[int, str]] = field(default_factory=list)
    is_forgotten: bool = False

    @property
    def now(self) -> str:
        return UNKNOWN if self.is_forgotten or not self.known else self.known[-1][1]

    def read(self, lines: Sequence[str], until: str = "9999") -> str:
        """Return the value in the latest matching line; "not known" if none matches."""
        fitting = [each for each in lines if self._fits(each)]
        for line in latest([each for each in fitting if day_of(each) <= until]):
            if found := [each for each in self.values if says(line, each)]:
                return found[-1]
        return UNKNOWN

    def _fits(self, line: str) -> bool:
        return any(says(line, word) for word in self.about) and not any(
            says(line, word) for word in self.not_about
        )


def topics() -> list[Topic]:
    """Return the topics of a user; two of the people have the same name."""
    other = ("Maria", "neighbour", "colleague", "rents", "film", "somebody")
    return [
        Topic(CITIES, "I live in {}.", "I have moved to {}.", "Where do I live now?",
              "Where did I live on {}?", ("live", "lives", "moved"), other),
        Topic(FIRMS, "I work at {}.", "I have a new job: I work at {} now.", "Where do I work now?",
              "Where did I work on {}?", ("work", "works", "job"), other),
        Topic(DRINKS, "My favourite drink is {}.", "My favourite drink is {} now.", 
              "What is my favourite drink?", "What was my favourite drink on {}?", ("favourite",)),
        Topic(CITIES, "My cousin Maria lives in {}.", "My cousin Maria has moved to {}.",
              "Where does my cousin Maria live?", "Where did my cousin Maria live on {}?", ("cousin",)),
        Topic(CITIES, "My dentist Maria lives in {}.", "My dentist Maria has moved to {}.",
              "Where does my dentist Maria live?", "Where did my dentist Maria live on {}?", ("dentist",)),
        Topic(SPORTS, "My brother Tom does {} every Sunday.", "My brother Tom does {} now.",
              "Which sport does my brother Tom do?", "Which sport did my brother Tom do on {}?",
              ("Tom", "brother")),
    ]  # fmt: skip


def conversation(seed: int, size: int) -> Course:
    """Talk for months, with that many questions on the way."""
    chance, about = drawing(f"conversation {seed}"), topics()
    for number, topic in enumerate(about):
        yield _say(topic, number, chance)
    for number in range(2 * size):
        today = len(about) + 6 * number
        for _ in range(chance.randrange(MAX_CHATTER)):
            said = chance.choice(USER_CHATTER)  # before its words: the order of draws makes the course
            words = {name: chance.choice(each) for name, each in CHATTER_WORDS.items()}
            yield Event(day(today), USER_SPEAKER, said.format(**words))
        topic = chance.choice(about)
        happens = chance.random()
        is_left = sum(each.is_forgotten for each in about) < FORGOTTEN_TOPICS
        # At most two of six are forgotten: else "not known" would be a good guess.
        if happens < FORGET_SHARE and is_left and len(topic.known) > 1 and not topic.is_forgotten:
            topic.is_forgotten = True
            yield Event(day(today + 1), USER_SPEAKER, f"Forget what I told you about this: {topic.asked}")
        elif happens < CHANGE_SHARE and not topic.is_forgotten:
            yield _say(topic, today + 1, chance)
        if number % 2:  # after every second round, so that facts come first
            yield from _ask(chance.choice(about), today + 2, chance)


def _say(topic: Topic, today: int, chance: Random) -> Event:
    used = {value for _, value in topic.known}
    # A value that held before would make an outdated memory right by accident.
    value = chance.choice([each for each in topic.values if each not in used] or list(topic.values))
    text = (topic.changed if topic.known else topic.said).format(value)
    topic.known.append((today, value))
    return Event(day(today), USER_SPEAKER, text)


def _ask(topic: Topic, today: int, chance: Random) -> Course:
    """Ask about now, or about the time before the last change."""
    then, right, until = "", topic.now, "9999"
    if len(topic.known) > 1 and not topic.is_forgotten and chance.random() < 0.3:
        place = chance.randrange(len(topic.known) - 1)
        right = topic.known[place][1]
        until = then = day(topic.known[place + 1][0] - 1)  # the last day on which the value held
    question = topic.asked_then.format(then) if then else topic.asked
    text = f"{question} (Today is {day(today)}. If it is not known, or was to be forgotten: {UNKNOWN}.)"
    answer = yield Situation(text, lambda lines: topic.read(lines, until))
    old = {value for _, value in topic.known} - {right}
    is_right = says(answer, right) and not any(says(answer, each) for each in old)
    misled = any(says(answer, each) for each in old)
    yield Score(Outcome(question, is_right, "", day(today)), stale=int(misled))


CONVERSATION_FAMILY = Family("conversation", conversation, (USER_SPEAKER,))
