"""Routes and store that `langgraph dev` serves with the graphs.

Other programs use them, and so does the command line while the server runs.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mneme.api.copies import note_server
from mneme.api.server_state import SERVER_FOLDER
from mneme.client.home import announced
from mneme.core.private import close_to_others, make_private_folder
from mneme.nodes.chat.waking import agenda, remember_later
from mneme.server.new_runs import begun_at_once
from mneme.server.opened import store
from mneme.server.routes import api_of
from mneme.server.rows import ServerRows
from mneme.stores.ledger.ledger import Ledger


async def _remember(user: str, memory_agent: str, _: float) -> None:
    """Start the server's memory agent on the waiting messages when its turn comes, without waiting for it."""
    await remember_later((await store()).ledger, {"user": user, "memory_agent": memory_agent})


def _keep_private() -> None:
    """Restrict the server's folder of threads and runs, and all new files, to their owner."""
    os.umask(0o077)  # of the whole process: the server's own code makes most files, and gives no mode
    make_private_folder(SERVER_FOLDER)
    for each in (SERVER_FOLDER, *SERVER_FOLDER.iterdir()):
        close_to_others(each)


@asynccontextmanager
async def serving(ledger: Ledger) -> AsyncIterator[None]:
    """Announce the server, and remember what waits."""
    await asyncio.to_thread(_keep_private)  # first: what is written from here on is private
    await asyncio.to_thread(note_server)
    remembering = asyncio.create_task(agenda.serve(ledger))
    try:
        async with announced(os.environ["LANGGRAPH_API_URL"]):
            with begun_at_once():
                yield
    finally:
        remembering.cancel()
        await asyncio.gather(remembering, return_exceptions=True)


# the LangGraph server has the description of all routes
app = api_of(ServerRows(), _remember, serving, openapi_url=None)
