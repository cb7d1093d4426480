"""The question by which MiTa remembers: summarise (algorithm 1).

A synopsis is a narrative and the same in fields. The fields become part of what the manager knows, from which
the rule allocates and the options are made; a language model is shown the narratives. Planned actions are in
the narrative only: the next allocation is given the plan itself.
"""

import re

from pydantic import BaseModel, Field

from mneme.prompts.household.household import HOUSEHOLD_IS_DATA, Container, Item, Room, Worker
from mneme.prompts.prompt import Prompt, Schemas, one_of, some_of

NAMED_THING = re.compile(r"<([^<>]+)> ?\((\d+)\)")
# Patterns of English that refuse, since the record tells for certain what nobody opened; in doubt they pass.
SAYS_EMPTY = re.compile(
    r"\b(?:is|was|are|were) (?:\w+ )?empty\b|\b(?:had|has|found|contain(?:s|ed)) nothing\b"
    r"|\bnothing (?:\w+ )?in(?:side)?\b"
)
UNCERTAIN = re.compile(r"\b(?:whether|if|not known|unknown|may|might|unchecked)\b")
NARRATIVE = 1500  # characters at most: up to four synopses stand in each later prompt


class Found(BaseModel):
    """Where a thing of the task was seen."""

    thing: int = Field(description="The thing's number, as in <wine> (72).")
    place: int = Field(description="The number of the container, furniture or room that it is in or on.")


class Passage(BaseModel):
    """The events since the last change of progress (algorithm 1, lines 11 to 13)."""

    task: str
    actions: str
    beliefs: str
    change: str
    progress: str
    items: list[Item] = []
    places: dict[int, int] = Field({}, description="Item to what it is in or on; a held one to its room.")
    containers: list[Container] = []
    rooms: list[Room] = []
    workers: list[Worker] = []
    names: dict[int, str] = Field({}, description="All that the team knows of, by number.")
    unopened: list[int] = Field([], description="Containers that nobody has ever looked into.")
    searched: dict[int, list[str]] = Field({}, description="Rooms, and who was in them since then.")

    @property
    def called(self) -> dict[int, str]:
        """Return the names of all objects, places and rooms, by number."""
        return {each.id: each.name for each in (*self.items, *self.containers, *self.rooms)} | self.names


class Synopsis(BaseModel):
    """One episode of the collaboration, condensed: in words, and in fields."""

    narrative: str = Field(
        max_length=NARRATIVE,
        description="Two to four sentences: who did what, found what, and what is open.",
    )
    found: list[Found] = Field([], description="Loose things of the task, and where they are.")
    placed: list[int] = Field([], description="Things that are where they belong.")
    checked: list[int] = Field([], description="Containers whose inside is known.")
    unchecked: list[int] = Field([], description="Known containers that nobody has opened.")
    explored: list[int] = Field([], description="Rooms that somebody was in.")


summarise_passage = Prompt(
    name="summarise_passage",
    given=Passage,
    answer=Synopsis,
    system=f"""You keep the memory of a team in an apartment. Its progress has just changed. Condense what
happened since the last change into a synopsis that later decisions can rest on: who did what, what was found
where, who holds what, and who searched which room. Do not list containers: they have fields of their own.
Name things and places by the numbers that stand in parentheses, and only such as occur below. \
{HOUSEHOLD_IS_DATA}
Found are loose things; placed are things, checked and unchecked containers, explored rooms.""",
    examples=[
        Synopsis(
            narrative="Olga searched <conservatory> (811) and found <umbrella> (872) inside "
            "<wickerbasket> (903). Pedro holds nothing.",
            found=[Found(thing=872, place=903)],
            checked=[903],
            unchecked=[913, 914],
            explored=[811, 867],
        )
    ],
    user="""Task:
$task

Actions since the last synopsis:
$actions

Beliefs since the last synopsis:
$beliefs

What changed:
$change

Progress now:
$progress""",
)


@summarise_passage.bound
def of_what_was_told(given: Passage) -> Schemas:
    """Restrict each list to the ids that the record supports."""
    # The fields become the manager's knowledge: a false "checked" would hide a container.
    loose = {item.id for item in given.items if item.held_by is None and not item.placed}
    lists = {
        "placed": {item.id for item in given.items if item.placed},
        "checked": {each.id for each in given.containers if each.checked is not None},
        "unchecked": {each.id for each in given.containers if each.checked is None},
        "explored": {room.id for room in given.rooms},
    }
    return {
        "found": {"maxItems": len(loose)},
        "found[].thing": one_of(loose),
        "found[].place": one_of({place for thing in loose for place in _places_of(given, thing)}),
        **{path: each for name, ids in lists.items() for path, each in some_of(name, ids).items()},
    }


@summarise_passage.check
def things_were_seen_where_it_says(given: Passage, answer: Synopsis) -> None:
    """Refuse things where nobody saw them, and a synopsis without words."""
    if not answer.narrative.strip():
        raise ValueError("The narrative is empty: say in words what happened.")
    for found in answer.found:
        if found.place not in _places_of(given, found.thing):
            raise ValueError(f"Say only what was told: {found.thing} was not seen at {found.place}.")


@summarise_passage.check
def narrative_names_what_was_told(given: Passage, answer: Synopsis) -> None:
    """Refuse numbers that did not occur, and names that are another's."""
    # Refused, since a synopsis stays in every later prompt.
    names = {int(number): name for name, number in NAMED_THING.findall(f"{given}")} | given.called
    for name, number in NAMED_THING.findall(answer.narrative):
        known = names.get(int(number))
        if name != known:
            right = f"({number}) is <{known}>" if known else f"nothing has the number {number}"
            raise ValueError(f"Say only what was told: {right}.")


@summarise_passage.check
def nothing_is_said_of_an_inside_that_nobody_saw(given: Passage, answer: Synopsis) -> None:
    """Refuse to call a container empty into which nobody has looked."""
    for sentence in sentences(answer.narrative.replace(";", ".")):  # so that one clause is judged at a time
        if SAYS_EMPTY.search(sentence) and not UNCERTAIN.search(sentence):
            for name, number in NAMED_THING.findall(sentence):
                if int(number) in given.unopened:
                    raise ValueError(f"Say only what was told: nobody looked into <{name}> ({number}).")


def sentences(narrative: str) -> list[str]:
    """Split a narrative into sentences."""
    return re.split(r"(?<=[.!?]) +", narrative.strip())


def _places_of(given: Passage, thing: int) -> set[int]:
    """Return the numbers that may name the place of an object: its holder, and the room."""
    rooms = {item.room for item in given.items if item.id == thing}
    return rooms | {given.places[thing]}
