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
GONE = 3.0
"""Seconds after which a ticket that was not touched is passed by; a waiting process touches it more often."""
OLD = 60.0
"""Seconds after which such a ticket is removed."""
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.5


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
        before = self._ticket.name if self._stands else None
        return sum(map(_is_waiting, _tickets(self.folder, before)))

    def leave(self) -> None:
        """Give the ticket back."""
        with suppress(OSError):
            self._ticket.unlink(missing_ok=True)


def is_waited_for(folder: Path) -> bool:
    """Return whether a process waits for the ledger."""
    return any(map(_is_waiting, _tickets(folder)))


def pause(before: int) -> float:
    """Return the seconds until it is worth looking again, with so many before."""
    return min(FIRST_PAUSE * (1 + before), LONGEST_PAUSE)


def _tickets(folder: Path, before: str | None = None) -> list["os.DirEntry[str]"]:
    """Return the tickets in a folder, or those before one."""
    with suppress(OSError), os.scandir(folder) as found:
        return [
            each for each in found if each.name.startswith(TICKET) and (before is None or each.name < before)
        ]
    return []


def _is_waiting(ticket: "os.DirEntry[str]") -> bool:
    with suppress(OSError):
        age = time.time() - ticket.stat().st_mtime
        if age > OLD:
            Path(ticket).unlink(missing_ok=True)
        return age < GONE
    return False
