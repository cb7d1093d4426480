"""A real `langgraph dev`, run as a user does."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from mneme.api.operation import API_PATH
from mneme.evals import langgraph_server
from mneme.evals.commands import quiet
from mneme.server.users import add_user
from tests.doubles.command_line import Done, run_mneme

ROOT = Path(__file__).parents[2]


class Server(langgraph_server.Server):
    """A running server, and what a test does beside it."""

    def client(self, key: str | None = None) -> LangGraphClient:
        """Return a client that the test closes: `async with server.client() as client`."""
        return get_client(url=self.url, api_key=key)

    def thread(self, name: str, owner: str = "local", key: str = "") -> str:
        """Return the id of an owner's thread of that name."""
        headers, asked = {"x-api-key": key} if key else {}, {"user": owner, "name": name}
        answer = httpx.get(f"{self.url}{API_PATH}/threads/named", params=asked, headers=headers, timeout=None)
        return str(answer.raise_for_status().json())

    def mneme(self, *words: str, stdin: str = "") -> Done:
        """Run the command line beside the server, in the same home."""
        return run_mneme(words, self.environment, stdin)


@dataclass(frozen=True)
class Guarded:
    """A running server that asks for keys, and the file of its users."""

    server: Server
    users: Path

    def key(self, user: str) -> str:
        """Add a user, and return the user's key."""
        return add_user(self.users, user)


@contextmanager
def serving(home: Path, workers: str = "8", **settings: str) -> Iterator[Server]:
    """Run `langgraph dev` as `make dev` does, without --allow-blocking, until it is told to end."""
    with langgraph_server.langgraph_dev(home, quiet(home, **settings), workers) as server:
        yield Server(**vars(server))
