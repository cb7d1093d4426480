"""A memory brought up to date: statements replaced whole, or one more at the end."""

import re

from mneme.rules.english.comparison import relation, statements_of
from mneme.rules.english.composition import LONGEST, compose
from mneme.rules.english.signs import content_stems
from mneme.rules.english.words import phrase, tokens

_NAMED = re.compile(r"((?:The user's|My|Our) (?:[a-zé-]+ ){1,3})([A-Z][\w-]+)(?=\W)")
_DENIED = re.compile(r",? (?:(?:and |but )?not|instead of|rather than) ([^,.;]{1,60})\W*$")


def rewrite(fact: str, memory: str, message: str) -> str:
    """Put the fact in the place of the statements that it contradicts; where there are none, at the end.

    What the same message has said before stays.
    """
    known, gone = statements_of(memory), outdated(fact, memory, message)
    described = _undenied(_described(fact, gone[0]), gone[0]) if gone else fact
    at = known.index(gone[0]) if gone else len(known)
    kept = [*known[:at], described, *(each for each in known[at:] if each not in gone)]
    whole = " ".join(map(_closed, kept))
    return whole if len(whole) <= max(LONGEST, len(memory)) and whole != memory else fact


def outdated(fact: str, memory: str, message: str) -> list[str]:
    """Return the statements of a memory that a fact makes false, but those that its own message says."""
    new = statements_of(fact)
    said = {one for each in compose(message, (), "") for one in statements_of(each.content)}
    return [
        each
        for each in statements_of(memory)
        if each not in said and any(_ends(one, each, message) for one in new)
    ]


def _ends(fact: str, statement: str, message: str) -> bool:
    """Say whether a statement is no longer so with a new fact, all of it."""
    return relation(fact, statement, message) == "conflict" and not _keeps_more(fact, statement)


def _keeps_more(fact: str, statement: str) -> bool:
    """Say whether an end is of one thing out of several: `The user drinks tea and coffee`."""
    return bool(phrase("ended").search(fact)) and bool(re.search(r"\w,? and \w", statement))


def _described(fact: str, replaced: str) -> str:
    """Say of `Max` that he is `the user's dog Max`, where only the replaced statement said so."""
    named = _NAMED.match(replaced)
    first = tokens(fact)[:1]
    named = None if fact.startswith(("The ", "We ", "It ")) else named
    return f"{named[1]}{fact}" if named and first and first[0].text.removesuffix("'s") == named[2] else fact


def _undenied(fact: str, replaced: str) -> str:
    """Leave out an end like `…, not Tuesday`, where the replaced statement alone said it."""
    denied = _DENIED.search(fact)
    gone = denied and content_stems(tokens(denied[1])) <= content_stems(tokens(replaced))
    return f"{fact[: denied.start()]}." if denied and gone else fact


def _closed(statement: str) -> str:
    return statement if not statement or statement[-1] in ".!?…。！？" else f"{statement}."
