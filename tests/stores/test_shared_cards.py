"""Cards for another organisation: what is taken out, what noise hides, and what it costs."""

import json
from pathlib import Path
from statistics import fmean

import pytest

from mneme.core.errors import BadInput
from mneme.nodes.learning.worlds import abstraction_of
from mneme.stores.cards.card import DeprecatedApproach, Lesson, Rule, TaskOutcome
from mneme.stores.cards.card_files import load
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.metrics import TaskRecord
from mneme.stores.cards.sharing import Abstraction, bounded_counts, noisy, outcomes_of
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change
from tests.doubles.command_line import run_mneme
from tests.doubles.quiet import quiet

CHANGE = Change(reason="a test", actor="test")
LESSON = Lesson(
    claim="For queries with range filter, grouping, build COVERING INDEX (filter, group)",
    rationale="Anna Kowalska of Acme saw SCAN orders take 780 ms on 2025-06-01, and 12 ms with "
    "idx_orders_1: each customer's order is read. Ask anna@acme.example, see /srv/acme/run.sh or getOrders.",
    rules=[Rule(condition="range filter; top-k order", pattern="REWRITE sargable; INDEX (filters, group)")],
    deprecated_approaches=[DeprecatedApproach(approach="INDEX (filter)", reason="slow", failed_in=["t1"])],
    scope="sql_tuning",
)
QUERY = (
    "Query: SELECT c.tier, COUNT(*) FROM orders JOIN customers c ON c.id = orders.customer_id GROUP BY c.tier"
)


async def learned(ledger: Ledger, lesson: Lesson = LESSON, tasks: int = 8) -> KnowledgeCards:
    cards = KnowledgeCards(ledger, "acme")
    for number in range(tasks):
        outcome = TaskOutcome(task=f"t{number}", success=number % 4 != 3, confidence=0.9)
        await cards.create(lesson, outcome, change=CHANGE)
        record = {"material": QUERY, "domain": "sql_tuning"}
        await cards.tasks.add(TaskRecord(id=f"t{number}", solved=True, seconds=1, iterations=1, **record))
    return cards


async def test_an_abstract_card_says_what_to_do_and_not_whose_it_was(edge_ledger: Ledger) -> None:
    cards = await learned(edge_ledger)
    shared = await cards.shared.export(await abstraction_of(cards, ["Tier"]), None, 1.0, change=CHANGE)
    [card] = load(shared.text)
    assert (card.claim, card.rules, card.scope) == (LESSON.claim, LESSON.rules, LESSON.scope)
    for told in ("Anna", "Kowalska", "cme", "orders", "customer", "780", "2025", "srv", "getOrders", "t1"):
        assert told not in shared.text, told
    assert "each [name" in card.rationale and "[figure] ms" in card.rationale, "the sentence stays readable"
    assert (card.evidence.count, card.confidence, card.status) == (0, 0.5, "provisional")
    assert card.provenance.created_by == "another organisation"
    assert (shared.epsilon, shared.spent.exports, shared.names > 5) == (None, 0, True)


async def test_who_imports_it_gets_a_provisional_card_that_the_noisy_share_shows_or_sets_aside(
    edge_ledger: Ledger,
) -> None:
    cards = await learned(edge_ledger)
    shared = await cards.shared.export(await abstraction_of(cards), 500.0, 1000.0, change=CHANGE)
    [card] = load(shared.text)
    assert (card.evidence.success_count, card.evidence.failure_count) == (6, 2), "hardly any noise"
    theirs = await KnowledgeCards(edge_ledger, "other").files.import_(shared.text, change=CHANGE)
    assert theirs.stored == [card.id]
    known = await cards.records.list()
    assert (await cards.files.import_(shared.text, change=CHANGE)).unchanged == [card.id], "it is known here"
    assert await cards.records.list() == known
    [taken] = await KnowledgeCards(edge_ledger, "other").records.list()
    assert (taken.status, taken.evidence.count, taken.shelf) == ("provisional", 0, "active")
    failing = shared.text.replace("confidence: 0.75", "confidence: 0.25")
    await KnowledgeCards(edge_ledger, "third").files.import_(failing, change=CHANGE)
    assert [each.shelf for each in await KnowledgeCards(edge_ledger, "third").records.list()] == ["aside"]


async def test_exports_add_up_until_the_budget_is_spent(edge_ledger: Ledger) -> None:
    cards = await learned(edge_ledger, tasks=2)
    plain = Abstraction()
    assert (await cards.shared.export(plain, 0.4, 1.0, change=CHANGE)).spent.epsilon == pytest.approx(0.4)
    assert (await cards.shared.export(plain, 0.6, 1.0, change=CHANGE)).spent.epsilon == pytest.approx(1.0)
    with pytest.raises(BadInput, match="over the budget of 1; 2 exports have spent 1"):
        await cards.shared.export(plain, 0.1, 1.0, change=CHANGE)
    with pytest.raises(BadInput, match="ε is 0"):
        await cards.shared.export(plain, 0.0, 1.0, change=CHANGE)
    assert (await cards.shared.spent()).exports == 2


async def test_a_task_counts_for_one_card_whatever_others_there_are(edge_ledger: Ledger) -> None:
    cards = await learned(edge_ledger, tasks=14)
    [card] = await cards.records.list()
    known = outcomes_of(await cards.records.history(card.id))
    assert sum(known.values()) == card.evidence.success_count and len(known) == 14, "more than the window"
    counts = bounded_counts(
        {"a": {"t1": True, "t2": False}, "b": {"t1": True}, "c": {"t1": False, "t3": True}}
    )
    assert sum(map(sum, counts.values())) == 3, "three tasks, each counted once"
    without = bounded_counts({"a": {"t2": False}, "b": {}, "c": {"t3": True}})
    changed = sum(abs(x - y) for key in counts for x, y in zip(counts[key], without[key], strict=True))
    assert changed == 1, "one task less changes all counts together by one"


def test_the_command_writes_what_may_be_told_and_keeps_the_account(tmp_path: Path) -> None:
    environment, file = quiet(tmp_path / "home"), tmp_path / "shared.yaml"
    run_mneme(["cards", "add", "Acme retries lost packets at once, not after 30 s."], environment)
    words = ["cards", "export", "--abstract", str(file), "--private", "packets", "--private", "Acme"]
    told = run_mneme([*words, "--epsilon", "0.5", "--budget", "0.8", "--json"], environment)
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout) | {"file": ""} == {
        **{"exported": 1, "file": "", "names taken out": 2, "figures": 1, "ε": 0.5, "ε in all": 0.5}
    }
    assert "[name 1] retries lost [name 2] at once, not after [figure] s." in file.read_text()
    over = run_mneme([*words, "--epsilon", "0.5", "--budget", "0.8"], environment)
    assert over.returncode and "over the budget of 0.8" in over.stderr
    alone = run_mneme(["cards", "export", "--epsilon", "1", str(file)], environment)
    assert alone.returncode and "--abstract" in alone.stderr


def test_the_noise_is_as_wide_as_the_privacy_asks() -> None:
    wide, narrow = (
        fmean(
            abs(s - 1000) + abs(f - 1000)
            for s, f in noisy({str(n): (1000, 1000) for n in range(400)}, e).values()
        )
        for e in (0.1, 1.0)
    )
    assert 14 < wide < 27 and 1.3 < narrow < 2.5  # twice the mean of |discrete Laplace|: about 20 and 1.84
    assert all(min(pair) >= 0 for pair in noisy({str(n): (0, 0) for n in range(200)}, 0.1).values())


def test_words_of_the_world_and_of_english_stay() -> None:
    shape = Abstraction(["COUNT in awk; `sort | uniq -c`"], ["ledgers"])
    kept = "Use COUNT in awk where `sort | uniq -c` is slow, e.g. with many lines; don't sort twice."
    assert shape.lesson(Lesson(claim=kept)).claim == kept
    said = shape.lesson(
        Lesson(claim="The ledger and Acme's ledgers use fooBar, x2 and 'secret word', 3.5 times")
    )
    assert (
        said.claim == "The [name 1] and [name 2] [name 1] use [name 3], [name 4] and [name 5], [figure] times"
    )
