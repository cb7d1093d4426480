"""What the tests of stores share."""

import pytest

from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.ledger.ledger import Ledger


@pytest.fixture
def cards(ledger: Ledger) -> KnowledgeCards:
    return KnowledgeCards(ledger, "red.team")
