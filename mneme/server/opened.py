"""The ledger that the server's process has open."""

import asyncio
import threading

from mneme.client.home import open_own_ledger
from mneme.stores.ledger.base_store import LedgerStore

_opening = threading.Lock()  # not asyncio's: each thread of the server has its own loop
_opened: list[LedgerStore] = []


async def store() -> LedgerStore:
    """Return the single store of this process; the server calls this once per thread."""
    await asyncio.to_thread(_opening.acquire)  # waiting for it here would block the loop
    try:
        if not _opened:
            _opened.append(LedgerStore(await open_own_ledger()))
        return _opened[0]
    finally:
        _opening.release()
