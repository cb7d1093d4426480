"""Which replies say again what a memory says."""

from collections.abc import Callable

from mneme.core.evidence import names, telling
from mneme.stores.users.told import Told

ENOUGH = 2
"""Words in common that make a reply a repetition, where no name and no number is among them."""


def repeating(told: Told) -> Callable[[str], bool]:
    """Return a test of replies: those with a name, a number or two telling words of the memory.

    A reply puts things in its own words, so it is not looked for as it stands. It is better to erase a reply
    too many, which costs little, than to leave one that gives the memory away.
    """
    known = [words for text in told.texts if (words := frozenset(telling(text)))]
    marks = {name for text in told.texts for name in names(text)}
    marks |= {word for words in known for word in words if word.isdigit()}

    def repeats(reply: str) -> bool:
        said = frozenset(telling(reply))
        return bool(said & marks) or any(len(said & each) >= min(ENOUGH, len(each)) for each in known)

    return repeats
