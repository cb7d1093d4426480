"""The line of processes that wait for an embedded ledger: first come, first served.

The lock of the ledger knows no order, so whoever waits has a ticket: an empty file in the ledger's folder,
named by the time of arrival, and touched as long as its owner waits. A ticket that nobody touches belongs to
a process that was killed or stopped, and is passed by. The line is a courtesy: the lock alone decides who
has the ledger. Where no ticket can be written there is no order, and nothing else is different.
"""

import os
import time
from contextlib import suppress
from pathlib import Path

from mneme.stores.ledger.owner import owner_of

TICKET = "mneme.ticket-"
GONE = 1.0
"""Seconds after which a ticket that was not touched is passed by; a waiting process touches it more often."""
OLD = 60.0
"""Seconds after which such a ticket is removed."""
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.25


class Line:
    """This process's place in the line at a ledger's folder; it stands there from `stand` until `leave`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ticket = folder / f"{TICKET}{time.time_ns():020d}-{os.getpid()}"
        self._stands = False

    def stand(self) -> None:
        """Take a ticket, or keep it valid."""
        with suppress(OSError):
            self._ticket.touch(mode=0o600)
            self._stands = True

    def before(self) -> int:
        """Return how many wait before this process; all who wait, while it does not stand in the line.

        Nobody is before a process that has the ledger open itself: they wait for it.
        """
        if owner_of(self.folder) == os.getpid():
            return 0
        return sum(
            _is_waiting(ticket)
            for ticket in self.folder.glob(f"{TICKET}*")
            if not self._stands or ticket.name < self._ticket.name
        )

    def leave(self) -> None:
        """Give the ticket back."""
        with suppress(OSError):
            self._ticket.unlink(missing_ok=True)


def is_waited_for(folder: Path) -> bool:
    """Return whether a process waits for the ledger."""
    return any(map(_is_waiting, folder.glob(f"{TICKET}*")))


def pause(before: int) -> float:
    """Return the seconds until it is worth looking again, with so many before."""
    return min(FIRST_PAUSE * (1 + before), LONGEST_PAUSE)


def _is_waiting(ticket: Path) -> bool:
    with suppress(OSError):
        age = time.time() - ticket.stat().st_mtime
        if age > OLD:
            ticket.unlink(missing_ok=True)
        return age < GONE
    return False
