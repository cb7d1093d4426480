"""§11.3 of the self-improving-memory paper: how often is a consolidation worth its cost?

The same stream of tasks passes once for each cadence: every so many tasks the graph `consolidation` gathers,
trains, judges, deploys, replays and archives. A task draws one lesson of the worlds' own generator, common
ones oftener (Zipf's law), and proves it; a lesson that three tasks proved is a verified card. Measured are
the seconds and bytes of every consolidation, and what a task pays for its cards, in milliseconds of retrieval
and tokens of prompt, before a tuned model serves and after.
"""

import random
import time
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
from pydantic import Field

from mneme.evals.learning.card_corpus import lessons_of_worlds
from mneme.evals.learning.consolidation import LETTERS_A_TOKEN
from mneme.evals.measuring import in_environment, ledger_at
from mneme.evals.options import Positive, RunOptions
from mneme.evals.report import Journal, Progress, Report, Row, framed
from mneme.graphs.consolidation import builder
from mneme.models.embedding.embedders import Embedder
from mneme.nodes.learning.consolidation.sources import in_short
from mneme.nodes.learning.consolidation.state import TuningContext
from mneme.stores.cards.card import Lesson, TaskOutcome
from mneme.stores.cards.consolidation import DELTA, ConsolidationCycle
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.lifecycle import Approval, PromotionRubric
from mneme.stores.cards.metrics import TaskRecord
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change

TEAM = "cadence"
PROVEN = 3
"""Tasks that prove a lesson well enough to be trained on (§8, step 1)."""
CHANGE = Change(reason="a task of the stream", actor="evaluation")
GOOD = PromotionRubric(solved=True, faster_or_novel=True, no_new_failures=True, reusable=True)


class Options(RunOptions):
    """Which base, at which cadences, over what stream."""

    base: str = Field("smollm2", description="Base that is tuned: a GGUF file, a folder or smollm2.")
    ollama: str = Field("smollm2", description="The same model by its name in Ollama.")
    every: list[Positive] = Field([40, 80, 120], min_length=1, description="Tasks between consolidations.")
    tasks: int = Field(240, ge=10, description="Tasks of the stream.")
    lessons: Positive = Field(60, description="Different lessons that the tasks can teach: the diversity.")
    recall: Positive = Field(5, description="Cards that a task is shown where no tuned model serves.")
    epochs: Positive = Field(3, description="Rounds of training through the pairs.")


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Run the stream with every cadence, and once without; report what was measured."""
    import_module("peft")  # slow, and the first consolidation would pay for it
    embedder = await options.opened_embedder()
    measured = options.model_dump(mode="json", exclude={"every", "embedder", "out", "fresh"})
    configuration = {"embedder": embedder.name, **measured}
    journal = options.journal("cadence", configuration)
    cadences = {f"every {every}" if every else "never": every for every in (*sorted({*options.every}), 0)}
    rows = await journal.play(cadences, partial(_stream, options=options, embedder=embedder), progress)
    return report(rows, journal, options)


async def _stream(every: int, *, options: Options, embedder: Embedder) -> Row:
    """Let the tasks pass, with a consolidation after each `every` of them; 0: with none."""
    with TemporaryDirectory(prefix="mneme-cadence-") as place:
        home = Path(place)
        with in_environment({"MNEME_HOME": place}):
            async with ledger_at(home / "ledger", embedder) as ledger:
                cards = KnowledgeCards(ledger, TEAM)
                cycle = ConsolidationCycle(ledger, cards)
                tasks, consolidations = list[Row](), list[Row]()
                for number, lesson in enumerate(drawn_lessons(options), start=1):
                    shown = DELTA if await cycle.serving() else options.recall
                    tasks.append(await _task(cards, number, lesson, shown))
                    if every and number % every == 0:
                        consolidations.append(await _consolidate(ledger, cycle, number, home, options))
                known = await cards.records.list()
    proven = sum(card.evidence.success_count >= PROVEN for card in known)
    return {"every": every, "tasks": tasks, "consolidations": consolidations, "proven": proven}


def drawn_lessons(options: Options) -> list[Lesson]:
    """Return the lessons of the stream's tasks, the same whatever the cadence."""
    dice = random.Random(0)  # noqa: S311  (a stream, no secret)
    chosen = dice.sample(lessons_of_worlds(20 * options.lessons), options.lessons)
    return dice.choices(chosen, [1 / (rank + 1) for rank in range(len(chosen))], k=options.tasks)


async def _task(cards: KnowledgeCards, number: int, lesson: Lesson, shown: int) -> Row:
    """Look up what a task would be shown; then prove its lesson."""
    task = f"Task {number:05d} of the stream: {lesson.rules[0].condition}"
    began = time.perf_counter()
    found = await cards.retrieve(task, shown)
    milliseconds = 1000 * (time.perf_counter() - began)
    await _prove(cards, number, lesson)
    await cards.tasks.add(TaskRecord(id=f"t{number}", task=task, solved=True, seconds=1, iterations=1))
    letters = sum(len(in_short(each.card)) for each in found)
    return {"ms": milliseconds, "tokens": letters / LETTERS_A_TOKEN}


async def _prove(cards: KnowledgeCards, number: int, lesson: Lesson) -> None:
    """Count the task for its lesson's card; what a tuned model knows already teaches no card anew."""
    known = await cards.records.find(lesson.card_id)
    if known and known.status == "archived":
        return
    outcome = TaskOutcome(task=f"t{number}", success=True, confidence=0.9)
    card = (await cards.create(lesson, outcome, change=CHANGE)).card
    if card.evidence.success_count >= PROVEN and card.status == "provisional":
        approval = Approval(by="leader", approved=True, rubric=GOOD)
        await cards.promote(card.id, approval, change=CHANGE)


async def _consolidate(
    ledger: Ledger, cycle: ConsolidationCycle, number: int, home: Path, options: Options
) -> Row:
    given: Any = {"base": options.base, "served_base": options.ollama, "force": True}
    context = TuningContext(team=TEAM, epochs=options.epochs)
    began, spent = time.perf_counter(), time.process_time()
    ended = await builder.compile(store=LedgerStore(ledger)).ainvoke(given, context=context)
    trained = ended["figures"]["trained"]
    files = [file for file in (home / "consolidations").rglob("*") if file.is_file()]
    return {
        "at": number,
        "promoted": ended["promoted"],
        "why": ended["why"],
        "seconds": time.perf_counter() - began,
        "CPU s": time.process_time() - spent,
        "pairs": trained["pairs"],
        "training s": trained["seconds"],
        "cards learned": len(await cycle.learned()),
        "MB": sum(file.stat().st_size for file in files) / 1e6,
    }


def report(rows: Sequence[Row], journal: Journal, options: Options) -> Report:
    """Report every consolidation, and what a task pays for its cards by cadence."""
    cycles = pd.DataFrame([{"every": row["every"], **each} for row in rows for each in row["consolidations"]])
    tasks = pd.DataFrame([{"every": row["every"], **each} for row in rows for each in row["tasks"]])
    paid = tasks.groupby("every", sort=False).agg(
        retrieval_ms=("ms", "mean"),
        retrieval_ms_in_the_last_fifth=("ms", lambda ms: ms.tail(max(1, len(ms) // 5)).mean()),
        card_tokens=("tokens", "mean"),
    )
    paid["cards proven"] = [row["proven"] for row in rows]
    return Report(
        "cadence",
        f"{options.base}, {options.ollama} in Ollama",
        journal.path,
        [*rows],
        {"consolidations": cycles.to_dict("records"), "tasks": paid.reset_index().to_dict("records")},
        [
            framed("Every consolidation, by the tasks between two", cycles.drop(columns="why")),
            framed("What a task pays for its cards, on average (every 0: without consolidation)", paid),
        ],
        notes=[*dict.fromkeys(each["why"] for row in rows for each in row["consolidations"])],
    )
