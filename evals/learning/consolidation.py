"""§8's cost table with measured figures: what retrieval costs before and after a consolidation, and training.

Cards are those of the worlds' own generators. Retrieval is timed and its prompt counted before and after four
fifths of them are archived. Where a base is named, the training of some pairs is timed on this machine, and
what all pairs cost follows by multiplication. Whether a tuned model answers as well is for `mneme cards
consolidate` to test.
"""

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from pydantic import Field

from mneme.evals.learning.card_corpus import lessons_of_worlds
from mneme.evals.measuring import seconds_of, temporary_ledger
from mneme.evals.options import Positive, RunOptions
from mneme.evals.report import Journal, Progress, Report, Row, table
from mneme.models.embedding.embedders import Embedder
from mneme.models.tuning.base import Base, find_base
from mneme.models.tuning.lora import Recipe, Training
from mneme.models.tuning.pairs import Pair
from mneme.nodes.learning.consolidation.sources import in_short
from mneme.stores.cards.card import Card, Evidence, Lesson
from mneme.stores.cards.consolidation import DELTA, ConsolidationCycle, is_held_out, lesson_of, situation_of
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.lifecycle import untested_card
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change

BATCH = 250
QUERIES = 200
LETTERS_A_TOKEN = 4
"""As many letters make a token, roughly; tokenizers differ by more than this does."""
CHANGE = Change(reason="made", actor="evaluation")
SECONDS_AN_HOUR = 3600


class Options(RunOptions):
    """How many cards, what a month is like, and what is tuned where."""

    sizes: list[Positive] = Field([500, 2_000], min_length=1, description="Verified cards.")
    recall: Positive = Field(10, description="Cards that a task is shown; the paper: 5 to 10.")
    tasks: Positive = Field(5_000, description="Tasks a month.")
    base: str = Field("", description="Base whose training is timed: GGUF, folder, smollm2; empty: none.")
    timed: Positive = Field(16, description="Pairs whose training is timed.")
    hourly: float = Field(1.0, ge=0, description="What an hour of this machine costs, in dollars.")


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Measure at every size, and report them together."""
    embedder = await options.opened_embedder()
    configuration = {"embedder": embedder.name, **options.model_dump(include={"recall", "base", "timed"})}
    journal = options.journal("consolidation", configuration)
    cases = {str(size): size for size in options.sizes}
    rows = await journal.play(cases, partial(_measure_fresh, options=options, embedder=embedder), progress)
    return report(rows, journal, options)


async def _measure_fresh(size: int, *, options: Options, embedder: Embedder) -> Row:
    async with temporary_ledger(embedder) as ledger:
        return await measure(ledger, size, options)


async def measure(ledger: Ledger, size: int, options: Options) -> Row:
    """Measure retrieval before and after, archive, rollback and training, in an empty ledger."""
    cards = KnowledgeCards(ledger, "scale")
    cycle = ConsolidationCycle(ledger, cards)
    made = [_card(number, lesson) for number, lesson in enumerate(lessons_of_worlds(size))]
    for start in range(0, len(made), BATCH):
        await ledger.write(
            [cards.records.write(card.id, card, CHANGE) for card in made[start : start + BATCH]]
        )
    questions = [situation_of(card) for card in made[:: max(1, size // QUERIES)]][:QUERIES]
    before = await _retrieval(cards, questions, options.recall)
    learned = [card.id for card in made if not is_held_out(card)]
    archive_s = await seconds_of(cycle.archive("v1", change=CHANGE, only=learned))
    after = await _retrieval(cards, questions, min(options.recall, DELTA))
    row: Row = {
        "cards": size,
        "learned": len(learned),
        "left": size - len(learned),
        "archive_s": archive_s,
        "rollback_s": await seconds_of(cycle.take_back(change=CHANGE)),
        **{f"{name}_before": value for name, value in before.items()},
        **{f"{name}_after": value for name, value in after.items()},
    }
    return row | (await asyncio.to_thread(_training, made, options) if options.base else {})


def _card(number: int, lesson: Lesson) -> Card:
    """Return a proven card of a lesson."""
    evidence = Evidence(task_ids=[f"t{number}"], success_count=3)
    proven = {"status": "verified", "returns_to": "verified", "evidence": evidence}
    return untested_card(lesson, CHANGE, 0.9).model_copy(update=proven)


async def _retrieval(cards: KnowledgeCards, questions: Sequence[str], recall: int) -> Row:
    """Time retrieval, and count what it puts into a prompt."""
    await cards.retrieve(questions[0], recall)  # indexes the weights' fields
    milliseconds, letters = list[float](), 0
    for text in questions:
        began = time.perf_counter()
        found = await cards.retrieve(text, recall)
        milliseconds.append(1000 * (time.perf_counter() - began))
        letters += sum(len(in_short(each.card)) for each in found)
    p95 = float(np.percentile(milliseconds, 95))
    return {"p95_ms": p95, "tokens": letters / LETTERS_A_TOKEN / len(questions)}


def _training(cards: Sequence[Card], options: Options) -> Row:
    """Train one epoch on some pairs, and return what one pair took. Blocks."""
    pairs = [Pair(key=card.id, asked=situation_of(card), answer=lesson_of(card)) for card in cards]
    base = Base(find_base(options.base))
    with TemporaryDirectory(prefix="mneme-tune-") as folder:
        trained = Training(base, Path(folder), Recipe(epochs=1)).run(pairs[: options.timed])
    seconds, epochs = trained.seconds / trained.pairs, Recipe().epochs
    return {"pair_s": seconds, "device": trained.device, "mixed": trained.mixed, "epochs": epochs}


def report(rows: Sequence[Row], journal: Journal, options: Options) -> Report:
    """Report the paper's rows beside what was measured."""

    def line(name: str, without: str, with_: str, cell: str) -> list[str]:
        return [name, without, with_, *(cell.format(**row, hours=_hours(row)) for row in rows)]

    lines = [
        line("cards retrieved from", "10,000", "500", "{cards} → {left}"),
        [
            "cards looked at a month",
            "10,000,000",
            "500,000",
            *(f"{row['cards'] * options.tasks:,} → {row['left'] * options.tasks:,}" for row in rows),
        ],
        line("retrieval p95, ms", "300", "50", "{p95_ms_before:.2f} → {p95_ms_after:.2f}"),
        line("prompt tokens of cards a task", "8,000", "1,000", "{tokens_before:.0f} → {tokens_after:.0f}"),
        line("archive, s", "–", "–", "{archive_s:.2f}"),
        line("rollback, s", "–", "–", "{rollback_s:.2f}"),
    ]
    if options.base:
        dollars = [f"{_hours(row) * options.hourly:.2f}" for row in rows]
        lines += [
            line("training, s a pair and epoch", "–", "–", "{pair_s:.2f}"),
            line("training of all, hours (computed)", "–", "–", "{hours:.2f}"),
            ["fine-tuning a quarter, $ (computed)", "0", "1,500", *dollars],
        ]
    columns = ("figure", "paper without", "with", *(f"{row['cards']} cards" for row in rows))
    notes = [
        f"Prompt tokens are letters by {LETTERS_A_TOKEN}; {options.recall} cards a task, then {DELTA}.",
        "Four fifths are archived, the held-out fifth stays; the paper's 500 of 10,000 cards are new ones.",
    ]
    tables = [table("§8: before → after a consolidation", columns, lines, figures=False)]
    return Report("consolidation", "no model", journal.path, [*rows], {"rows": [*rows]}, tables, [], notes)


def _hours(row: Row) -> float:
    return float(row.get("pair_s", 0.0) * row["learned"] * row.get("epochs", 1) / SECONDS_AN_HOUR)
