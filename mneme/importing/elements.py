"""Read large JSON element by element, so that no more than one element is in memory.

The package `ijson` (3.6.0) is as fast, and was tried: it bounds no element, and 100 kB of opening brackets
make it take all memory, since it writes out the path of each.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from mneme.core.errors import BadInput

CHUNK = 1 << 20
"""Characters that are read at once."""
LARGEST = 100_000_000
"""Characters that one element may have."""
BETWEEN = re.compile(r"[\s,]*")
INSIDE = ("conversations", "results", "items", "memories")
"""Names under which an object holds the elements."""
_decoder = json.JSONDecoder()


def elements_of(file: Path) -> Iterator[Any]:
    """Yield what `elements` finds in a file. Raises BadInput, also where the file cannot be read."""
    try:
        with file.open(encoding="utf-8-sig") as text:
            yield from elements(text, str(file))
    except OSError as error:
        raise BadInput(f"Cannot read {file}: {error.strerror or error}.", "Is the name right?") from error


def elements(file: TextIO, name: str) -> Iterator[Any]:
    """Yield the elements of an array, of the array in an object, or of JSON Lines.

    Raises BadInput for what is no JSON, for an element that is too large, and where a file is cut.
    """
    try:
        for value in _values(file, name):
            found = [value[each] for each in INSIDE if each in value] if isinstance(value, dict) else []
            yield from found[0] if found and isinstance(found[0], list) else [value]
    except UnicodeDecodeError as error:
        raise BadInput(f"{name} is not UTF-8 text.", "Give the file as it was exported.") from error


def _values(file: TextIO, name: str) -> Iterator[Any]:
    """Yield the values of an array, or those that stand one after another."""
    text, place, is_array, number = "", 0, False, 0
    while True:
        place = _past(text, place)
        if place == len(text):
            text, place = file.read(CHUNK), 0
            if text:
                continue
            if number and not is_array:
                return
            raise BadInput(f"{name} ends after {number} elements, in the middle.", "Export it again.")
        if not number and not is_array and text[place] == "[":
            is_array, place = True, place + 1
        elif is_array and text[place] == "]":
            return
        else:
            value, text, place = _whole(file, text, place, f"{name}, element {number + 1},")
            number += 1
            yield value


def _past(text: str, place: int) -> int:
    """Return where the blanks and commas at a place end."""
    found = BETWEEN.match(text, place)
    return found.end() if found else place


def _whole(file: TextIO, text: str, place: int, name: str) -> tuple[Any, str, int]:
    """Return the value that stands at a place, reading on until it is whole, and where the text goes on."""
    while True:
        try:
            value, end = _decoder.raw_decode(text, place)
        except RecursionError as error:
            raise BadInput(f"{name} is nested too deeply.", "It is not an export.") from error
        except ValueError as error:
            if len(text) - place > LARGEST:
                raise BadInput(
                    f"{name} has more than {LARGEST:,} characters.", "It is not an export."
                ) from error
            more = file.read(max(CHUNK, len(text) - place))
            if not more:
                raise BadInput(f"{name} is not JSON: {error}.", "Export it again.") from error
            text, place = text[place:] + more, 0
        else:
            return value, text, end
