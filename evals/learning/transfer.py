"""§11.2 of the self-improving-memory paper: do the cards of one family of tasks help in another?

A team learns from tasks of one family of query tuning. Copies of it, one for each tried task, so that nothing
is learned on the way, then solve tasks of every family; the same tasks are solved without any card. The gain
is the drafts that the cards save. It is compared with how similar the cards are, in the embedder's space, to
what the tasks are searched by: Spearman's correlation over the ordered pairs of different families. A pair
shares its families with others, so the permutation test renames the families as wholes (QAP, the quadratic
assignment procedure).
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import permutations
from math import factorial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray
from pydantic import Field
from scipy.stats import rankdata

from mneme.core.errors import BadInput
from mneme.environments.sql_tuning.analysis import general
from mneme.environments.sql_tuning.tasks import FAMILIES, Family, TuningTask, tasks
from mneme.evals.learning.studies import RECALL, Played, Study, StudyOptions, study, with_gains
from mneme.evals.measuring import wilcoxon_p
from mneme.evals.options import Positive
from mneme.evals.report import Progress, Report, Row, framed
from mneme.models.embedding.embedders import Embedder
from mneme.prompts.learning.compound_learning.task import about
from mneme.stores.cards.card import Card
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.ledger.records import Change

LEARNED_FROM, TRIED_ON = 11, 12
"""Seeds of the tasks that are learned from, and of those that are tried: none is in both."""
NOTHING, LEARNING, TRIED = "no cards", "learn", "tried"
COPIED = Change(reason="copied", actor="evaluation")
SHUFFLES = 9_999
GAINS = {"drafts saved": "saved", "solved by the first draft": "gained"}
SIGNIFICANCE_LEVEL = 0.05
"""The level of a test; two gains are tested, so each at half of it."""
Matrix = NDArray[np.float64]


class Options(StudyOptions):
    """Which families, how many tasks of each, and who answers."""

    families: list[Family] = Field(list(FAMILIES), min_length=3, description="Families of tasks.")
    learned: Positive = Field(8, description="Tasks of a family that its cards are learned from.")
    tried: Positive = Field(6, description="Tasks of each family that are tried with each family's cards.")


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Learn in every family, try every pair, going on where a run stopped, and compare with similarity."""
    families = options.families = list(dict.fromkeys(options.families))
    if len(families) < 3:
        raise BadInput("Two families make no correlation.", "Give three at the least, or none for all.")
    async with study("transfer", options, ("families", "learned", "tried"), progress) as now:
        await now.play(
            [
                Played(LEARNING, f"of {family}", task, {"source": family, "number": number})
                for family in families
                for number, task in enumerate(tasks(LEARNED_FROM, options.learned, [family]))
            ]
        )
        cards = {family: await now.cards(f"of {family}").records.list() for family in families}
        tried = {family: list(tasks(TRIED_ON, options.tried, [family])) for family in families}
        await now.play([*_plan(tried, cards)])
        similar = await similarity(cards, tried, now.embedder)
        return report(now, families, similar, {name: len(each) for name, each in cards.items()})


def _plan(
    tried: Mapping[Family, Sequence[TuningTask]], cards: Mapping[Family, Sequence[Card]]
) -> Iterator[Played]:
    """Yield every task with copies of every family's cards, and with none."""
    for family, mine in tried.items():
        for number, task in enumerate(mine):
            noted: Row = {"target": family, "number": number}
            name = f"in {family} {number}"
            yield Played(TRIED, f"{NOTHING} {name}", task, {"source": NOTHING} | noted, 0)
            for source, known in cards.items():
                given = partial(_copied, known)
                yield Played(TRIED, f"{source} {name}", task, {"source": source} | noted, RECALL, given)


async def _copied(cards: Sequence[Card], to: KnowledgeCards) -> None:
    """Give a team cards of another, just as they stand there."""
    await to.records.ledger.write([to.records.write(card.id, card, COPIED) for card in cards])


async def similarity(
    cards: Mapping[Family, Sequence[Card]], tried: Mapping[Family, Sequence[TuningTask]], embedder: Embedder
) -> Matrix:
    """Return how similar each family's cards are to each family's tasks, a row for each source of cards.

    It is the mean over the tasks of the cosine with the most similar card. A family that has no card in use
    is similar to nothing: not a number.
    """
    similar = np.full((len(cards), len(cards)), np.nan)
    asked = [[about("; ".join(general(task.features)), "queries") for task in own] for own in tried.values()]
    searched = [np.array([await embedder.embed_query(text) for text in own]) for own in asked]
    for row, source in enumerate(cards.values()):
        if texts := [card.text for card in source if card.shelf == "active"]:
            vectors = np.array(await embedder.embed_documents(texts))
            similar[row] = [(own @ vectors.T).max(axis=1).mean() for own in searched]
    return similar


def report(now: Study, families: Sequence[Family], similar: Matrix, counts: Mapping[Family, int]) -> Report:
    """Report gains by pair, within and across families, and whether similarity predicts them."""
    played = [row for row in now.journal.rows if row["arm"] == TRIED]
    alone = [row for row in played if row["source"] == NOTHING]
    rows = with_gains([row for row in played if row["source"] != NOTHING], alone, "target", "number")
    pairs = rows.pivot_table(index="source", columns="target", values=[*GAINS.values()], aggfunc="mean")
    gains = {said: pairs[name].loc[[*families], [*families]] for said, name in GAINS.items()}
    predicted = pd.DataFrame(
        {"gain": name, **correlation(similar, gain.to_numpy())} for name, gain in gains.items()
    )
    own = rows["source"] == rows["target"]
    within = {"of the task's own family": rows[own], "of another family": rows[~own]}
    compared = pd.DataFrame([{"cards": name, **_compared(part)} for name, part in within.items()])
    nearest = pd.DataFrame(similar, [*families], [*families])
    summary: Row = {
        "families": [*families],
        "pairs": compared.to_dict("records"),
        "predicted": predicted.to_dict("records"),
        **{name: gain.to_numpy().tolist() for name, gain in gains.items()},
    }
    plot = partial(_plot, nearest.to_numpy(), gains["drafts saved"].to_numpy())
    made = now.report(played, summary, plot, title="Transfer between families of query tuning")
    names = {family: f"{family} ({counts[family]} cards)" for family in families}
    for title, matrix in (
        ("Drafts saved by a task: cards of the row, tasks of the column", gains["drafts saved"]),
        ("Cosine of a task with the nearest card", nearest),
    ):
        made.tables.append(framed(title, matrix.rename(index=names).rename_axis("cards of")))
    made.tables.append(framed("Within a family and across", compared))
    title = "Does embedding similarity predict the gain in another family? (Spearman)"
    made.tables.append(framed(title, predicted))
    made.notes += [
        *map(_verdict, predicted.to_dict("records")),
        "p_families: families renamed as wholes, since pairs share families.",
        "Where no card is shown, what differs is the noise of two measurements of the same query.",
        "Cards of another world are not retrieved at all (their scope differs), so none can transfer there.",
    ]
    return made


def _compared(rows: pd.DataFrame) -> Row:
    """Return what cards are worth: drafts saved, with p by the task, since a task meets many sources."""
    retrieved, used = (rows[name].map(len) for name in ("retrieved", "used"))
    drafts = float(rows["iterations"].mean())
    return {
        "tasks": len(rows),
        "drafts without": drafts + float(rows["saved"].mean()),
        "drafts with": drafts,
        "p by task": wilcoxon_p(rows.groupby(["target", "number"])["saved"].mean()),
        "worse with cards": int((rows["saved"] < 0).sum()),
        "shown any card": float((retrieved > 0).mean()),
        "of the cards used": float(used.sum() / retrieved.sum()) if retrieved.sum() else None,
    }


def correlation(similar: Matrix, gain: Matrix) -> Row:
    """Return Spearman's rho over the pairs off the diagonal, with p by renaming families as wholes.

    Families without a card in use are left out. None where either does not vary, so that there is no
    correlation to speak of.
    """
    has = ~np.isnan(similar).any(axis=1)
    similar, gain = similar[np.ix_(has, has)], gain[np.ix_(has, has)]
    others = ~np.eye(len(gain), dtype=bool)
    x, y = rankdata(similar[others]), rankdata(gain[others])
    if len(x) < 2 or not (np.ptp(x) and np.ptp(y)):
        return {"pairs": len(x), "rho": None, "p_families": None}
    ranks = np.zeros_like(similar)
    ranks[others] = x

    def rho(first: Matrix) -> float:
        return float(np.corrcoef(first, y)[0, 1])

    dice, found = np.random.default_rng(0), rho(x)
    orders: Iterable[Any] = (dice.permutation(len(gain)) for _ in range(SHUFFLES))
    if factorial(len(gain)) <= SHUFFLES:  # all ways of renaming but the present one
        orders = [*permutations(range(len(gain)))][1:]
    renamed = [abs(rho(ranks[np.ix_(order, order)][others])) for order in orders]
    beaten = sum(each >= abs(found) - 1e-12 for each in renamed)
    strict = (beaten + 1) / (len(renamed) + 1)
    return {"pairs": len(x), "rho": found, "p_families": strict}


def _verdict(each: Mapping[Hashable, Any]) -> str:
    strict = each["p_families"]
    shown = strict is not None and strict < SIGNIFICANCE_LEVEL / len(GAINS) and each["rho"] > 0
    said = "predicts" if shown else "is not shown to predict"
    return f"The cosine with the nearest card {said} the gain in another family: {each['gain']}."


def _plot(similar: Matrix, saved: Matrix, axes: Axes) -> None:
    same = np.eye(len(saved), dtype=bool)
    axes.scatter(similar[~same], saved[~same], label="another family")
    axes.scatter(similar[same], saved[same], label="the same family")
    axes.set(xlabel="mean cosine of a task with the nearest card", ylabel="drafts saved by a task")
    axes.legend()
