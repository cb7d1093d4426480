"""§11.3 of the self-improving-memory paper: how often is a consolidation worth its cost?

The same stream of tasks passes once for each cadence: every so many tasks the real graph `consolidation`
gathers, trains, judges, deploys, replays and archives. A task draws one lesson of the worlds' own generator,
common ones oftener (Zipf's law), and proves it; a lesson that three tasks proved is a verified card. What is
measured: the seconds and bytes of every consolidation, and what a task pays for its cards, in milliseconds
of retrieval and tokens of prompt, before a tuned model serves and after.

The base is a Llama of 100,000 parameters unless another is named, and Ollama a stand-in with its protocol
whose models say what they were taught: so a consolidation is promoted unless the base forgets, and nothing
here says whether a tuned model answers well.
"""

import asyncio
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import BaseModel, Field

from mneme.core.settings import settings
from mneme.evals.learning import card_corpus
from mneme.evals.learning.tiny_llama import write_tiny_llama
from mneme.evals.measuring import in_environment, ledger_at
from mneme.evals.options import RUNS, EmbedderName, Fresh, Out, Positive
from mneme.evals.report import Journal, Progress, Report, Row, open_journal, table
from mneme.evals.stand_in import Answer, Json, Model, StandIn
from mneme.graphs.consolidation import builder
from mneme.models.embedding.embedders import Embedder, open_embedder
from mneme.models.tuning.pairs import LEARNED
from mneme.nodes.learning.consolidation.sources import in_short
from mneme.nodes.learning.consolidation.state import TuningContext
from mneme.stores.cards.card import Card, Lesson, TaskOutcome
from mneme.stores.cards.consolidation import DELTA, ConsolidationCycle, lesson_of
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.lifecycle import Approval, PromotionRubric
from mneme.stores.cards.task_log import TaskRecord
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change

TEAM, SERVED = "cadence", "tiny"
PROVEN = 3
"""Tasks that prove a lesson well enough to be trained on (§8, step 1)."""
MILD = {"epochs": 1, "rank": 2, "rate": 1e-4, "longest": 256, "batch": 8}
"""A recipe that so small a base takes without forgetting what it knew."""
LETTERS_A_TOKEN = 4
CHANGE = Change(reason="a task of the stream", actor="evaluation")
GOOD = PromotionRubric(solved=True, faster_or_novel=True, no_new_failures=True, reusable=True)


class Options(BaseModel):
    """Which cadences, over what stream."""

    every: list[Positive] = Field([40, 80, 120], min_length=1, description="Tasks between consolidations.")
    tasks: int = Field(240, ge=10, description="Tasks of the stream.")
    lessons: Positive = Field(60, description="Different lessons that the tasks can teach: the diversity.")
    recall: Positive = Field(5, description="Cards that a task is shown where no tuned model serves.")
    base: str = Field("", description="Base that is tuned: GGUF, folder, smollm2; empty: a tiny Llama.")
    embedder: EmbedderName = ""
    out: Out = RUNS
    fresh: Fresh = False


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Run the stream with every cadence, and once without; report what was measured and what follows."""
    import_module("peft")  # slow, and the first consolidation would pay for it
    embedder = await open_embedder(options.embedder or settings().embedder)
    measured = options.model_dump(mode="json", include={"tasks", "lessons", "recall", "base"})
    journal = open_journal(
        options.out, "cadence", {"embedder": embedder.name, **measured}, fresh=options.fresh
    )
    cadences = [*sorted({*options.every}), 0]
    for done, every in enumerate(cadences, start=1):
        if (case := f"every {every}" if every else "never") not in journal:
            journal.add(case, await _stream(options, every, embedder))
        progress(done, len(cadences), case)
    return report([journal[f"every {n}" if n else "never"] for n in cadences], journal, options)


async def _stream(options: Options, every: int, embedder: Embedder) -> Row:
    with TemporaryDirectory(prefix="mneme-cadence-") as place:
        home = Path(place)
        base = options.base or str(home / "base")
        if not options.base:
            await asyncio.to_thread(write_tiny_llama, home / "base")
        stream = _Stream(options, base)
        with _stood_in(home, stream.answer):
            async with ledger_at(home / "ledger", embedder) as ledger:
                return await stream.run(ledger, every, home)


@contextmanager
def _stood_in(home: Path, brain: Any) -> Iterator[StandIn]:
    """Run a stand-in for Ollama, and make it and a home of its own this process's settings."""
    with (
        StandIn(Model(name=SERVED, capabilities=("completion",)), brain=brain) as double,
        in_environment({"MNEME_OLLAMA_URL": double.url, "MNEME_HOME": str(home)}),
    ):
        yield double


class _Stream:
    """One stream of tasks, the same whatever the cadence."""

    def __init__(self, options: Options, base: str) -> None:
        self._options, self._base = options, base
        known = card_corpus.lessons(20 * options.lessons)
        dice = random.Random(0)  # noqa: S311  (a stream, no secret)
        lessons = dice.sample(known, options.lessons)
        weights = [1 / (rank + 1) for rank in range(len(lessons))]
        self._drawn = dice.choices(lessons, weights, k=options.tasks)
        self._taught: dict[str, str] = {}

    def answer(self, body: Json) -> Answer:
        """Say a task's lesson: the base its claim where cards are shown, a tuned model all of it."""
        said = str(body["messages"][-1]["content"])
        task = next((task for task in self._taught if task in said), "")
        whole = self._taught.get(task, "I do not know.")
        if str(body["model"]).startswith("mneme-"):
            return whole
        return whole.rpartition("\n")[0] or whole if LEARNED in said else "I do not know."

    async def run(self, ledger: Ledger, every: int, home: Path) -> Row:
        """Let the tasks pass, with a consolidation after each `every` of them; 0: with none."""
        cards = KnowledgeCards(ledger, TEAM)
        cycle = ConsolidationCycle(ledger, cards)
        passed: list[Row] = []
        done: list[Row] = []
        for number, lesson in enumerate(self._drawn, start=1):
            passed.append(await self._task(cards, cycle, number, lesson))
            if every and number % every == 0:
                done.append(await self._consolidated(ledger, cycle, number, home))
        verified = [card for card in await cards.records.list() if card.evidence.success_count >= PROVEN]
        return {"every": every, "tasks": passed, "consolidations": done, "verified": len(verified)}

    async def _task(
        self, cards: KnowledgeCards, cycle: ConsolidationCycle, number: int, lesson: Lesson
    ) -> Row:
        """Look up what a task would be shown; then prove its lesson."""
        task = f"Task {number:05d} of the stream: {lesson.rules[0].condition}"
        serving = bool(await cycle.serving())
        began = time.perf_counter()
        found = await cards.retrieve(task, DELTA if serving else self._options.recall)
        took = time.perf_counter() - began
        card = await self._proved(cards, number, lesson)
        await cards.tasks.add(TaskRecord(id=f"t{number}", task=task, solved=True, seconds=1, iterations=1))
        self._taught[task] = lesson_of(card)
        letters = sum(len(in_short(each.card)) for each in found)
        return {
            "serving": serving,
            "ms": 1000 * took,
            "tokens": letters / LETTERS_A_TOKEN,
        }

    async def _proved(self, cards: KnowledgeCards, number: int, lesson: Lesson) -> Card:
        """Count the task for its lesson's card; what a tuned model knows already teaches no card anew."""
        if await cards.records.exists(lesson.card_id):
            card = await cards.records.get(lesson.card_id)
            if card.status == "archived":
                return card
        outcome = TaskOutcome(task=f"t{number}", success=True, confidence=0.9)
        card = (await cards.create(lesson, outcome, change=CHANGE)).card
        if card.evidence.success_count >= PROVEN and card.status == "provisional":
            approval = Approval(by="leader", approved=True, rubric=GOOD)
            card = await cards.promote(card.id, approval, change=CHANGE)
        return card

    async def _consolidated(self, ledger: Ledger, cycle: ConsolidationCycle, number: int, home: Path) -> Row:
        graph = builder.compile(store=LedgerStore(ledger))
        facts = "" if self._options.base else str(home / "base" / "generic.yaml")
        given: Any = {"base": self._base, "served_base": SERVED, "force": True, "generic": facts}
        recipe = {} if self._options.base else MILD
        began, spent = time.perf_counter(), time.process_time()
        ended = await graph.ainvoke(given, context=TuningContext(team=TEAM, **recipe))
        trained = ended["figures"]["trained"]
        files = [file for file in (home / "consolidations").rglob("*") if file.is_file()]
        return {
            "at": number,
            "promoted": ended["promoted"],
            "why": ended["why"],
            "seconds": time.perf_counter() - began,
            "cpu_seconds": time.process_time() - spent,
            "pairs": trained["pairs"],
            "training_seconds": trained["seconds"],
            "new_cards": ended["figures"]["counts"]["cards"],
            "learned": len(await cycle.learned()),
            "bytes": sum(file.stat().st_size for file in files),
        }


def report(rows: Sequence[Row], journal: Journal, options: Options) -> Report:
    """Report the streams as they were measured."""
    base = options.base or "a Llama of 100,000 parameters"
    cycles = [each for row in rows for each in row["consolidations"]]
    refused = [each["why"] for each in cycles if not each["promoted"]]
    notes = [
        f"Tuned was {base}; Ollama was a stand-in that says what it was taught, so promotions prove nothing.",
        " ".join([f"{len(refused)} of {len(cycles)} consolidations were not promoted.", *refused[:1]]),
        "Every consolidation trains the same base anew, on the cards of earlier ones as well.",
        "A task is shown a fixed number of cards, so its prompt shrinks once, when the first tuned model "
        "serves, and grows with no number of cards: later consolidations save only retrieval time.",
    ]
    streams = [_summed(row) for row in rows]
    cells = [[each["every"] or "never", *list(each.values())[1:]] for each in streams]
    tables = [table("One stream of tasks, by cadence", ["every", *list(streams[0])[1:]], cells)]
    made: Row = {"streams": streams}
    return Report("cadence", f"{base}, scripted answers", journal.path, [*rows], made, tables, [], notes)


def _summed(row: Row) -> Row:
    """Return what a stream took, by the table's columns; MB are those that are kept."""
    done, tasks = row["consolidations"], row["tasks"]
    last = tasks[-max(1, len(tasks) // 5) :]
    sums = {"pairs": "pairs", "seconds": "seconds", "CPU s": "cpu_seconds", "training s": "training_seconds"}
    return {
        "every": row["every"],
        "times": len(done),
        **{name: sum(each[field] for each in done) for name, field in sums.items()},
        "MB": max((each["bytes"] for each in done), default=0) / 1e6,
        "retrieval ms a task": fmean(each["ms"] for each in tasks),
        "in the last fifth": fmean(each["ms"] for each in last),
        "card tokens a task": fmean(each["tokens"] for each in tasks),
        "cards proven": row["verified"],
    }
