"""The household evaluation's tables and the figures of its summary."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from rich.table import Table

from evals.household_arms import COUNTED, Arm, Lineup
from evals.household_figures import COLUMNS, Difference, Played
from evals.household_notes import notes_of
from evals.household_paper import FIGURE_3B, TABLE_2, paper_steps
from evals.household_plots import plots
from evals.report import Journal, Report, Row, table


def report(
    rows: Sequence[Row], lineup: Lineup, journal: Journal, answered_by: str, *, has_model: bool
) -> Report:
    """Make the report of a finished run."""
    played = Played(rows)
    return Report(
        name="household",
        answered_by=answered_by,
        raw=journal.path,
        rows=list(rows),
        summary=_summary(played, lineup),
        tables=_tables(played, lineup),
        plots=plots(played, lineup, journal, answered_by),
        notes=notes_of(played, lineup, has_model=has_model),
    )


# ---------------------------------------------------------------- tables


def _tables(played: Played, lineup: Lineup) -> list[Table]:
    return [
        _table_1(played, lineup),
        *([_table_2(played, lineup.mita, lineup.ablations)] if lineup.mita and lineup.ablations else []),
        *([_window_table(played, lineup)] if lineup.narrow else []),
        *([_pairs_table(played, lineup)] if lineup.pairs else []),
        _course_table(played, lineup.arms),
        _cost_table(played, lineup.arms),
        *([_roles_table(played, lineup)] if lineup.weaker else []),
    ]


def _table_1(played: Played, lineup: Lineup) -> Table:
    rows: list[list[object]] = []
    for arm in lineup.main:
        rows.append([f"{arm.agents} {arm.name}", *(_cell(played, arm, lineup.base, c) for c in COLUMNS)])
        rows.append(["  paper", *(_paper_cell(arm, column) for column in COLUMNS)])
    for agents, arm in {arm.agents: arm for arm in lineup.arms}.items():
        bounds = (played.bound(arm, column) for column in COLUMNS)
        rows.append([f"{agents} bound", *("–" if one is None else f"{one:.1f}" for one in bounds)])
    title = "Table 1: agents and method: average steps L, 95 % interval, improvement EI on MHP alone"
    return table(title, ["", *COLUMNS], rows)


def _cell(played: Played, arm: Arm, base: Arm | None, column: str) -> str:
    steps = played.steps(arm, column)
    if steps is None:
        return "–"
    gain = None if base is None or arm == base else played.improvement(arm, base, column)
    return str(steps) if gain is None else f"{steps}\n{gain:+.0%}"


def _paper_cell(arm: Arm, column: str) -> str:
    steps, alone = (paper_steps(name, n, column) for name, n in ((arm.name, arm.agents), ("MHP", 1)))
    if steps is None or alone is None:
        return "–"
    gain = (alone - steps) / max(alone, steps)
    return f"{steps:.1f}" if gain == 0 else f"{steps:.1f} {gain:+.0%}"


def _table_2(played: Played, mita: Arm, ablations: Sequence[Arm]) -> Table:
    rows = []
    for arm in (mita, *ablations):
        gap = None if arm == mita else played.difference(arm, mita)
        cells = [
            played.steps(arm),
            f"{gap.mean:+.1f}" if gap else "–",
            _verdict(gap) if gap else "–",
            TABLE_2[arm.name],
            f"{TABLE_2[arm.name] - TABLE_2['MiTa']:+.1f}" if arm != mita else "–",
        ]
        rows.append([arm.name, *cells])
    columns = ["", "steps", "more than MiTa", "p", "paper", "more, paper"]
    title = f"Table 2: ablations, {mita.agents} agents, symbolic observation, window {mita.window}"
    return table(title, columns, rows)


def _window_table(played: Played, lineup: Lineup) -> Table:
    """Set what the summary is worth beside how much the members still report themselves."""
    rows: list[list[object]] = []
    for whole, without in lineup.windows:
        gap = played.difference(without, whole)
        cells = [
            played.steps(whole),
            played.steps(without),
            *([f"{gap.mean:+.1f}", _verdict(gap)] if gap else []),
        ]
        rows.append([f"window {whole.window}", *cells])
    columns = ["", "MiTa", "w/o summary", "more than MiTa", "p"]
    return table("Table 2, further: the summary's worth by window", columns, rows)


def _verdict(gap: Difference) -> str:
    return _p(gap.p) if gap.is_clear else f"{_p(gap.p)}, not clear"


def _p(value: float | None) -> str:
    return "–" if value is None else f"{value:.1g}"


def _pairs_table(played: Played, lineup: Lineup) -> Table:
    rows = [
        [
            f"{mita.agents} {rival.name}",
            *(_gap(played, mita, rival, column) for column in COLUMNS),
            _record(played, mita, rival),
        ]
        for mita, rival in lineup.pairs
    ]
    title = "MiTa's steps less a rival's over the same episodes: below 0: ahead (* interval without 0)"
    return table(title, ["", *COLUMNS, "ahead / behind"], rows)


def _gap(played: Played, mita: Arm, rival: Arm, column: str) -> str:
    gap = played.difference(mita, rival, column)
    if gap is None:
        return "–"
    star = "*" if gap.mean.is_clear else ""
    value, _, half = f"{gap.mean:+.1f}".partition(" ")
    return f"{value}{star}\n{half}".strip()


def _record(played: Played, mita: Arm, rival: Arm) -> str:
    gap = played.difference(mita, rival)
    return "–" if gap is None else f"{gap.ahead} / {gap.behind}\np={_p(gap.p)}"


def _course_table(played: Played, arms: Sequence[Arm]) -> Table:
    columns = ["", "success", "× bound", "conflicts", "steps lost", "plans forestalled"]
    columns += ["redundant visits", "messages"]
    names = ("conflicts", "lost_steps", "forestalled", "redundant", "messages")
    rows = [
        [
            f"{arm.agents} {arm.name}",
            f"{fmean(row['success'] for row in played.cell(arm)):.0%}",
            f"{over:.2f}",
            *(f"{played.count(arm, name):.1f}" for name in names),
        ]
        for arm in arms
        if (over := played.over_bound(arm)) is not None
    ]
    return table("How an episode goes, on average", columns, rows)


def _cost_table(played: Played, arms: Sequence[Arm]) -> Table:
    columns = ["", "model calls", "prompt tokens", "reply tokens", "repaired", "fell back", "seconds"]
    names = ("calls", "prompt_tokens", "reply_tokens", "repaired", "fallbacks", "seconds")
    rows = [
        [f"{arm.agents} {arm.name}", *(f"{played.count(arm, name):.1f}" for name in names)]
        for arm in arms
        if played.cell(arm)
    ]
    return table("What an episode costs, on average", columns, rows)


def _roles_table(played: Played, lineup: Lineup) -> Table:
    rows: list[list[object]] = [["3a " + arm.who, played.steps(arm), None, None] for arm in lineup.models]
    full = lineup.weaker[0]
    papers = (None, *FIGURE_3B.values())
    for label, arm, paper in zip(("MiTa", *FIGURE_3B), lineup.weaker, papers, strict=True):
        gap = played.difference(arm, full) if arm != full else None
        more = f"{gap.mean:+.1f}" if gap else None
        rows.append([f"3b {label}", played.steps(arm), more, None if paper is None else f"{paper:+.1f}"])
    return table("Figure 3: who answers", ["", "steps", "more than MiTa", "paper"], rows)


# ---------------------------------------------------------------- the summary


def _summary(played: Played, lineup: Lineup) -> dict[str, Any]:
    return {
        "arms": {arm.key: _figures(played, arm, lineup.base) for arm in lineup.every},
        "pairs": {
            f"{mita.agents} agents, MiTa - {rival.name}": {
                column: {"mean": gap.mean.value, "half": gap.mean.half, "p": gap.p}
                for column in COLUMNS
                if (gap := played.difference(mita, rival, column)) is not None
            }
            for mita, rival in lineup.pairs
        },
    }


def _figures(played: Played, arm: Arm, base: Arm | None) -> dict[str, Any]:
    cells = {
        column: {
            "steps": steps.value,
            "half": steps.half,
            "episodes": steps.n,
            "improvement": played.improvement(arm, base, column) if base else None,
            "paper": paper_steps(arm.name, arm.agents, column),
            "bound": played.bound(arm, column),
        }
        for column in COLUMNS
        if (steps := played.steps(arm, column)) is not None
    }
    return {
        "cells": cells,
        "over_bound": over.value if (over := played.over_bound(arm)) else None,
        "success": fmean(row["success"] for row in played.cell(arm)),
        **{name: played.count(arm, name) for name in COUNTED},
    }
