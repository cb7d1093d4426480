"""Processes that work for this one and end with it, however it ends."""

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, parent_process
from threading import Thread


def pool(count: int) -> ProcessPoolExecutor:
    """Open a pool of so many fresh processes, which share nothing with this one.

    The standard library's wait for ever where this process is killed, with all that they have loaded.
    """
    return ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_end_with_parent)


def _end_with_parent() -> None:
    Thread(target=_outlive_nobody, daemon=True).start()


def _outlive_nobody() -> None:
    if parent := parent_process():
        parent.join()
        os._exit(1)
