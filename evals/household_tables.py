"""The household evaluation's tables and notes."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from rich.table import Table

from evals.household_arms import COUNTED, LAPSES, Arm, Lineup
from evals.household_figures import COLUMNS, Played
from evals.household_paper import CATEGORIES, FIGURE_3B, TABLE_2, paper_steps
from evals.household_plots import AIM, plots
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
        notes=_notes(played, lineup, has_model),
    )


# ---------------------------------------------------------------- tables


def _tables(played: Played, lineup: Lineup) -> list[Table]:
    return [
        _table_1(played, lineup),
        *([_table_2(played, lineup.mita, lineup.ablations)] if lineup.mita and lineup.ablations else []),
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
            f"{gap.mean.value:+.1f} ±{gap.mean.half:.1f}" if gap else "–",
            _p(gap.p) if gap else "–",
            TABLE_2[arm.name],
            f"{TABLE_2[arm.name] - TABLE_2['MiTa']:+.1f}" if arm != mita else "–",
        ]
        rows.append([arm.name, *cells])
    columns = ["", "steps", "more than MiTa", "p", "paper", "more, paper"]
    return table(f"Table 2: ablations, {mita.agents} agents, symbolic observation", columns, rows)


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
    return f"{gap.mean.value:+.1f}{star}" + (f"\n±{gap.mean.half:.1f}" if gap.mean.n > 1 else "")


def _record(played: Played, mita: Arm, rival: Arm) -> str:
    gap = played.difference(mita, rival)
    return "–" if gap is None else f"{gap.ahead} / {gap.behind}\np={_p(gap.p)}"


def _course_table(played: Played, arms: Sequence[Arm]) -> Table:
    columns = ["", "success", "× bound", "conflicts", "redundant visits", "messages"]
    names = ("conflicts", "redundant", "messages")
    rows = [
        [
            f"{arm.agents} {arm.name}",
            f"{fmean(row['success'] for row in played.cell(arm)):.0%}",
            f"{over.value:.2f} ±{over.half:.2f}",
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
        more = f"{gap.mean.value:+.1f} ±{gap.mean.half:.1f}" if gap else None
        rows.append([f"3b {label}", played.steps(arm), more, None if paper is None else f"{paper:+.1f}"])
    return table("Figure 3: who answers", ["", "steps", "more than MiTa", "paper"], rows)


# ---------------------------------------------------------------- the summary and the notes


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


def _notes(played: Played, lineup: Lineup, has_model: bool) -> list[str]:
    notes = [
        "A symbolic world after measured rules, with the oracle's bound as its limit: compare differences "
        "between methods; the paper's cells were played in Unity by GPT-4o.",
        _placed_note(played),
        _bound_note(played),
        *_aim_notes(played, lineup),
    ]
    if lineup.weaker and lineup.weaker[-1].is_weakened:
        notes.append(
            f"Figure 3b under rules: of a weaker role's decisions {LAPSES:.0%} go to a possible action drawn "
            "at random; name a model with --weak-model to have it instead."
        )
        notes += _members_note(played, lineup)
    if not has_model:
        notes.append("Answered by rules: the figures show the mechanisms, not a language model.")
    return notes


def _members_note(played: Played, lineup: Lineup) -> list[str]:
    """Say why weaker members cost nothing, where they do."""
    gap = played.difference(lineup.weaker[1], lineup.weaker[0])
    if gap is None or gap.ahead or gap.behind:
        return []
    return [
        "Weaker members change nothing under rules: the manager's rule weighs every possible action of every "
        "member itself, so that a proposal tells it nothing that the reports do not."
    ]


def _placed_note(played: Played) -> str:
    placed = [place for row in played.rows for place in row["placed"]]
    seeded = sum(place != "recorded" for place in placed)
    if not any(place == "recorded" for place in placed):
        return "Generated episodes: every start is placed by their seed."
    return (
        f"{seeded} of {len(placed)} starts are not recorded (the third agent's) and placed by a seeded rule."
    )


def _bound_note(played: Played) -> str:
    kinds = [row["bound_kind"] for row in played.rows]
    exact = sum(kind == "exact" for kind in kinds)
    return (
        f"The bound knows everything at once; it is exact in {exact} of {len(kinds)} runs, else a relaxation."
    )


def _aim_notes(played: Played, lineup: Lineup) -> list[str]:
    """Say in which categories MiTa is ahead of each rival, and how far from the bound it is."""
    mita = lineup.mita
    if mita is None:
        return []
    notes = [_ahead(played, mita, rival) for one, rival in lineup.pairs if one == mita]
    over = played.over_bound(mita)
    if over is not None:
        verdict = "within" if over.value <= AIM else "not within"
        notes.append(f"MiTa, {mita.agents} agents: {over.value:.2f} × the bound on average, {verdict} {AIM}.")
    return notes


def _ahead(played: Played, mita: Arm, rival: Arm) -> str:
    gaps = {column: played.difference(mita, rival, column) for column in CATEGORIES}
    known = {column: gap for column, gap in gaps.items() if gap is not None}
    behind = [column for column, gap in known.items() if gap.mean.value >= 0]
    where = "in every category" if not behind else f"but for {', '.join(behind)}"
    return f"MiTa, {mita.agents} agents, is ahead of {rival.name} {where}."
