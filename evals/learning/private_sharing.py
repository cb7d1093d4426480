"""§11.4 of the self-improving-memory paper: what is sharing worth, and what does privacy cost?

Two organisations tune queries on databases of their own, with three families of tasks in common and two of
their own each. When one has learned, it exports its cards: as they are, abstract and without counts, and
abstract with counts under differential privacy, each ε several times, since the noise is drawn anew. A team
of the other organisation that knows nothing yet imports one file, and solves its tasks with it, learning on
the way; the gain is the drafts that it needs less than without any import. An import takes no successes on
trust: cards are provisional, and what ε changes is which of them have a confidence of half at the least, and
so are shown to agents at all. The noise comes from the system, not from a seed.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from pydantic import Field

from mneme.environments.sql_tuning.generating import SCHEMAS
from mneme.environments.sql_tuning.tasks import Family, tasks
from mneme.environments.worlds import find_world
from mneme.evals.learning.studies import Played, Study, StudyOptions, study
from mneme.evals.measuring import wilcoxon_p
from mneme.evals.options import Positive
from mneme.evals.report import Progress, Report, Row, framed
from mneme.nodes.learning.worlds import abstraction_of
from mneme.stores.cards.card_files import load
from mneme.stores.cards.check import texts
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.sharing import FIGURE_PIECE, PLACEHOLDER, WORDS, leaks
from mneme.stores.ledger.records import Change

LEARNED_FROM, TRIED_ON = 21, 22
"""Seeds of the tasks that are learned from, and of those that are solved with what was imported."""
LEARNING, NOTHING, AS_IT_IS, ABSTRACT = "learn", "nothing", "as it is", "abstract, no counts"
IMPORTED = Change(reason="shared by another organisation", actor="evaluation")
UNLIMITED = 1e9
"""The exports are repeated to see how the noise varies; a team that means it has a budget."""
COMMON: tuple[Family, ...] = ("join", "top_k", "high_cardinality")


class Organisation(NamedTuple):
    """One organisation: the families of its tasks, and the schemas of its databases."""

    name: str
    families: tuple[Family, ...]
    schemas: tuple[str, ...]


NAMES = tuple(SCHEMAS)
FIRST = Organisation("first", (*COMMON, "time_range", "multi_filter"), NAMES[: len(NAMES) // 2])
SECOND = Organisation("second", (*COMMON, "sargability", "correlated"), NAMES[len(NAMES) // 2 :])


class Options(StudyOptions):
    """How much is learned and tried, with how much privacy, and who answers."""

    learned: Positive = Field(40, description="Tasks that an organisation learns from before it shares.")
    tried: Positive = Field(15, description="Tasks that the other solves with what it imported.")
    epsilons: list[float] = Field([0.1, 0.3, 1.0, 3.0, 10.0], min_length=1, description="ε of an export.")
    repeats: Positive = Field(3, description="Exports with each ε: the noise is drawn anew.")


class Arm(NamedTuple):
    """What is imported: by what name, with which ε, and which repetition it is."""

    name: str
    epsilon: float | None = None
    repeat: int = 0


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Let both organisations learn, share and solve, going on where a run stopped."""
    noised = [
        Arm(f"ε = {epsilon:g}", epsilon, repeat)
        for epsilon in sorted(options.epsilons)
        for repeat in range(options.repeats)
    ]
    arms = [Arm(NOTHING), Arm(AS_IT_IS), Arm(ABSTRACT), *noised]
    async with study("private_sharing", options, ("learned", "tried"), progress) as now:
        for giver, taker in ((FIRST, SECOND), (SECOND, FIRST)):
            learned = tasks(LEARNED_FROM, options.learned, giver.families, schemas=giver.schemas)
            await now.play(
                [
                    Played(LEARNING, giver.name, task, {"giver": giver.name, "number": number})
                    for number, task in enumerate(learned)
                ]
            )
            tried = list(tasks(TRIED_ON, options.tried, taker.families, schemas=taker.schemas))
            plan = []
            for arm in arms:
                team = f"{giver.name}/{arm.name}/{arm.repeat}"
                noted = {"giver": giver.name, "repeat": arm.repeat}
                if arm.name != NOTHING:
                    await _imported(now, giver, arm, team)
                plan += [
                    Played(arm.name, team, task, noted | {"number": number})
                    for number, task in enumerate(tried)
                ]
            await now.play(plan)
        return report(now, arms)


async def _imported(now: Study, giver: Organisation, arm: Arm, team: str) -> None:
    """Export and import once; keep how many cards agents see of it, and what it tells of the giver."""
    ours = now.cards(team)
    if (case := f"import/{team}") in now.journal:
        return
    if await ours.records.count():  # a run was killed after the import: the noise is not drawn again
        text = await ours.files.export()
    else:
        text = await _exported(now.cards(giver.name), arm)
        await ours.files.import_(text, change=IMPORTED)
    cards = await ours.records.list()
    counts = {"cards": len(cards), "shown": sum(card.shelf == "active" for card in cards)}
    now.journal.add(case, {"arm": arm.name, "repeat": arm.repeat, **counts, **_told(text, giver)})


async def _exported(theirs: KnowledgeCards, arm: Arm) -> str:
    if arm.name == AS_IT_IS:
        return await theirs.files.export()
    abstraction = await abstraction_of(theirs)
    return (await theirs.shared.export(abstraction, arm.epsilon, UNLIMITED, change=IMPORTED)).text


def _told(text: str, giver: Organisation) -> Row:
    """Return what lessons still tell: the giver's tables and columns by name, and figures."""
    said = [each for document in load(text) for _, each in texts(document)]
    tables = [SCHEMAS[name].tables() for name in giver.schemas]
    names = {name for each in tables for table, columns in each.items() for name in (table, *columns)}
    public = {*WORDS.findall(find_world("sql_tuning").vocabulary.casefold())}
    told = leaks("\n".join(said), names - public)
    figures = sum(len(FIGURE_PIECE.findall(PLACEHOLDER.sub("", each))) for each in said)
    return {"names": len(told), "told": told, "figures": figures}


def report(now: Study, arms: Sequence[Arm]) -> Report:
    """Report the gain of every kind of export, and what it tells of the giver."""
    wanted = {(arm.name, arm.repeat) for arm in arms}
    rows = [row for row in now.journal.rows if (row["arm"], row.get("repeat")) in wanted]
    played = [row for row in rows if "number" in row]
    gains = pd.DataFrame(played).sort_values("repeat", kind="stable")
    alone = gains[gains["arm"] == NOTHING].set_index(["giver", "number"])["iterations"]
    gains = gains.join(alone.rename("alone"), on=["giver", "number"])
    gains["saved"] = gains["alone"] - gains["iterations"]
    imported = pd.DataFrame([row for row in rows if "told" in row])
    found = pd.DataFrame(_figures(arm, gains, imported) for arm in arms if not arm.repeat)
    summary = {"arms": found.to_dict("records")}
    title = "Sharing between two organisations: gain against ε"
    made = now.report(rows, summary, partial(_plot, found), title=title)
    told = ["names", "figures"]
    worth = found.drop(columns=["epsilon", *told])
    made.tables.append(framed("What an import is worth to the other organisation", worth))
    exports = found[found["arm"] != NOTHING][["arm", *told]]
    made.tables.append(framed("The giver's tables and columns, and figures, that a file tells", exports))
    made.notes += [
        "Gains are paired with the same task without an import; sd is between repeated exports.",
        "ε protects one task's trace in the counts of one export. That a card is there, and its text, it "
        "does not protect: the abstraction does, as far as it can tell names.",
    ]
    if left := sorted({*imported.loc[imported["arm"] != AS_IT_IS, "told"].explode().dropna()}):
        made.notes.append(f"Of the giver's names these stand in an abstract file: {', '.join(left)}.")
    return made


def _figures(arm: Arm, gains: pd.DataFrame, imported: pd.DataFrame) -> Row:
    """Return what one kind of export was worth, over both directions."""
    mine = gains[gains["arm"] == arm.name]
    means = mine.groupby("repeat")["saved"].mean()
    common = mine["family"].isin(COMMON)
    counts = imported.loc[imported["arm"] == arm.name, ["cards", "shown", "names", "figures"]].mean()
    return {
        "arm": arm.name,
        "epsilon": arm.epsilon,
        "drafts": mine["iterations"].mean(),
        "first attempt": mine["first_attempt"].mean(),
        "saved": means.mean(),
        "sd": means.std(),
        "p by task": wilcoxon_p(mine.groupby(["giver", "number"])["saved"].mean()),
        "saved in common": mine.loc[common, "saved"].mean(),
        "in others": mine.loc[~common, "saved"].mean(),
        **counts.to_dict(),
    }


def _plot(found: pd.DataFrame, axes: Axes) -> None:
    noised = found.dropna(subset=["epsilon"])
    bars = noised["sd"].fillna(0.0)
    axes.errorbar(noised["epsilon"], noised["saved"], bars, marker="o", label="abstract, with ε")
    for name, colour in ((AS_IT_IS, "tab:green"), (ABSTRACT, "tab:orange")):
        level = found.loc[found["arm"] == name, "saved"].iloc[0]
        axes.axhline(level, color=colour, linestyle="--", label=name)
    axes.set(xscale="log", xlabel="ε of an export", ylabel="drafts saved by a task")
    axes.legend()
