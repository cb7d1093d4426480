"""§11.2 of the self-improving-memory paper: do the cards of one family of tasks help in another?

A team learns from tasks of one family of query tuning. Copies of it, one for each tried task, so that nothing
is learned on the way, then solve tasks of every family; the same tasks are solved without any card. The gain
is the drafts that the cards save. It is compared with how similar the cards are, in the embedder's space, to
what the tasks are searched by: Spearman's correlation over the ordered pairs of different families. A pair
shares its families with others, so beside the usual permutation test stands one that renames the families as
wholes (QAP, the quadratic assignment procedure), which is the one to believe.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import permutations
from statistics import fmean
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray
from pydantic import BaseModel, Field
from scipy.stats import permutation_test, rankdata

from mneme.cli.tables import Table
from mneme.core.errors import BadInput
from mneme.core.settings import settings
from mneme.environments.sql_tuning import TuningTask, tasks
from mneme.environments.sql_tuning.conditions import features_of, general
from mneme.environments.sql_tuning.tasks import FAMILIES, Family
from mneme.evals.answering import Identity, identify
from mneme.evals.learning.arms import Team, make_databases
from mneme.evals.measuring import home_beside, ledger_at, p_cell, wilcoxon_p
from mneme.evals.options import RUNS, Agents, EmbedderName, Fresh, Out, Positive
from mneme.evals.report import Journal, Progress, Report, Row, draw, open_journal, table
from mneme.models.embedding.embedders import Embedder, open_embedder
from mneme.prompts.learning.trials import about
from mneme.stores.cards.card import Card
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change

LEARNED_FROM, TRIED_ON = 11, 12
"""Seeds of the tasks that are learned from, and of those that are tried: none is in both."""
NOTHING = "no cards"
SHOWN = 5
COPIED = Change(reason="copied", actor="evaluation")
SHUFFLES = 9_999
GAINS = {"drafts saved": ("iterations", 1), "solved by the first draft": ("first_attempt", -1)}
"""What is gained: of which figure a task has less (1) or more (-1)."""
SURE = 0.05
"""The level of a test; two gains are tested, so each at half of it."""
KEPT = ("iterations", "solved", "first_attempt", "seconds", "calls", "retrieved", "used")
Matrix = NDArray[np.float64]


class Options(BaseModel):
    """Which families, how many tasks of each, and who answers."""

    families: list[Family] = Field(list(FAMILIES), min_length=3, description="Families of tasks.")
    learned: Positive = Field(8, description="Tasks of a family that its cards are learned from.")
    tried: Positive = Field(6, description="Tasks of each family that are tried with each family's cards.")
    rows: int = Field(8_000, ge=100, description="Rows of each database's table of facts.")
    agents: Agents = "auto"
    embedder: EmbedderName = ""
    out: Out = RUNS
    fresh: Fresh = False


class Tried(NamedTuple):
    """A tried task: of which family, and its number there."""

    family: Family
    number: int
    task: TuningTask


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Learn in every family, try every pair, going on where a run stopped, and compare with similarity."""
    options.families = list(dict.fromkeys(options.families))
    if len(options.families) < 3:
        raise BadInput("Two families make no correlation.", "Give three at the least, or none for all.")
    embedder = await open_embedder(options.embedder or settings().embedder)
    who = await identify(options.agents)
    configuration: Row = {"agents": who.model_dump(), "embedder": embedder.name}
    configuration |= options.model_dump(mode="json", include={"families", "learned", "tried", "rows"})
    journal = open_journal(options.out, "transfer", configuration, fresh=options.fresh)
    async with ledger_at(home_beside(journal), embedder) as ledger:
        await asyncio.to_thread(make_databases, options.rows)
        cards = await _learned(options, ledger, who.responder, journal, progress)
        await _tried(options, ledger, who.responder, cards, journal, progress)
        similar = await similarity(cards, _tasks(options), embedder)
    return report(options, journal, who, cards, similar)


def _tasks(options: Options) -> list[Tried]:
    return [
        Tried(family, number, task)
        for family in options.families
        for number, task in enumerate(tasks(TRIED_ON, options.tried, [family]))
    ]


async def _learned(
    options: Options, ledger: Ledger, who: str, journal: Journal, progress: Progress
) -> dict[str, list[Card]]:
    """Let a team of each family learn, and return what it knows then."""
    known: dict[str, list[Card]] = {}
    for done, family in enumerate(options.families, start=1):
        team = Team(f"of {family}", ledger, who, options.rows, SHOWN)
        for number, task in enumerate(tasks(LEARNED_FROM, options.learned, [family])):
            if (case := f"learn/{family}/{number}") not in journal:
                solved = await team.solve(task)
                journal.add(case, {"learned": family} | {name: solved[name] for name in KEPT})
        known[family] = [*await team.cards.records.list()]
        progress(done, len(options.families), f"learned from {family}")
    return known


async def _tried(  # noqa: PLR0913, PLR0917  (what a run goes by)
    options: Options,
    ledger: Ledger,
    who: str,
    cards: Mapping[str, Sequence[Card]],
    journal: Journal,
    progress: Progress,
) -> None:
    plan = [(source, each) for each in _tasks(options) for source in (NOTHING, *options.families)]
    for done, (source, each) in enumerate(plan, start=1):
        case = f"{source}/{each.family}/{each.number}"
        if case not in journal:
            name = f"{source} in {each.family} {each.number}"
            team = Team(name, ledger, who, options.rows, 0 if source == NOTHING else SHOWN)
            await _copied(ledger, cards.get(source, ()), team.cards)
            solved = await team.solve(each.task)
            about_it = {"source": source, "target": each.family, "number": each.number}
            journal.add(case, about_it | {name: solved[name] for name in KEPT})
        progress(done, len(plan), f"{source} in {each.family}")


async def _copied(ledger: Ledger, cards: Sequence[Card], ours: KnowledgeCards) -> None:
    """Give a team cards of another, just as they stand there."""
    if cards and not await ours.records.count():  # a run that was killed may have copied them
        await ledger.write([ours.records.write_of(card, COPIED, 0) for card in cards])


async def similarity(
    cards: dict[str, list[Card]], tried: Sequence[Tried], embedder: Embedder
) -> dict[str, Matrix]:
    """Return how similar each family's cards are to each family's tasks, a row for each source of cards.

    `nearest` is the mean over the tasks of the cosine with the most similar card, `average` with all of them.
    A family that has no card in use is similar to nothing: not a number.
    """
    families = list(cards)
    nearest, average = np.full((2, len(families), len(families)), np.nan)
    asked = {
        family: np.array(
            [
                await embedder.embed_query(about("; ".join(general(features_of(each.task))), "queries"))
                for each in tried
                if each.family == family
            ]
        )
        for family in families
    }
    for row, source in enumerate(families):
        texts = [card.text for card in cards[source] if card.shelf == "active"]
        if not texts:
            continue
        vectors = np.array(await embedder.embed_documents(texts))
        for column, target in enumerate(families):
            cosines = asked[target] @ vectors.T
            nearest[row, column], average[row, column] = cosines.max(axis=1).mean(), cosines.mean()
    return {"nearest card": nearest, "average of all cards": average}


def report(
    options: Options,
    journal: Journal,
    who: Identity,
    cards: dict[str, list[Card]],
    similar: dict[str, Matrix],
) -> Report:
    """Report gains by pair, within and across families, and whether similarity foretells them."""
    rows = [row for row in journal.rows if "source" in row]
    gains = {name: sign * _gains(rows, options.families, of) for name, (of, sign) in GAINS.items()}
    saved = gains["drafts saved"]
    foretold = [
        {"similarity": said, "gain": name, **correlation(matrix, gain)}
        for name, gain in gains.items()
        for said, matrix in similar.items()
    ]
    compared = [_compared(rows, within) for within in (True, False)]
    matrices = {name: _plain(each) for name, each in {**gains, **similar}.items()}
    summary: Row = {"families": options.families, "pairs": compared, "foretold": foretold, **matrices}
    names = options.families
    tables = [
        _matrix("Drafts saved by a task: cards of the row, tasks of the column", saved, names, cards),
        _matrix("Cosine of a task with the nearest card", similar["nearest card"], names, cards),
        _within_table(compared),
        _foretold_table(foretold),
    ]
    plot = draw(
        journal.path.with_suffix(".png"),
        "Transfer between families of query tuning",
        str(who),
        _plot(similar["nearest card"], saved),
    )
    return Report("transfer", str(who), journal.path, rows, summary, tables, [plot], _notes(foretold, who))


def _gains(rows: Sequence[Row], families: Sequence[str], name: str) -> Matrix:
    """Return what the column's tasks have less of with the row's cards than with none, on average."""
    alone = {(row["target"], row["number"]): row[name] for row in rows if row["source"] == NOTHING}
    less: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        gain = float(alone[row["target"], row["number"]]) - float(row[name])
        less.setdefault((row["source"], row["target"]), []).append(gain)
    return np.array([[fmean(less[source, target]) for target in families] for source in families])


def correlation(similar: Matrix, gain: Matrix) -> Row:
    """Return Spearman's rho over the pairs off the diagonal, with p by permuting pairs and by renaming.

    Families without a card in use are left out. None where either does not vary, so that there is no
    correlation to speak of.
    """
    has = ~np.isnan(similar).any(axis=1)
    similar, gain = similar[np.ix_(has, has)], gain[np.ix_(has, has)]
    others = ~np.eye(len(gain), dtype=bool)
    x, y = rankdata(similar[others]), rankdata(gain[others])
    if not (np.ptp(x) and np.ptp(y)):
        return {"pairs": len(x), "rho": None, "p_pairs": None, "p_families": None}
    ranks = np.zeros_like(similar)
    ranks[others] = x

    def rho(first: Matrix) -> float:
        return float(np.corrcoef(first, y)[0, 1])

    dice = np.random.default_rng(0)
    loose = permutation_test((x,), rho, permutation_type="pairings", n_resamples=SHUFFLES, rng=dice)
    found = rho(x)
    renamed = [abs(rho(ranks[np.ix_(order, order)][others])) for order in _orders(len(gain), dice)]
    beaten = sum(each >= abs(found) - 1e-12 for each in renamed)
    strict = (beaten + 1) / (len(renamed) + 1)
    return {"pairs": len(x), "rho": found, "p_pairs": float(loose.pvalue), "p_families": strict}


def _orders(count: int, dice: np.random.Generator) -> list[tuple[int, ...]]:
    """Return ways of renaming: all but the present one where they are few, else as many as are tried."""
    if np.prod(np.arange(1, count + 1), dtype=float) <= SHUFFLES:
        return list(permutations(range(count)))[1:]
    return [tuple(dice.permutation(count)) for _ in range(SHUFFLES)]


def _compared(rows: Sequence[Row], within: bool) -> Row:
    """Return what cards are worth within their family, or across families."""
    alone = {(row["target"], row["number"]): row for row in rows if row["source"] == NOTHING}
    mine = [row for row in rows if row["source"] != NOTHING and (row["source"] == row["target"]) is within]
    pairs = [(alone[row["target"], row["number"]], row) for row in mine]
    retrieved = sum(len(row["retrieved"]) for row in mine)
    saved = [before["iterations"] - after["iterations"] for before, after in pairs]
    by_task: dict[tuple[str, int], list[float]] = {}
    for row, each in zip(mine, saved, strict=True):
        by_task.setdefault((row["target"], row["number"]), []).append(each)
    return {
        "within": within,
        "tasks": len(mine),
        "drafts_without": fmean(before["iterations"] for before, _ in pairs),
        "drafts_with": fmean(after["iterations"] for _, after in pairs),
        "worse": sum(each < 0 for each in saved),
        "p": wilcoxon_p([fmean(each) for each in by_task.values()]),
        "shown": sum(bool(row["retrieved"]) for row in mine) / len(mine),
        "precision": sum(len(row["used"]) for row in mine) / retrieved if retrieved else None,
    }


def _matrix(title: str, values: Matrix, names: Sequence[str], cards: dict[str, list[Card]]) -> Table:
    rows = [
        [f"{name} ({len(cards[name])} cards)", *(None if value is None else f"{value:.2f}" for value in row)]
        for name, row in zip(names, _plain(values), strict=True)
    ]
    return table(title, ("cards of", *names), rows)


def _plain(values: Matrix) -> list[list[float | None]]:
    """Return the figures as JSON has them: what is not a number is null."""
    return [[None if np.isnan(value) else float(value) for value in row] for row in values]


def _within_table(compared: Sequence[Row]) -> Table:
    columns = (
        *("cards", "tasks", "drafts without", "with", "p (by task)", "worse with cards"),
        *("tasks shown any card", "of the cards used"),
    )
    cells = [
        [
            "of the task's own family" if each["within"] else "of another family",
            *(each["tasks"], each["drafts_without"], each["drafts_with"], p_cell(each["p"])),
            *(each["worse"], f"{each['shown']:.0%}", each["precision"]),
        ]
        for each in compared
    ]
    return table("Within a family and across", columns, cells)


def _foretold_table(foretold: Sequence[Row]) -> Table:
    columns = ("similarity", "gain", "pairs", "Spearman's rho", "p, pairs shuffled", "p, families renamed")
    cells = [
        [
            *(each["similarity"], each["gain"], each["pairs"], each["rho"]),
            *(p_cell(each["p_pairs"]), p_cell(each["p_families"])),
        ]
        for each in foretold
    ]
    return table("Does similarity of embeddings foretell the gain in another family?", columns, cells)


def _notes(foretold: Sequence[Row], who: Identity) -> list[str]:
    notes = [
        *map(_verdict, foretold),
        "Where no card is shown, what differs is the noise of two measurements of the same query.",
        "Cards of another world are not retrieved at all (their scope differs), so none can transfer there.",
    ]
    if not who.is_model:
        notes.append(
            "Answered by rules: a card is used where its condition names what the query has, whatever its "
            "words; a language model reads more into a card than that."
        )
    return notes


def _verdict(each: Row) -> str:
    strict = each["p_families"]
    shown = strict is not None and strict < SURE / len(GAINS) and each["rho"] > 0
    said = "foretells" if shown else "is not shown to foretell"
    return f"Similarity ({each['similarity']}) {said} the gain in another family: {each['gain']}."


def _plot(similar: Matrix, saved: Matrix) -> Callable[[Axes], None]:
    def plot(axes: Axes) -> None:
        same = np.eye(len(saved), dtype=bool)
        axes.scatter(similar[~same], saved[~same], color="tab:blue", label="another family")
        axes.scatter(similar[same], saved[same], color="tab:orange", label="the same family")
        axes.axhline(0, color="tab:gray", linewidth=0.8)
        axes.set_xlabel("mean cosine of a task with the nearest card")
        axes.set_ylabel("drafts saved by a task")
        axes.legend()

    return plot
