"""A pickled file read and written again without making its objects, so that no code of it runs.

Classes and functions are named, not loaded; objects are kept as what they were made from.
"""

import copyreg
import io
import pickle
import pkgutil
from datetime import datetime, timedelta, timezone
from typing import Any, ClassVar
from uuid import UUID

from mneme.stores.checkpoints.packing import Wrapped

PROTOCOL = 2
"""The one that the server writes."""
RENAMED = {"__builtin__": "builtins", "copy_reg": "copyreg"}
"""Modules that this protocol calls by the names of Python 2."""
SAFE = {
    ("datetime", "datetime"): datetime,
    ("datetime", "timedelta"): timedelta,
    ("datetime", "timezone"): timezone,
    ("uuid", "UUID"): UUID,
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("_codecs", "encode"): str.encode,
}
"""What is made in earnest: plain values, whose making does nothing else."""


class Kept(Wrapped):
    """An object as its pickle makes it: a class or function, what that was called with, and the state."""

    origin: ClassVar[str] = ""

    def __new__(cls, *args: Any) -> "Kept":
        made = super().__new__(cls)
        made.args, made.inside, made.was_called = args, None, False
        return made

    args: tuple[Any, ...]
    was_called: bool

    def __init__(self, *_: Any) -> None:
        self.was_called = True

    def __setstate__(self, state: Any) -> None:
        self.inside = state

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        if self.was_called:
            return type(self), self.args, self.inside
        return copyreg.__newobj__, (type(self), *self.args), self.inside  # type: ignore[attr-defined]


class _Reader(pickle.Unpickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self._named: dict[str, type[Kept]] = {}

    def find_class(self, module: str, name: str) -> Any:
        place = RENAMED.get(module, module)
        if (place, name) in SAFE:
            return SAFE[place, name]
        if (place, name) == (pkgutil.__name__, pkgutil.resolve_name.__name__):
            return self._name  # the writer below wrote this file
        return self._name(f"{place}:{name}")

    def _name(self, origin: str) -> type[Kept]:
        return self._named.setdefault(origin, type(origin, (Kept,), {"origin": origin}))


class _Writer(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, type) and issubclass(obj, Kept):
            return pkgutil.resolve_name, (obj.origin,)
        return NotImplemented


def load(data: bytes) -> Any:
    """Return what a file holds, inert. Raises ValueError where it is no pickle of plain and named things."""
    try:
        return _Reader(io.BytesIO(data)).load()
    except (pickle.UnpicklingError, EOFError, TypeError, AttributeError, IndexError, KeyError) as error:
        raise ValueError(f"it cannot be read: {error}") from error


def dump(value: Any) -> bytes:
    """Return the same file again."""
    file = io.BytesIO()
    _Writer(file, PROTOCOL).dump(value)
    return file.getvalue()
