"""The relevance floor of cards, on questions that it was not set by, with the bundled embedder."""

from pathlib import Path

import pytest
import yaml

from mneme.models.embedding.absent import BUNDLED
from mneme.models.embedding.embedders import open_embedder
from mneme.stores.cards.card import Lesson
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.ledger.ledger import open_ledger
from mneme.stores.ledger.records import Change

SET = yaml.safe_load(Path(__file__).with_name("relevance.yaml").read_text(encoding="utf-8"))
CHANGE = Change(reason="told", actor="ann")


@pytest.mark.skipif(
    not BUNDLED.is_installed(), reason="the weights of the bundled embedder are not installed"
)
async def test_questions_that_no_card_answers_are_shown_none(tmp_path: Path) -> None:
    ledger = await open_ledger(str(tmp_path / "ledger"), await open_embedder("bundled"))
    cards, names = KnowledgeCards(ledger, "t"), {}
    for name, claim in SET["cards"].items():
        names[(await cards.propose(Lesson(claim=claim), change=CHANGE)).card.id] = name
    shown = {
        each["asks"]: [names[hit.card.id] for hit in await cards.retrieve(each["asks"], 5)]
        for each in SET["questions"]
    }
    await ledger.close()
    held_out = SET["questions"][1::2]
    answered = [each["card"] in shown[each["asks"]] for each in held_out if each["card"]]
    silent = [not shown[each["asks"]] for each in held_out if not each["card"]]
    assert sum(answered) >= 0.9 * len(answered) == 9
    assert sum(silent) >= 0.9 * len(silent) == 9
    assert sum(map(len, shown.values())) < 2 * len(shown), "less than two cards for each question"
