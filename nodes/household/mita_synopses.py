"""Keep the episodic memory short: superseded facts are resolved, and old synopses are put together into one.

Algorithm 1 only adds to C, so that it would grow without end, and each synopsis would repeat what others
say. The latest `RECENT` synopses stay as they were written. Those before them become one, which has no
narrative of its own: what they say in fields, as far as it still holds, is put into words.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mneme.environments.household.beliefs import Beliefs
from mneme.nodes.household.mita_state import DatedSynopsis
from mneme.prompts.household.synopsis import NARRATIVE, Found, Synopsis

RECENT = 3
"""Synopses that stay as they were written."""

Piece = Mapping[str, Any]


def kept_short(
    synopses: Sequence[DatedSynopsis], team: Beliefs, rooms: Mapping[int, str]
) -> list[DatedSynopsis]:
    """Resolve what `team` saw otherwise since, and put all but the latest synopses together.

    The last of the synopses is of what `team` saw, so that it stays as it is; `rooms` are names by id.
    """
    *earlier, last = synopses
    kept = [*(_resolved(each, team) for each in earlier), last]
    while len(kept) > RECENT + 1:
        kept[:2] = [_together(kept[0], kept[1], rooms)]
    return kept


def _resolved(dated: DatedSynopsis, team: Beliefs) -> DatedSynopsis:
    """Drop from the fields what is not as the synopsis says any more: things moved, containers opened."""
    gone = {piece["id"] for piece in dated["named"] if _is_superseded(piece, team)}
    told = Synopsis.model_validate(dated["synopsis"])
    holds = told.model_copy(
        update={
            "found": [each for each in told.found if each.thing not in gone],
            "placed": [each for each in told.placed if each not in gone],
            "unchecked": [each for each in told.unchecked if each not in team.checked],
        }
    )
    named = [piece for piece in dated["named"] if piece["id"] not in gone]
    return {**dated, "synopsis": holds.model_dump(mode="json"), "named": named}


def _is_superseded(piece: Piece, team: Beliefs) -> bool:
    """Say whether a thing was seen elsewhere since, or missed where it was; furniture does not move."""
    if piece["category"] != "object":
        return False
    known = team.things.get(piece["id"])
    if known is None:
        return team.lost.get(piece["id"], -1) > int(piece["step"])
    moved = (known.relation, known.holder) != (piece["relation"], piece["holder"])
    return moved and known.step > int(piece["step"])


def _together(first: DatedSynopsis, second: DatedSynopsis, rooms: Mapping[int, str]) -> DatedSynopsis:
    """Make one synopsis of two that follow one another; the later one is right where they differ."""
    old, new = (Synopsis.model_validate(each["synopsis"]) for each in (first, second))
    told_anew = {*new.placed, *(each.thing for each in new.found)}
    checked = sorted({*old.checked, *new.checked})
    named = {piece["id"]: piece for each in (first, second) for piece in each["named"]}
    both = Synopsis(
        narrative="",
        found=[*(each for each in old.found if each.thing not in told_anew), *new.found],
        placed=sorted({*(each for each in old.placed if each not in told_anew), *new.placed}),
        checked=checked,
        unchecked=sorted({*old.unchecked, *new.unchecked}.difference(checked)),
        explored=sorted({*old.explored, *new.explored}),
    )
    words = _in_words(both, named, rooms)
    seen = {**first.get("seen", {}), **second.get("seen", {})}
    return DatedSynopsis(
        step=second["step"],
        change=second["change"],
        synopsis=both.model_copy(update={"narrative": words}).model_dump(mode="json"),
        named=[named[each] for each in sorted(named)],
        seen=seen,
        merged=first.get("merged", 1) + 1,
    )


def _in_words(told: Synopsis, named: Mapping[int, Piece], rooms: Mapping[int, str]) -> str:
    """Put the fields of a synopsis into words, as many sentences as a narrative holds."""
    sentences = [
        _listed("Placed", (_label(each, named, rooms) for each in told.placed)),
        _listed("Found and loose by then", (_found(each, named, rooms) for each in told.found)),
        _listed("Checked", (_label(each, named, rooms) for each in told.checked)),
        _listed("Unchecked by then", (_label(each, named, rooms) for each in told.unchecked)),
        _listed("Explored rooms", (_label(each, named, rooms) for each in told.explored)),
    ]
    text = ""
    for sentence in filter(None, sentences):
        if len(text) + len(sentence) < NARRATIVE:
            text = f"{text} {sentence}".strip()
    return text or "Nothing of it holds any more."


def _listed(what: str, names: Iterable[str]) -> str:
    listed = ", ".join(names)
    return f"{what}: {listed}." if listed else ""


def _label(number: int, named: Mapping[int, Piece], rooms: Mapping[int, str]) -> str:
    name = named[number]["name"] if number in named else rooms.get(number, "thing")
    return f"<{name}> ({number})"


def _found(found: Found, named: Mapping[int, Piece], rooms: Mapping[int, str]) -> str:
    """Say where a loose thing is: on or in furniture of a known name, else in which room."""
    piece = named.get(found.thing)
    thing = _label(found.thing, named, rooms)
    if piece is not None and piece["holder"] == found.place and found.place in named:
        return f"{thing} {piece['relation']} {_label(found.place, named, rooms)}"
    room = found.place if found.place in rooms or piece is None else piece["room"]
    return f"{thing} in {_label(room, named, rooms)}"
