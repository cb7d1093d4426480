"""§11.3 of the self-improving-memory paper: how often is a consolidation worth its cost?

The same stream of tasks passes once for each cadence: every so many tasks the real graph `consolidation`
gathers, trains, judges, deploys, replays and archives. A task draws one lesson of the worlds' own generator,
common ones oftener (Zipf's law), and proves it; a lesson that three tasks proved is a verified card. What is
measured: the seconds and bytes of every consolidation, and what a task pays for its cards, in milliseconds
of retrieval and tokens of prompt, before a tuned model serves and after.

The base is a Llama of 100,000 parameters unless another is named, and Ollama a stand-in with its protocol
whose models say what they were taught: so a consolidation is promoted unless the base forgets, and nothing
here says whether a tuned model answers well. A second table carries the figures on to a quarter of a
team: it is arithmetic.
"""

import asyncio
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import islice
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
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
from mneme.stores.cards.consolidation import DELTA, ConsolidationCycle
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.lifecycle import Approval, PromotionRubric
from mneme.stores.cards.task_log import TaskRecord
from mneme.stores.cards.training_data import lesson_of
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
MONTHS = 3
SHARES = (1 / 64, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
"""Cadences of the second table, as shares of a quarter's tasks."""
SECONDS_AN_HOUR, MILLION = 3600, 1e6


class Options(BaseModel):
    """Which cadences, over what stream; and the prices of the second table."""

    every: list[Positive] = Field([40, 80, 120], min_length=1, description="Tasks between consolidations.")
    tasks: int = Field(240, ge=10, description="Tasks of the stream.")
    lessons: Positive = Field(60, description="Different lessons that the tasks can teach: the diversity.")
    recall: Positive = Field(5, description="Cards that a task is shown where no tuned model serves.")
    base: str = Field("", description="Base that is tuned: GGUF, folder, smollm2; empty: a tiny Llama.")
    monthly: Positive = Field(5_000, description="Computed: tasks a month.")
    pair_seconds: float = Field(0.0, ge=0, description="Computed: training of a pair; 0: as measured.")
    hourly: float = Field(1.0, ge=0, description="Computed: what an hour of the machine costs, in dollars.")
    million: float = Field(3.0, ge=0, description="Computed: what a million prompt tokens cost, in dollars.")
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
        known = [*islice(card_corpus.lessons(20 * options.lessons), 20 * options.lessons)]
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
        count = sum(each.evidence.success_count >= PROVEN for each in await cards.records.list())
        return {
            "serving": serving,
            "ms": 1000 * took,
            "tokens": letters / LETTERS_A_TOKEN,
            "proven": count,
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
    """Report the streams as they were measured, and what they come to in a quarter."""
    model = _model(rows, options)
    computed = [_quarter(model, options, share) for share in SHARES] if model else []
    tables = [_measured_table(rows)]
    if model:
        tables += [_model_table(model), _quarter_table(computed)]
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
    if computed:
        best = min(computed, key=lambda each: each["total"])
        notes.append(
            f"Computed, least of these cadences: every {best['every']:,} tasks, {best['total']:.2f} $."
        )
    summary: Row = {"streams": [_summed(row) for row in rows], "model": model, "computed": computed}
    return Report("cadence", f"{base}, scripted answers", journal.path, [*rows], summary, tables, [], notes)


def _summed(row: Row) -> Row:
    done, tasks = row["consolidations"], row["tasks"]
    return {
        "every": row["every"],
        "consolidations": len(done),
        "pairs": sum(each["pairs"] for each in done),
        "seconds": sum(each["seconds"] for each in done),
        "cpu_seconds": sum(each["cpu_seconds"] for each in done),
        "training_seconds": sum(each["training_seconds"] for each in done),
        "bytes": max((each["bytes"] for each in done), default=0),
        "ms": fmean(each["ms"] for each in tasks),
        "tokens": fmean(each["tokens"] for each in tasks),
        "last_ms": fmean(each["ms"] for each in tasks[-max(1, len(tasks) // 5) :]),
        "verified": row["verified"],
    }


def _measured_table(rows: Sequence[Row]) -> Any:
    columns = (
        *("consolidated", "times", "pairs trained", "seconds", "CPU s", "of them training", "MB kept"),
        *("retrieval ms a task", "in the last fifth", "card tokens a task", "cards proven"),
    )
    cells = [
        [
            f"every {each['every']} tasks" if each["every"] else "never",
            *(each["consolidations"], each["pairs"], f"{each['seconds']:.1f}", f"{each['cpu_seconds']:.1f}"),
            *(f"{each['training_seconds']:.1f}", f"{each['bytes'] / MILLION:.2f}", each["ms"]),
            *(each["last_ms"], f"{each['tokens']:.0f}", each["verified"]),
        ]
        for each in map(_summed, rows)
    ]
    return table("Measured: one stream of tasks, by cadence", columns, cells)


def _model(rows: Sequence[Row], options: Options) -> Row | None:
    """Fit what a quarter is computed from.

    None where there were fewer than two sizes of consolidation, or no task after a promotion.
    """
    done = [each for row in rows for each in row["consolidations"]]
    tasks = [each for row in rows for each in row["tasks"]]
    served = [each["tokens"] for each in tasks if each["serving"]]
    if len({each["pairs"] for each in done}) < 2 or not served:
        return None
    seconds = [each["cpu_seconds"] for each in done]  # the machine is shared, the processor's time is not
    per_pair, fixed = np.polyfit([each["pairs"] for each in done], seconds, 1)
    quiet = next(row for row in rows if not row["every"])["tasks"]
    grown = [(n, each["proven"]) for n, each in enumerate(quiet, start=1) if each["proven"]]
    slope, level = np.polyfit(np.log([n for n, _ in grown]), np.log([count for _, count in grown]), 1)
    return {
        "fixed_s": max(float(fixed), 0.0),
        "pair_s": options.pair_seconds or max(float(per_pair), 0.0),
        "pair_s_given": bool(options.pair_seconds),
        "pairs_a_card": fmean(each["pairs"] / each["learned"] for each in done if each["learned"]),
        "growth": float(slope),
        "first": float(np.exp(level)),
        "tokens_before": fmean(each["tokens"] for each in quiet),
        "tokens_after": fmean(served),
    }


def _model_table(model: Row) -> Any:
    source = "given" if model["pair_s_given"] else "fitted to all consolidations"
    cells = [
        [
            "seconds of a consolidation without pairs",
            f"{model['fixed_s']:.2f}",
            "fitted to all consolidations",
        ],
        ["processor seconds for each training pair", f"{model['pair_s']:.3f}", source],
        ["pairs for each card that was learned", f"{model['pairs_a_card']:.2f}", "mean"],
        [
            "proven cards after n tasks",
            f"{model['first']:.2f} · n^{model['growth']:.2f}",
            "fitted (Heaps' law)",
        ],
        ["card tokens of a task before a model serves", f"{model['tokens_before']:.0f}", "mean"],
        ["card tokens of a task after", f"{model['tokens_after']:.0f}", "mean"],
    ]
    return table("What the second table is computed from", ("figure", "value", "from"), cells, figures=False)


def _quarter(model: Row, options: Options, share: float) -> Row:
    """Compute a quarter with one cadence: hours of tuning, tokens of cards, dollars of both."""
    tasks = MONTHS * options.monthly
    every = max(1, round(tasks * share))
    times = tasks // every
    sizes = [
        model["pairs_a_card"] * model["first"] * (n * every) ** model["growth"] for n in range(1, times + 1)
    ]
    hours = sum(model["fixed_s"] + model["pair_s"] * size for size in sizes) / SECONDS_AN_HOUR
    tokens = every * model["tokens_before"] + (tasks - every) * model["tokens_after"]
    tuning, reading = hours * options.hourly, tokens / MILLION * options.million
    return {
        "every": every,
        "times": times,
        "pairs": sum(sizes),
        "hours": hours,
        "tokens": tokens,
        "tuning": tuning,
        "reading": reading,
        "total": tuning + reading,
    }


def _quarter_table(computed: Sequence[Row]) -> Any:
    columns = (
        *("consolidated every", "times", "pairs", "hours of tuning", "card tokens, millions"),
        *("tuning $", "tokens $", "together $"),
    )
    cells = [
        [
            *(f"{each['every']:,} tasks", each["times"], f"{each['pairs']:,.0f}", f"{each['hours']:.3f}"),
            *(f"{each['tokens'] / MILLION:.2f}", f"{each['tuning']:.3f}", f"{each['reading']:.2f}"),
            f"{each['total']:.2f}",
        ]
        for each in computed
    ]
    return table("Computed, not measured: a quarter of a team", columns, cells)
