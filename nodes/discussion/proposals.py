"""The proposals of a discussion, read from its turns: the latest wording by name, and who accepts it.

As for issues, nothing is stored beside the turns. A proposal is a text in the form that agents are asked for,
`Name (choice) because …`; a text in another form is only in the speaker's memory.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from mneme.prompts.discussion.intrinsic_memory import ITEM, item_name
from mneme.stores.discussions.discussions import Turn


@dataclass
class Proposal:
    """An item of the solution in its latest wording, with its proposer and the turns that worded it."""

    name: str
    choice: str
    wording: str
    by: str
    turns: list[int]
    accepted: list[str] = field(default_factory=list)
    """Titles of the roles that accepted the solution since the proposal got this choice."""

    @property
    def is_accepted(self) -> bool:
        """Whether anybody except its proposer has accepted it."""
        return any(each != self.by for each in self.accepted)

    @property
    def origin(self) -> str:
        """The role that proposed it and the roles that accepted it."""
        accepted = f"; accepted by {', '.join(self.accepted)}" if self.accepted else ""
        return f"proposed by {self.by}{accepted}"


def proposals_of(turns: Iterable[Turn]) -> list[Proposal]:
    """Return the latest proposal under each name, in the order in which the names came up.

    Repeating the same choice, as a summary does, keeps its acceptances.
    """
    standing: dict[str, Proposal] = {}
    for turn in turns:
        for item in ITEM.finditer(turn.message):
            name, choice = item["name"].strip(), item["choice"].strip()
            older = standing.get(name.lower())
            is_same = older is not None and older.choice.lower() == choice.lower()
            standing[name.lower()] = Proposal(
                name=name,
                choice=choice,
                # Without what the pattern needs before the name, such as a list's mark.
                wording=" ".join(item[0][item.start("name") - item.start() :].split()),
                by=older.by if older and is_same else turn.title,
                turns=sorted({*(older.turns if older else ()), turn.number}),
                accepted=[*older.accepted] if older and is_same else [],
            )
        if turn.accept:  # after its own proposals, which it accepts as well
            for each in standing.values():
                each.accepted = [*dict.fromkeys([*each.accepted, turn.title])]
    return list(standing.values())


def repeats(entry: str, proposals: Iterable[Proposal]) -> bool:
    """Return whether a memory's entry is about a proposal, which is already shown in its latest wording."""
    return item_name(entry) in {each.name.lower() for each in proposals}
