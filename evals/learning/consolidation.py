"""§8's cost table with measured figures: what retrieval costs before and after a consolidation, and training.

Cards are made by combination, over the query-tuning world's schemas and approaches. Retrieval is timed and
its prompt counted before and after four fifths of them are archived. Where a base is named, the training
of some pairs is timed on this machine, and what all pairs cost follows by multiplication: such rows say so.
Whether a tuned model answers as well is for `mneme cards consolidate` to test; nothing here claims it.
"""

import asyncio
import itertools
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import BaseModel, Field

from mneme.core.settings import settings
from mneme.environments.sql_tuning.schemas import SCHEMAS
from mneme.evals.measuring import latency, temporary_ledger
from mneme.evals.options import RUNS, EmbedderName, Fresh, Out, Positive
from mneme.evals.report import Journal, Progress, Report, Row, open_journal, table
from mneme.models.embedding.embedders import open_embedder
from mneme.models.tuning.base import Base, find_base
from mneme.models.tuning.lora import Recipe, Training
from mneme.models.tuning.pairs import Pair
from mneme.nodes.learning.consolidation.sources import in_short
from mneme.stores.cards.card import Card, Evidence, Lesson, Provenance, Rule
from mneme.stores.cards.consolidation import DELTA, ConsolidationCycle, is_held_out, lesson_of, situation_of
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change

APPROACHES = {
    "an index on the filter and then the group": "INDEX (filter, group)",
    "an index on every filter, the equal ones first": "INDEX (filters)",
    "an index that also holds the summed column": "INDEX (filter, group, sum)",
    "a range in place of a function of the column": "RANGE (filter)",
    "a join in place of a correlated subquery": "JOIN",
}
SHAPES = ("a time range", "two filters", "many distinct values", "a join", "the first rows", "a prefix")
WHY = ("it is read in order", "fewer rows are read", "no table is sorted", "the planner knows the sizes")
AT_ONCE = 250
QUERIES = 200
LETTERS_A_TOKEN = 4
"""As many letters make a token, roughly; tokenizers differ by more than this does."""
CHANGE = Change(reason="made", actor="evaluation")
SECONDS_AN_HOUR = 3600


class Options(BaseModel):
    """How many cards, what a month is like, and what is tuned where."""

    sizes: list[Positive] = Field([500, 2_000], min_length=1, description="Verified cards.")
    recall: Positive = Field(10, description="Cards that a task is shown; the paper: 5 to 10.")
    tasks: Positive = Field(5_000, description="Tasks a month.")
    base: str = Field("", description="Base whose training is timed: GGUF, folder, smollm2; empty: none.")
    timed: Positive = Field(16, description="Pairs whose training is timed.")
    hourly: float = Field(1.0, ge=0, description="What an hour of this machine costs, in dollars.")
    embedder: EmbedderName = ""
    out: Out = RUNS
    fresh: Fresh = False


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Measure at every size, and report them together."""
    embedder = await open_embedder(options.embedder or settings().embedder)
    configuration: Row = {
        "embedder": embedder.name,
        **options.model_dump(mode="json", include={"recall", "base", "timed"}),
    }
    journal = open_journal(options.out, "consolidation", configuration, fresh=options.fresh)
    waiting = [size for size in options.sizes if str(size) not in journal]
    for number, size in enumerate(waiting):
        async with temporary_ledger(embedder) as ledger:
            row = await measure(ledger, size, options)
        journal.add(str(size), row)
        progress(number + 1, len(waiting), f"{size} cards")
    return report([journal[str(size)] for size in options.sizes], journal, options)


async def measure(ledger: Ledger, size: int, options: Options) -> Row:
    """Measure retrieval before and after, archive, rollback and training, in an empty ledger."""
    cards = KnowledgeCards(ledger, "scale")
    cycle = ConsolidationCycle(ledger, cards)
    made = list(itertools.islice(_cards(), size))
    for start in range(0, len(made), AT_ONCE):
        writes = [cards.records.write_of(card, CHANGE, 0) for card in made[start : start + AT_ONCE]]
        await ledger.write(writes)
    asked = [situation_of(card) for card in made[:: max(1, size // QUERIES)]][:QUERIES]
    before = await _retrieval(cards, asked, options.recall)
    learned = [card.id for card in made if not is_held_out(card)]
    began = time.perf_counter()
    await cycle.archive("v1", change=CHANGE, only=learned)
    archive_s = time.perf_counter() - began
    after = await _retrieval(cards, asked, min(options.recall, DELTA))
    began = time.perf_counter()
    await cycle.take_back(change=CHANGE)
    row: Row = {
        "cards": size,
        "learned": len(learned),
        "left": size - len(learned),
        "archive_s": archive_s,
        "rollback_s": time.perf_counter() - began,
        **{f"{name}_before": value for name, value in before.items()},
        **{f"{name}_after": value for name, value in after.items()},
    }
    if options.base:
        row |= await asyncio.to_thread(_timed, made, options)
    return row


async def _retrieval(cards: KnowledgeCards, asked: Sequence[str], recall: int) -> Row:
    """Time retrieval, and count what it puts into a prompt."""
    await cards.retrieve(asked[0], recall)  # indexes the weights' fields
    seconds, letters = [], 0
    for text in asked:
        began = time.perf_counter()
        found = await cards.retrieve(text, recall)
        seconds.append(time.perf_counter() - began)
        letters += sum(len(in_short(each.card)) for each in found)
    return {**latency("retrieval", seconds), "tokens": letters / LETTERS_A_TOKEN / len(asked)}


def _cards() -> Iterator[Card]:
    """Make proven cards, all different, in an order that mixes schemas and approaches. Endless enough."""
    tables = [
        (schema, name, column)
        for schema, about in SCHEMAS.items()
        for name, columns in about.tables().items()
        for column in columns
    ]
    now = datetime.now(UTC)
    for number in itertools.count():
        schema, name, column = tables[number % len(tables)]
        approach = list(APPROACHES)[number % len(APPROACHES)]
        shape, why = SHAPES[number % len(SHAPES)], WHY[number % len(WHY)]
        release = number // len(tables)
        lesson = Lesson(
            claim=f"For {shape} on {name}.{column} of {schema} since release {release}, make {approach}",
            rationale=f"Measured: {why}, and the query is {2 + number % 9} times as fast.",
            rules=[Rule(condition=f"{shape} on {name}.{column}", pattern=APPROACHES[approach])],
            tags=["sql", schema, name],
        )
        yield Card(
            **lesson.model_dump(),
            id=lesson.card_id,
            status="verified",
            returns_to="verified",
            confidence=0.9,
            provenance=Provenance(created_by="evaluation", created_at=now),
            evidence=Evidence(task_ids=[f"t{number}"], success_count=3),
        )


def _timed(cards: Sequence[Card], options: Options) -> Row:
    """Train one epoch on some pairs, and return what one pair took. Blocks."""
    pairs = [Pair(key=card.id, asked=situation_of(card), answer=lesson_of(card)) for card in cards]
    base = Base(find_base(options.base))
    with TemporaryDirectory(prefix="mneme-tune-") as folder:
        trained = Training(base, Path(folder), Recipe(epochs=1)).run(pairs[: options.timed])
    return {
        "pair_s": trained.seconds / trained.pairs,
        "device": trained.device,
        "mixed": trained.mixed,
        "epochs": Recipe().epochs,
    }


def report(rows: Sequence[Row], journal: Journal, options: Options) -> Report:
    """Report the paper's rows beside what was measured."""
    columns = ("figure", "paper without", "with", *(f"{row['cards']} cards" for row in rows))
    lines = [
        ["cards retrieved from", "10,000", "500", *(f"{row['cards']} → {row['left']}" for row in rows)],
        [
            "cards looked at a month",
            "10,000,000",
            "500,000",
            *(f"{row['cards'] * options.tasks:,} → {row['left'] * options.tasks:,}" for row in rows),
        ],
        ["retrieval p95, ms", "300", "50", *(_arrow(row, "retrieval_p95_ms", 2) for row in rows)],
        ["prompt tokens of cards a task", "8,000", "1,000", *(_arrow(row, "tokens", 0) for row in rows)],
        ["archive, s", "–", "–", *(f"{row['archive_s']:.2f}" for row in rows)],
        ["rollback, s", "–", "–", *(f"{row['rollback_s']:.2f}" for row in rows)],
    ]
    if all("pair_s" in row for row in rows):
        lines += [
            ["training, s a pair and epoch", "–", "–", *(f"{row['pair_s']:.2f}" for row in rows)],
            ["training of all, hours (computed)", "–", "–", *(f"{_hours(row):.2f}" for row in rows)],
            [
                "fine-tuning a quarter, $ (computed)",
                "0",
                "1,500",
                *(f"{_hours(row) * options.hourly:.2f}" for row in rows),
            ],
        ]
    notes = [
        f"Prompt tokens are letters by {LETTERS_A_TOKEN}; {options.recall} cards a task, then {DELTA}.",
        "Four fifths are archived, the held-out fifth stays; the paper's 500 of 10,000 cards are new ones.",
        "The paper's return of 33 times rests on an engineer's saved minutes, which nothing here measures.",
    ]
    tables = [table("§8: before → after a consolidation", columns, lines, figures=False)]
    return Report("consolidation", "no model", journal.path, [*rows], {"rows": [*rows]}, tables, [], notes)


def _arrow(row: Row, name: str, digits: int) -> str:
    return f"{row[f'{name}_before']:.{digits}f} → {row[f'{name}_after']:.{digits}f}"


def _hours(row: Row) -> float:
    return float(row["pair_s"] * row["learned"] * row["epochs"] / SECONDS_AN_HOUR)
