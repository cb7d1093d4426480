"""Calibrate the judges of shared memories: do they score what is good above what is not, and do they agree?

Each shipped pair is an anchor, and is damaged in three ways whose order nobody doubts: its answer is cut off,
belongs to another question of the same agent, or repeats the question. Every judge scores all of them by
the rubric of the domain. Counted are a judge's means, how often the pair is above its damaged self, and how
far the orders of two judges agree (Spearman). A pair that has no score is counted, not guessed.
"""

import asyncio
from itertools import combinations
from statistics import fmean

import numpy as np
from pydantic import BaseModel, Field
from scipy.stats import spearmanr

from mneme.evals.options import RUNS, Fresh, Out, Positive
from mneme.evals.report import Journal, Progress, Report, Row, open_journal, table
from mneme.evals.sharing.data import Item, read_items
from mneme.library.agents.agent import AGENTS, load_agent
from mneme.library.agents.rubric import load_rubric
from mneme.nodes.sharing.exchange import Exchange, Scorer, score
from mneme.nodes.sharing.pools import FrozenRubric

VERSIONS = ("as it is", "cut after a third", "another's answer", "the question again")
AGREED = 0.6
"""Spearman's rho below which two judges are said not to agree."""


class Options(BaseModel):
    """Who judges, and how many pairs."""

    scorers: list[str] = Field(
        ["rules"],
        min_length=1,
        description="Who judges; repeat it for several.",
        json_schema_extra={"option": "agents"},
    )
    pairs: Positive = Field(2, description="Pairs of each agent.")
    out: Out = RUNS
    fresh: Fresh = False


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Let every judge score every anchor; go on where an interrupted run stopped."""
    anchors = _anchors(options.pairs)
    journal = open_journal(options.out, "judges", {"pairs": options.pairs}, fresh=options.fresh)
    cases = [(who, item, version) for who in options.scorers for item in anchors for version in anchors[item]]
    for number, (who, item, version) in enumerate(cases):
        name = f"{who}/{item.id}/{version}"
        if name not in journal:
            found = await _scored(item, anchors[item][version], who)
            journal.add(
                name, {"judge": who, "item": item.id, "agent": item.agent, "version": version, **found}
            )
        progress(number + 1, len(cases), who)
    return report([row for row in journal.rows if row["judge"] in options.scorers], options, journal)


def _anchors(pairs: int) -> dict[Item, dict[str, str]]:
    """Return the shipped pairs with the versions of their answers."""
    items = read_items(None)
    found = dict[Item, dict[str, str]]()
    for agent in AGENTS:
        own = [each for each in items if each.agent == agent]
        for item, other in zip(own[:pairs], [*own[1:], own[0]], strict=False):
            cut = item.answer[: len(item.answer) // 3]
            found[item] = dict(zip(VERSIONS, (item.answer, cut, other.answer, item.question), strict=True))
    return found


async def _scored(item: Item, answer: str, who: str) -> Row:
    agent = load_agent(item.agent)
    rubric = FrozenRubric(version=0, rubric=await asyncio.to_thread(load_rubric, agent.domain), by="shipped")
    found = await score(Exchange(agent, item.question), answer, (), Scorer(rubric, who, "background"))
    return {
        "score": found["score"],
        "points": found["points"],
        "why": found["rationale"],
        "by": found["scored_by"],
    }


def report(rows: list[Row], options: Options, journal: Journal) -> Report:
    """Put every judge into one table, and every two into another."""
    summary: Row = {who: _of(who, rows) for who in options.scorers}
    columns = ("judge", *VERSIONS, "itself above the damaged", "not scored")
    cells = [
        [
            who,
            *(_cell(found["means"][each]) for each in VERSIONS),
            _cell(found["above"], 2),
            str(found["failed"]),
        ]
        for who, found in summary.items()
    ]
    tables = [table("Mean scores of anchors, of 100", columns, cells)]
    pairs = {f"{a} and {b}": _agreement(a, b, rows) for a, b in combinations(options.scorers, 2)}
    if pairs:
        told = [[name, _cell(rho, 2), _verdict(rho)] for name, rho in pairs.items()]
        tables.append(table("Agreement of judges (Spearman)", ("judges", "rho", ""), told))
    notes = [(__doc__ or "").split("\n\n")[1].replace("\n", " ").strip()]
    answered = ", ".join(options.scorers)
    return Report("judges", answered, journal.path, rows, summary | {"agreement": pairs}, tables, [], notes)


def _of(who: str, rows: list[Row]) -> Row:
    own = [row for row in rows if row["judge"] == who]
    scored = {(row["item"], row["version"]): row["score"] for row in own if row["score"] is not None}
    means = {
        each: _mean([value for (_, version), value in scored.items() if version == each]) for each in VERSIONS
    }
    above = [
        float(scored[item, VERSIONS[0]] > value)
        for (item, version), value in scored.items()
        if version != VERSIONS[0] and (item, VERSIONS[0]) in scored
    ]
    return {"means": means, "above": _mean(above), "failed": len(own) - len(scored)}


def _agreement(one: str, other: str, rows: list[Row]) -> float | None:
    """Return Spearman's rho on what both scored; None where one of them gave a single score to all."""
    by = {
        who: {(r["item"], r["version"]): r["score"] for r in rows if r["judge"] == who}
        for who in (one, other)
    }
    both = [
        (a, by[other][key]) for key, a in by[one].items() if a is not None and by[other].get(key) is not None
    ]
    if len({a for a, _ in both}) <= 1 or len({b for _, b in both}) <= 1:
        return None
    return float(spearmanr(np.array(both)).statistic)


def _verdict(rho: float | None) -> str:
    if rho is None:
        return "cannot be told"
    return "they agree" if rho >= AGREED else f"they do not agree (below {AGREED})"


def _mean(values: list[float]) -> float | None:
    return fmean(values) if values else None


def _cell(value: float | None, places: int = 0) -> str:
    return "–" if value is None else f"{value:.{places}f}"
