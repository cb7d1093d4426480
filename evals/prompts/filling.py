"""Lengthen what a question is given with neutral text, to see whether a model still finds what matters.

The text says nothing about anybody: things in museums, with towns and years. No sentence comes twice in
the length of a context. A text gets half of it before and half after what is there; a list of texts gets as
many texts before as after (so the numbers of those that are there grow), each of a few sentences.
"""

from collections.abc import Iterator, Mapping
from itertools import count, product
from typing import Any

THINGS = (
    "brass telescope",
    "weaver's loom",
    "ship's bell",
    "printing press",
    "glass prism",
    "copper kettle",
    "stone mill",
    "paper globe",
    "wooden plough",
    "tin lantern",
    "church organ",
    "salt cellar",
)
TOWNS = ("Aarhus", "Bergamo", "Coimbra", "Delft", "Esztergom", "Freiberg", "Ghent", "Halmstad")
FRAMES = (
    "The {thing} in the town museum of {town} was made in {year}.",
    "Visitors to {town} are shown a {thing} from the year {year}.",
    "A {thing} was found in a cellar of {town} and restored in {year}.",
    "An old catalogue of {year} lists a {thing} among the goods sold in {town}.",
    "The workshop in {town} that built the {thing} closed in {year}.",
)
FIRST_YEAR, YEARS = 1700, 197
SENTENCES = 3
"""In one text of a list."""


def neutral() -> Iterator[str]:
    """Return sentences without end, of which the first 480 differ; after them the years do."""
    combinations = [(frame, town, thing) for thing, town, frame in product(THINGS, TOWNS, FRAMES)]
    for number in count():
        frame, town, thing = combinations[number * 7 % len(combinations)]
        yield frame.format(thing=thing, town=town, year=FIRST_YEAR + number * 31 % YEARS)


def filled(given: Mapping[str, Any], fill: Mapping[str, int]) -> dict[str, Any]:
    """Return what is given with these fields lengthened to about so many characters.

    Raises `ValueError` where a field is neither a text nor a list.
    """
    return {**given, **{name: _lengthened(name, given.get(name, ""), size) for name, size in fill.items()}}


def _lengthened(name: str, value: Any, size: int) -> Any:
    if isinstance(value, str):
        before, after = _halves(size - len(value), 1)
        return "\n".join(filter(None, [" ".join(before), value, " ".join(after)]))
    if isinstance(value, list):
        before, after = _halves(size - sum(len(str(each)) for each in value), SENTENCES)
        return [*before, *value, *after]
    raise ValueError(f"{name} is neither a text nor a list")


def _halves(size: int, at_once: int) -> tuple[list[str], list[str]]:
    """Return texts of so many sentences each, of about this size in all, in two halves of one number."""
    source, texts = neutral(), list[str]()
    while sum(map(len, texts)) < size or len(texts) % 2:
        texts.append(" ".join(next(source) for _ in range(at_once)))
    return texts[: len(texts) // 2], texts[len(texts) // 2 :]
