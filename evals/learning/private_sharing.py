"""§11.4 of the self-improving-memory paper: what is sharing worth, and what does privacy cost?

Two organisations tune queries on databases of their own, with three families of tasks in common and two of
their own each. When one has learned, it exports its cards: as they are, abstract and without counts, and
abstract with counts under differential privacy, each ε several times, since the noise is drawn anew. A team
of the other organisation that knows nothing yet imports one file, and solves its tasks with it, learning on
the way; the gain is the drafts that it needs less than without any import. An import takes no successes on
trust: cards are provisional, and what ε changes is which of them have a confidence of half at the least, and
so are shown to agents at all. The noise comes from the system, not from a seed.
"""

import asyncio
from collections.abc import Callable, Sequence
from statistics import fmean, stdev
from typing import NamedTuple

from matplotlib.axes import Axes
from pydantic import BaseModel, Field

from mneme.cli.tables import Table
from mneme.core.settings import settings
from mneme.environments.sql_tuning import SCHEMAS, tasks
from mneme.environments.sql_tuning.tasks import Family
from mneme.environments.worlds import find_world
from mneme.evals.answering import Identity, identify
from mneme.evals.learning.arms import Team, make_databases
from mneme.evals.measuring import home_beside, ledger_at, p_cell, wilcoxon_p
from mneme.evals.options import RUNS, Agents, EmbedderName, Fresh, Out, Positive
from mneme.evals.report import Journal, Progress, Report, Row, draw, open_journal, table
from mneme.models.embedding.embedders import open_embedder
from mneme.nodes.learning.abstracting import abstraction_of
from mneme.stores.cards.abstraction import FIGURE_PIECE, PLACEHOLDER, WORDS, leaks
from mneme.stores.cards.check import texts
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.yaml_form import load
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change

SHOWN = 5
LEARNED_FROM, TRIED_ON = 21, 22
"""Seeds of the tasks that are learned from, and of those that are solved with what was imported."""
NOTHING, AS_IT_IS, ABSTRACT = "nothing", "as it is", "abstract, no counts"
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


class Options(BaseModel):
    """How much is learned and tried, with how much privacy, and who answers."""

    learned: Positive = Field(40, description="Tasks that an organisation learns from before it shares.")
    tried: Positive = Field(15, description="Tasks that the other solves with what it imported.")
    epsilons: list[float] = Field([0.1, 0.3, 1.0, 3.0, 10.0], min_length=1, description="ε of an export.")
    repeats: Positive = Field(3, description="Exports with each ε: the noise is drawn anew.")
    rows: int = Field(8_000, ge=100, description="Rows of each database's table of facts.")
    agents: Agents = "auto"
    embedder: EmbedderName = ""
    out: Out = RUNS
    fresh: Fresh = False


class Arm(NamedTuple):
    """What is imported: by what name, with which ε, and which repetition it is."""

    name: str
    epsilon: float | None = None
    repeat: int = 0


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Let both organisations learn, share and solve, going on where a run stopped."""
    embedder = await open_embedder(options.embedder or settings().embedder)
    who = await identify(options.agents)
    configuration: Row = {"agents": who.model_dump(), "embedder": embedder.name}
    configuration |= options.model_dump(mode="json", include={"learned", "tried", "rows"})
    journal = open_journal(options.out, "private_sharing", configuration, fresh=options.fresh)
    async with ledger_at(home_beside(journal), embedder) as ledger:
        await asyncio.to_thread(make_databases, options.rows)
        bench = _Bench(options, ledger, who.responder, journal, progress)
        for giver, taker in ((FIRST, SECOND), (SECOND, FIRST)):
            await bench.between(giver, taker)
    return report(options, journal, who)


def arms_of(options: Options) -> list[Arm]:
    """Return everything that is imported, nothing and the file as it is among them."""
    noised = [
        Arm(f"ε = {epsilon:g}", epsilon, repeat)
        for epsilon in sorted(options.epsilons)
        for repeat in range(options.repeats)
    ]
    return [Arm(NOTHING), Arm(AS_IT_IS), Arm(ABSTRACT), *noised]


class _Bench:
    """What a run goes by."""

    def __init__(
        self, options: Options, ledger: Ledger, who: str, journal: Journal, progress: Progress
    ) -> None:
        self._options, self._ledger, self._who = options, ledger, who
        self._journal, self._progress = journal, progress

    async def between(self, giver: Organisation, taker: Organisation) -> None:
        """Let one learn, and the other solve its tasks with every kind of export."""
        theirs = self._team(giver.name)
        for number, task in enumerate(
            tasks(LEARNED_FROM, self._options.learned, giver.families, schemas=giver.schemas)
        ):
            if (case := f"learn/{giver.name}/{number}") not in self._journal:
                solved = await theirs.solve(task)
                self._journal.add(case, {"learned": giver.name, "iterations": solved["iterations"]})
        arms = arms_of(self._options)
        for done, arm in enumerate(arms, start=1):
            await self._tried(giver, taker, theirs.cards, arm)
            self._progress(done, len(arms), f"{giver.name} to {taker.name}, {arm.name}")

    def _team(self, name: str) -> Team:
        return Team(name, self._ledger, self._who, self._options.rows, SHOWN)

    async def _tried(
        self, giver: Organisation, taker: Organisation, theirs: KnowledgeCards, arm: Arm
    ) -> None:
        of = {"giver": giver.name, "arm": arm.name, "epsilon": arm.epsilon, "repeat": arm.repeat}
        start = f"{giver.name}/{arm.name}/{arm.repeat}"
        ours = self._team(start)
        if arm.name != NOTHING and (case := f"{start}/import") not in self._journal:
            self._journal.add(case, of | {"imported": await self._imported(giver, theirs, ours.cards, arm)})
        for number, task in enumerate(
            tasks(TRIED_ON, self._options.tried, taker.families, schemas=taker.schemas)
        ):
            if (case := f"{start}/{number}") not in self._journal:
                solved = await ours.solve(task)
                kept = ("family", "iterations", "first_attempt", "solved", "seconds", "retrieved", "used")
                self._journal.add(case, of | {"number": number} | {name: solved[name] for name in kept})

    async def _imported(
        self, giver: Organisation, theirs: KnowledgeCards, ours: KnowledgeCards, arm: Arm
    ) -> Row:
        """Export and import; return how many cards agents see of it, and what it tells of the giver."""
        if await ours.records.count():  # a run was killed after the import: the noise is not drawn again
            text = await ours.files.export()
        else:
            text = await _exported(theirs, arm)
            await ours.files.import_(text, change=IMPORTED)
        cards = await ours.records.list()
        return {
            "cards": len(cards),
            "shown": sum(card.shelf == "active" for card in cards),
            **_told(text, giver),
        }


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


def report(options: Options, journal: Journal, who: Identity) -> Report:
    """Report the gain of every kind of export, and what it tells of the giver."""
    wanted = {(arm.name, arm.repeat) for arm in arms_of(options)}
    rows = [row for row in journal.rows if "arm" in row and (row["arm"], row["repeat"]) in wanted]
    found = [_arm(name, rows) for name in dict.fromkeys(arm.name for arm in arms_of(options))]
    plot = draw(
        journal.path.with_suffix(".png"),
        "Sharing between two organisations: gain against ε",
        str(who),
        _plot(found),
    )
    notes = [
        "Gains are paired with the same task without an import; ± is the deviation between repeated exports.",
        "ε protects one task's trace in the counts of one export. That a card is there, and its text, it "
        "does not protect: the abstraction does, as far as it can tell names.",
    ]
    left = sorted({name for each in found if each["arm"] != AS_IT_IS for name in each["told"]})
    if left:
        notes.append(f"Of the giver's names these stand in an abstract file: {', '.join(left)}.")
    if not who.is_model:
        notes.append(
            "Answered by rules: patterns are abstract by themselves, so the words lose nothing here."
        )
    summary: Row = {"arms": found}
    tables = [_gain_table(found), _told_table(found)]
    return Report("private_sharing", str(who), journal.path, rows, summary, tables, [plot], notes)


def _arm(name: str, rows: Sequence[Row]) -> Row:
    """Return what one kind of export was worth, over both directions."""
    alone = {(r["giver"], r["number"]): r for r in rows if r["arm"] == NOTHING and "number" in r}
    mine = [row for row in rows if row["arm"] == name and "number" in row]
    imported = [row["imported"] for row in rows if row["arm"] == name and "imported" in row]
    saved = [(row, alone[row["giver"], row["number"]]["iterations"] - row["iterations"]) for row in mine]
    by_repeat: dict[int, list[float]] = {}
    by_task: dict[tuple[str, int], list[float]] = {}
    for row, each in saved:
        by_repeat.setdefault(row["repeat"], []).append(each)
        by_task.setdefault((row["giver"], row["number"]), []).append(each)
    means = [fmean(each) for each in by_repeat.values()]
    return {
        "arm": name,
        "epsilon": mine[0]["epsilon"],
        "drafts": fmean(row["iterations"] for row in mine),
        "first": fmean(row["first_attempt"] for row in mine),
        "saved": fmean(means),
        "sd": stdev(means) if len(means) > 1 else None,
        "saved_common": _mean([each for row, each in saved if row["family"] in COMMON]),
        "saved_own": _mean([each for row, each in saved if row["family"] not in COMMON]),
        "p": wilcoxon_p([fmean(each) for each in by_task.values()]),
        "told": sorted({name for one in imported for name in one["told"]}),
        **{each: _mean([one[each] for one in imported]) for each in ("cards", "shown", "names", "figures")},
    }


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _gain_table(found: Sequence[Row]) -> Table:
    columns = (
        *("imported", "drafts a task", "solved by the first", "drafts saved", "p (by task)"),
        *("saved in common families", "in others", "cards", "of them shown"),
    )
    cells = [
        [
            *(each["arm"], each["drafts"], f"{each['first']:.0%}"),
            f"{each['saved']:.2f}" + (f" ± {each['sd']:.2f}" if each["sd"] is not None else ""),
            *(p_cell(each["p"]), each["saved_common"], each["saved_own"], each["cards"], each["shown"]),
        ]
        for each in found
    ]
    return table("What an import is worth to the other organisation", columns, cells)


def _told_table(found: Sequence[Row]) -> Table:
    columns = ("exported", "the giver's tables and columns named", "figures")
    cells = [[each["arm"], each["names"], each["figures"]] for each in found if each["arm"] != NOTHING]
    return table("What an export tells of the giver, a file", columns, cells)


def _plot(found: Sequence[Row]) -> Callable[[Axes], None]:
    def plot(axes: Axes) -> None:
        noised = [each for each in found if each["epsilon"] is not None]
        spread = [each["sd"] or 0.0 for each in noised]
        axes.errorbar(
            [each["epsilon"] for each in noised],
            [each["saved"] for each in noised],
            yerr=spread,
            marker="o",
            label="abstract, counts with ε",
        )
        for name, colour in ((AS_IT_IS, "tab:green"), (ABSTRACT, "tab:orange")):
            level = next(each["saved"] for each in found if each["arm"] == name)
            axes.axhline(level, color=colour, linestyle="--", label=name)
        axes.set_xscale("log")
        axes.set_xlabel("ε of an export")
        axes.set_ylabel("drafts saved by a task")
        axes.legend()

    return plot
