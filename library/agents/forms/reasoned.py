"""Words of a text: what the checks of puzzles, riddles and puns share."""

import re

WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")
_COMMON = """
a about after all also am an and any are as at be because been but by can cannot could did do does each
else for from get give given go had has have he her him his how i if in into is it its just like make
makes many may me more most much must my never nobody not nothing of off on one only or other our out
over own same say says she so some than that the their them then there these they thing things this those
though through to too two under up upon us very was we were what when where which while who whom whose
why will with without would yet you your
"""
COMMON = frozenset(_COMMON.split())
"""Words that say nothing of what a text is about."""


def words(text: str) -> list[str]:
    """Give a text's words in lower case, numbers included."""
    return WORD.findall(text.lower().replace("’", "'"))


def stems(text: str) -> set[str]:
    """Give the stems of a text's content words, cut crudely: enough to see that two texts share matter."""
    return {stem(word) for word in words(text) if word not in COMMON}


def stem(word: str) -> str:
    """Cut common endings off."""
    bare = word.removesuffix("'s")
    for ending in ("ings", "ing", "edly", "ed", "ies", "es", "s", "ly", "e", "y"):
        if bare.endswith(ending) and len(bare) - len(ending) >= 3:
            return bare.removesuffix(ending)
    return bare
