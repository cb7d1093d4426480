"""What the tests of the chat share."""

import pytest

from mneme.stores.ledger.ledger import Ledger
from mneme.stores.users.memory import Memory
from tests.doubles.remembering import MEMORY, known


@pytest.fixture
async def max_ledger(edge_ledger: Ledger) -> Ledger:
    """Give a ledger in which one memory is known."""
    await known(edge_ledger, Memory(content=MEMORY))
    return edge_ledger
