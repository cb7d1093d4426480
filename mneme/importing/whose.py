"""Whose memories are taken from a store that holds several people's."""

from collections.abc import Sequence
from typing import NamedTuple

from mneme.core.errors import BadInput
from mneme.importing.item import Item, count_by


class Owned(NamedTuple):
    """An item, and whose it is at its source: a name, or the parts of a namespace."""

    owner: tuple[str, ...]
    item: Item

    @property
    def label(self) -> str:
        return "/".join(self.owner)


def of_one(found: Sequence[Owned], wanted: str, option: str) -> list[Item]:
    """Return the items of the owner that is wanted, or of all where there is only one.

    `*` is everybody. Raises BadInput that names the owners, where none is chosen or the one has nothing.
    """
    if wanted == "*":
        return [each.item for each in found]
    chosen = tuple(filter(None, wanted.split("/")))
    mine = [each for each in found if each.owner[: len(chosen)] == chosen]
    labels = [each.label for each in mine or found]
    if mine and (chosen or len({*labels}) == 1):
        return [each.item for each in mine]
    if not found:
        return []
    problem = f"Nothing there is of {wanted}." if chosen else "It holds what is of several owners."
    raise BadInput(problem, f"Say {option} and one of: {count_by(labels)}. {option} '*' takes all.")
