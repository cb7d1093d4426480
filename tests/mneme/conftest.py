"""What the tests of the face share."""

from collections.abc import AsyncIterator

import pytest
from langgraph_sdk.client import LangGraphClient

from tests.doubles.langgraph_server import Server


@pytest.fixture
async def client(server: Server) -> AsyncIterator[LangGraphClient]:
    async with server.client() as opened:
        yield opened
