"""Doing something in a process of its own, which may die of it."""

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, TypeVar

T = TypeVar("T")
LONGEST = 60.0
"""Seconds that it may take."""


class NoAnswer(Exception):  # noqa: N818  (read as what it is)
    """The process died, ended in an exception, or did not end."""


def elsewhere(work: Callable[..., T], *given: Any) -> T:
    """Do work in a process of its own, and return what it returns. Raises NoAnswer."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["mneme.stores.ledger.ledger", work.__module__])
    ours, theirs = context.Pipe()
    process = context.Process(target=_tell, args=(theirs, work, given))
    process.start()
    theirs.close()
    try:
        told = ours.recv() if ours.poll(LONGEST) else NoAnswer("it did not end")
    except EOFError:
        process.join()
        told = NoAnswer(f"the process died with {process.exitcode}")
    process.kill()
    process.join()
    if isinstance(told, NoAnswer):
        raise told
    answer: T = told
    return answer


def _tell(teller: Connection, work: Callable[..., Any], given: tuple[Any, ...]) -> None:
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 2)  # the engine prints where it panicked
    try:
        told = work(*given)
    except BaseException as error:  # noqa: BLE001  (a panic of the engine is no Exception)
        told = NoAnswer(f"{type(error).__name__}: {error}"[:300])
    teller.send(told)
