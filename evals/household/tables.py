"""The household evaluation's tables and the figures of its summary."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from mneme.cli.tables import Table
from mneme.evals.household.arms import COUNTED, Arm, Plan
from mneme.evals.household.notes import EYES_NOTE, notes_of
from mneme.evals.household.paper import FIGURE_3B, TABLE_2, paper_steps
from mneme.evals.household.plots import plots
from mneme.evals.household.results import AVERAGE, COLUMNS, GENERATED, Difference, Results, name_of
from mneme.evals.measuring import p_cell
from mneme.evals.report import Journal, Report, Row, table


def report(
    rows: Sequence[Row], plans: Sequence[Plan], journal: Journal, answered_by: str, *, has_model: bool
) -> Report:
    """Make the report of a finished run; each setting has a plan of its own."""
    results, *others = _by_source(rows)
    plan, *more = plans
    return Report(
        name="household",
        answered_by=answered_by,
        raw=journal.path,
        rows=list(rows),
        summary=_summaries(results, others, plan)
        | {each.setting: _summaries(results, others, each) for each in more},
        tables=[*(one for each in plans for one in _all_tables(results, others, each)), _paper_table(plan)],
        plots=[one for each in plans for one in plots(results, each, journal, answered_by)],
        notes=[
            *notes_of(results, plan, has_model=has_model, others=others),
            *([EYES_NOTE] if more else []),
        ],
    )


def _by_source(rows: Sequence[Row]) -> list[Results]:
    """Keep apart what was played on generated episodes, which comes first, and on others."""
    sources = sorted({row.get("source", GENERATED) for row in rows}, key=lambda each: each != GENERATED)
    return [Results([row for row in rows if row.get("source", GENERATED) == each]) for each in sources]


# ---------------------------------------------------------------- tables


def _all_tables(results: Results, others: Sequence[Results], plan: Plan) -> list[Table]:
    return [*_tables(results, plan), *(one for each in others for one in _main_tables(each, plan))]


def _where(results: Results, plan: Plan) -> str:
    """Say which episodes a table is of, and that agents saw them, if they did."""
    return name_of(results) + (", visual observation" if plan.setting == "visual" else "")


def _tables(results: Results, plan: Plan) -> list[Table]:
    return [
        *_main_tables(results, plan),
        *([_table_2(results, plan.mita, plan.ablations)] if plan.mita and plan.ablations else []),
        *([_window_table(results, plan)] if plan.narrow else []),
        *([_talking_table(results, plan)] if plan.talking else []),
        _cost_table(results, plan),
    ]


def _main_tables(results: Results, plan: Plan) -> list[Table]:
    """Make the tables that each source of episodes has."""
    return [
        _table_1(results, plan),
        *([_pairs_table(results, plan)] if plan.pairs else []),
        _course_table(results, plan),
        *([_roles_table(results, plan)] if plan.weaker else []),
        *([_weakness_table(results, plan.weak)] if plan.weak else []),
    ]


def _table_1(results: Results, plan: Plan) -> Table:
    rows: list[list[object]] = []
    for arm in plan.main:
        rows.append([_named(results, arm), *(_cell(results, arm, plan.base, c) for c in COLUMNS)])
    for agents, arm in {arm.agents: arm for arm in plan.arms}.items():
        bounds = (results.bound(arm, column) for column in COLUMNS)
        rows.append([f"{agents} bound", *("–" if one is None else f"{one:.1f}" for one in bounds)])
    title = f"Table 1, {_where(results, plan)}: average steps L, 95 % interval, improvement EI on MHP alone"
    return table(title, ["", *COLUMNS], rows)


def _paper_table(plan: Plan) -> Table:
    """Give the paper's own figures, apart from ours: other models in another world."""
    rows: list[list[object]] = [
        [f"{arm.agents} {arm.name}", *(_paper_cell(arm, column) for column in COLUMNS)]
        for arm in plan.main
        if paper_steps(arm.name, arm.agents, AVERAGE) is not None
    ]
    title = "The paper's table 1: GPT-4o on C-WAH in VirtualHome (Unity); nearness to ours means nothing"
    return table(title, ["", *COLUMNS], rows)


def _weakness_table(results: Results, weak: Sequence[Arm]) -> Table:
    """Say what it costs that a role lapses in several ways, over the episodes that both have played."""
    rates = sorted({arm.rate for arm in weak})
    rows: list[list[object]] = []
    for kind in dict.fromkeys(arm.weakness for arm in weak):
        alike = [arm for arm in weak if arm.weakness == kind]
        gaps = {arm: gap for arm in alike if (gap := results.difference(arm, arm.unweakened))}
        if gaps:
            lost = " / ".join(f"{results.count(arm, 'unallocated'):.1f}" for arm in gaps)
            rows.append([kind, *_weak_cells(results, gaps), lost])
    columns = ["who is weak, and how", "n", "without", *(f"{rate:.0%}" for rate in rates)]
    title = f"Figure 3b, further, {name_of(results)}: {weak[0].agents} agents, a share of decisions lapses"
    return table(f"{title} (* clear)", [*columns, "rounds without allocation"], rows)


def _weak_cells(results: Results, gaps: Mapping[Arm, Difference]) -> list[str]:
    """Return how many episodes, the steps without lapses, and with them at each rate."""
    (arm, gap), *_ = gaps.items()
    steps = {each: fmean(row["steps"] for row in results.cell(each)) for each in gaps}
    with_lapses = [f"{steps[each]:.1f}\n{more.mean:+.1f}{'*' * more.is_clear}" for each, more in gaps.items()]
    return [str(gap.mean.n), f"{steps[arm] - gap.mean.value:.1f}", *with_lapses]


def _talking_table(results: Results, plan: Plan) -> Table:
    """Say what a second round of negotiation changes, with a manager and without."""
    rows: list[list[object]] = []
    for arm in plan.talking:
        once = replace(arm, rounds=1)
        gap = results.difference(arm, once)
        if gap is None:
            continue
        counted = (f"{results.count(arm, name):.1f}" for name in ("conflicts", "redundant", "calls"))
        rows.append([arm.name, results.steps(arm), f"{gap.mean:+.1f}", _verdict(gap), *counted])
    columns = ["two rounds", "steps", "more than one round", "p", "conflicts", "redundant visits", "calls"]
    return table("Negotiation in two rounds", columns, rows)


def _named(results: Results, arm: Arm) -> str:
    return results.named(arm, f"{arm.agents} {arm.name}")


def _cell(results: Results, arm: Arm, base: Arm | None, column: str) -> str:
    steps = results.steps(arm, column)
    if steps is None:
        return "–"
    gain = None if base is None or arm == base else results.improvement(arm, base, column)
    return str(steps) if gain is None else f"{steps}\n{gain:+.0%}"


def _paper_cell(arm: Arm, column: str) -> str:
    steps, alone = (paper_steps(name, n, column) for name, n in ((arm.name, arm.agents), ("MHP", 1)))
    if steps is None or alone is None:
        return "–"
    gain = (alone - steps) / max(alone, steps)
    return f"{steps:.1f}" if gain == 0 else f"{steps:.1f} {gain:+.0%}"


def _table_2(results: Results, mita: Arm, ablations: Sequence[Arm]) -> Table:
    rows, paper = [], TABLE_2[mita.setting]
    for arm in (mita, *ablations):
        gap = None if arm == mita else results.difference(arm, mita)
        cells = [
            results.steps(arm),
            f"{gap.mean:+.1f}" if gap else "–",
            _verdict(gap) if gap else "–",
            paper[arm.name],
            f"{paper[arm.name] - paper['MiTa']:+.1f}" if arm != mita else "–",
        ]
        rows.append([results.named(arm, arm.name), *cells])
    columns = ["", "steps", "more than MiTa", "p", "paper", "more, paper"]
    title = f"Table 2: ablations, {mita.agents} agents, {mita.setting} observation, window {mita.window}"
    return table(title, columns, rows)


def _window_table(results: Results, plan: Plan) -> Table:
    """Compare MiTa with and without the summary, by how many steps members report themselves."""
    rows: list[list[object]] = []
    for whole, without in plan.windows:
        gap = results.difference(without, whole)
        cells = [
            results.steps(whole),
            results.steps(without),
            *([f"{gap.mean:+.1f}", _verdict(gap)] if gap else []),
        ]
        rows.append([results.named(whole, f"window {whole.window}"), *cells])
    columns = ["", "MiTa", "w/o summary", "more than MiTa", "p"]
    return table("Table 2, further: steps without the summary, by window", columns, rows)


def _verdict(gap: Difference) -> str:
    return p_cell(gap.p) if gap.is_clear else f"{p_cell(gap.p)}, not clear"


def _pairs_table(results: Results, plan: Plan) -> Table:
    rows = [
        [
            results.named(mita, f"{mita.agents} {mita.name} - {rival.name}"),
            *(_gap(results, mita, rival, column) for column in COLUMNS),
            _record(results, mita, rival),
        ]
        for mita, rival in plan.pairs
    ]
    title = (
        f"{_where(results, plan)}: MiTa's steps less a rival's, same episodes: below 0: ahead (* without 0)"
    )
    return table(title, ["", *COLUMNS, "ahead / behind"], rows)


def _gap(results: Results, mita: Arm, rival: Arm, column: str) -> str:
    gap = results.difference(mita, rival, column)
    if gap is None:
        return "–"
    star = "*" if gap.mean.is_clear else ""
    value, _, half = f"{gap.mean:+.1f}".partition(" ")
    return f"{value}{star}\n{half}".strip()


def _record(results: Results, mita: Arm, rival: Arm) -> str:
    gap = results.difference(mita, rival)
    return "–" if gap is None else f"{gap.ahead} / {gap.behind}\np={p_cell(gap.p)}"


def _course_table(results: Results, plan: Plan) -> Table:
    columns = ["", "success", "× bound", "return", "conflicts", "steps lost", "plans forestalled"]
    columns += ["redundant visits", "messages"]
    names = ("conflicts", "lost_steps", "forestalled", "redundant", "messages")
    rows = [
        [
            _named(results, arm),
            f"{fmean(row['success'] for row in results.cell(arm)):.0%}",
            f"{over:.2f}",
            f"{results.count(arm, 'return'):.2f}",
            *(f"{results.count(arm, name):.1f}" for name in names),
        ]
        for arm in plan.arms
        if (over := results.over_bound(arm)) is not None
    ]
    return table(f"{_where(results, plan)}: what happens in an episode, on average", columns, rows)


def _cost_table(results: Results, plan: Plan) -> Table:
    columns = ["", "model calls", "prompt tokens", "reply tokens", "repaired", "fell back", "seconds"]
    names = ("calls", "prompt_tokens", "reply_tokens", "repaired", "fallbacks", "seconds")
    rows = [
        [_named(results, arm), *(f"{results.count(arm, name):.1f}" for name in names)]
        for arm in plan.arms
        if results.cell(arm)
    ]
    return table(f"{_where(results, plan)}: what an episode costs, on average", columns, rows)


def _roles_table(results: Results, plan: Plan) -> Table:
    rows: list[list[object]] = [
        [results.named(arm, "3a " + arm.who), results.steps(arm), None, None] for arm in plan.models
    ]
    full = plan.weaker[0]
    papers = (None, *FIGURE_3B.values())
    for label, arm, paper in zip(("MiTa", *FIGURE_3B), plan.weaker, papers, strict=True):
        gap = results.difference(arm, full) if arm != full else None
        more = f"{gap.mean:+.1f}" if gap else None
        rows.append(
            [
                results.named(arm, f"3b {label}"),
                results.steps(arm),
                more,
                None if paper is None else f"{paper:+.1f}",
            ]
        )
    title = f"Figure 3, {name_of(results)}: who answers"
    return table(title, ["", "steps", "more than MiTa", "paper"], rows)


# ---------------------------------------------------------------- the summary


def _summaries(results: Results, others: Sequence[Results], plan: Plan) -> dict[str, Any]:
    return _summary(results, plan) | {name_of(each): _summary(each, plan) for each in others}


def _summary(results: Results, plan: Plan) -> dict[str, Any]:
    return {
        "arms": {arm.key: _figures(results, arm, plan.base) for arm in plan.every},
        "pairs": {
            f"{mita.agents} agents, MiTa - {rival.name}": {
                column: {"mean": gap.mean.value, "half": gap.mean.half, "p": gap.p}
                for column in COLUMNS
                if (gap := results.difference(mita, rival, column)) is not None
            }
            for mita, rival in plan.pairs
        },
    }


def _figures(results: Results, arm: Arm, base: Arm | None) -> dict[str, Any]:
    cells = {
        column: {
            "steps": steps.value,
            "half": steps.half,
            "episodes": steps.n,
            "improvement": results.improvement(arm, base, column) if base else None,
            "paper": paper_steps(arm.name, arm.agents, column),
            "bound": results.bound(arm, column),
        }
        for column in COLUMNS
        if (steps := results.steps(arm, column)) is not None
    }
    return {
        "cells": cells,
        "over_bound": over.value if (over := results.over_bound(arm)) else None,
        "success": fmean(row["success"] for row in results.cell(arm)),
        **{name: results.count(arm, name) for name in COUNTED},
    }
