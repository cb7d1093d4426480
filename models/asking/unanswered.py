"""Remember which questions a model failed to answer for good, so that asked again they are drawn anew.

A resumed run, or a message that is remembered again, asks the same words; with the same seed at temperature 0
the same replies would come, and fail, for ever. A question's checksum is noted with how often it failed: no
word of it. Where nothing can be written, questions are asked as if for the first time.
"""

import asyncio
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from mneme.core.private import make_private_folder
from mneme.core.settings import settings

KEPT = 1000
"""Questions noted at most; the oldest are dropped."""


def digest(responder: str, texts: Sequence[str]) -> str:
    """Return the checksum of a question to a responder."""
    return hashlib.blake2b("\0".join((responder, *texts)).encode(), digest_size=16).hexdigest()


_ignored: ContextVar[bool] = ContextVar("ignored", default=False)


@contextmanager
def asked_as_if_new() -> Iterator[None]:
    """Ask questions within as if for the first time, and note no failure: for measurements, which repeat."""
    token = _ignored.set(True)
    try:
        yield
    finally:
        _ignored.reset(token)


async def failures(question: str) -> int:
    """Return how often a question failed for good before."""
    return 0 if _ignored.get() else await asyncio.to_thread(_read, _file(question))


async def note_failure(question: str) -> None:
    """Count that a question failed for good."""
    if not _ignored.get():
        await asyncio.to_thread(_note, _file(question))


async def forget_failures(question: str) -> None:
    """Drop the count of a question that was answered."""
    await asyncio.to_thread(_remove, _file(question))


def _file(question: str) -> Path:
    return settings().home / "unanswered" / question


def _read(file: Path) -> int:
    try:
        return int(file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0


def _note(file: Path) -> None:
    with suppress(OSError):
        make_private_folder(file.parent)
        file.write_text(str(_read(file) + 1), encoding="ascii")
        for each in sorted(file.parent.iterdir(), key=lambda old: old.stat().st_mtime)[:-KEPT]:
            each.unlink(missing_ok=True)


def _remove(file: Path) -> None:
    with suppress(OSError):
        file.unlink(missing_ok=True)
