"""What the tests of stores share."""

from collections.abc import AsyncIterator

import pytest

from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from mneme.stores.ledger.ledger import Ledger
from tests.doubles.checkpoints import Saver


@pytest.fixture
def cards(ledger: Ledger) -> KnowledgeCards:
    return KnowledgeCards(ledger, "red.team")


@pytest.fixture
async def saver(database: str) -> AsyncIterator[Saver]:
    async with open_checkpointer(database) as opened:
        yield opened
