"""Stories of people and teams whose truth is known at every step.

Four people in two teams say facts, share some with their team, keep some to themselves, change their minds,
have facts forgotten, and ask. Teams decide on plans because of what was shared with them. Each value is a
unique word, so a text that contains it states the fact.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Literal

Kind = Literal["say", "share", "change", "decide", "forget", "ask"]
THINGS = ("database", "supplier", "deadline", "budget", "venue", "password", "contact", "printer", "invoice")
PROJECTS = ("harbour survey", "spring fair", "night bus", "archive", "bakery", "choir", "old mill")
TEAMS = {"ann": "north", "bob": "north", "cid": "south", "dee": "south"}
"""The people, each with their team."""
WEIGHTS: dict[Kind, int] = {"say": 6, "share": 5, "change": 4, "decide": 4, "forget": 1, "ask": 10}
SECRETS = 0.3
"""The share of facts that nobody ever shares."""


@dataclass
class Fact:
    """A fact that one person knows: its subject, its values so far, and its uses.

    `shared` is the last value shared with the team, and `plans` the team's decisions because of one.
    """

    about: str
    owner: str
    is_secret: bool
    values: list[str] = field(default_factory=list)
    is_forgotten: bool = False
    shared: str = ""
    told: set[str] = field(default_factory=set)
    plans: dict[str, str] = field(default_factory=dict)

    @property
    def now(self) -> str:
        """The value that holds; empty after it was forgotten."""
        return "" if self.is_forgotten else self.values[-1]

    @property
    def text(self) -> str:
        return f"The {self.about} is {self.values[-1]}."

    def known_to(self, person: str) -> str:
        """Return the current value if a person may know it; else an empty text."""
        may = person == self.owner or (TEAMS[person] == TEAMS[self.owner] and self.shared == self.now)
        return self.now if may else ""

    def allowed(self, person: str) -> set[str]:
        """Return the values and plans that a person ever had a right to know."""
        is_team = TEAMS[person] == TEAMS[self.owner]
        own = {*self.values} if person == self.owner else self.told if is_team else set[str]()
        return own | ({*self.plans} if is_team else set())


@dataclass(frozen=True)
class Event:
    """An event: the person, the operation, the fact, and its text."""

    kind: Kind
    person: str
    fact: Fact
    text: str


def story(seed: int, events: int, *, changes_are_shared: bool = False) -> Iterator[Event]:
    """Yield the events of a story; the facts are as they are after each, so use them at once.

    A person who has shared a fact may want the team to learn each change, without sharing it again.
    """
    chance, facts = Random(f"governed {seed}"), list[Fact]()  # noqa: S311
    topics = [f"{thing} of the {project}" for thing in THINGS for project in PROJECTS]
    chance.shuffle(topics)  # `pop` takes each once: a subject has one fact
    for _ in range(events):
        event = None
        while event is None:  # what is impossible now is drawn anew
            [kind] = chance.choices([*WEIGHTS], [*WEIGHTS.values()])
            event = _event(kind, chance, facts, topics)
        if changes_are_shared and event.kind == "change" and event.fact.shared:
            event.fact.shared = event.fact.now
            event.fact.told.add(event.fact.now)
        yield event


def _event(kind: Kind, chance: Random, facts: list[Fact], topics: list[str]) -> Event | None:
    """Execute an operation, if it is possible."""
    if kind == "say":
        fact = Fact(topics.pop(), chance.choice([*TEAMS]), chance.random() < SECRETS, [_word(chance)])
        facts.append(fact)
        return Event(kind, fact.owner, fact, fact.text)
    if not facts:
        return None
    fact = chance.choice(facts)
    person, text, is_known = fact.owner, fact.text, fact.shared == fact.now
    # Sharing the same value twice would be no event; a team decides by what holds now.
    can = {"share": not fact.is_secret and not is_known, "decide": is_known}
    if kind != "ask" and (fact.is_forgotten or not can.get(kind, True)):
        return None
    match kind:
        case "share":
            fact.shared = fact.now
            fact.told.add(fact.now)
        case "change":
            fact.values.append(_word(chance))
        case "decide":
            plan = _word(chance)
            fact.plans[plan] = fact.now
            text = f"Because the {fact.about} is {fact.now}, the team decided on plan {plan}."
        case "forget":
            fact.is_forgotten = True
        case "ask":
            person, text = chance.choice([*TEAMS]), f"What is the {fact.about}?"
    return Event(kind, person, fact, text)


def _word(chance: Random) -> str:
    """Return an unused word: four syllables of forty."""
    syllables = [consonant + vowel for consonant in "bdfgklmn" for vowel in "aeiou"]
    return "".join(chance.choice(syllables) for _ in range(4)).capitalize()
