"""Judges of the case study's designs: one by one, by our question and by figure 6's, and blind in pairs.

A pair is a design without intrinsic memory and one with it, of the same repetition; it is shown in both
orders, and nothing says which is which. A design wins where it is preferred in both; where the same place is
preferred in both, the judge went by the place: that share is the position bias.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Literal

from scipy.stats import binomtest

from mneme.cli.tables import Table
from mneme.evals.answering import Identity
from mneme.evals.discussion.judges import Design, Pair, compare_designs, judge_as_printed, judge_design
from mneme.evals.discussion.pipeline_design_tables import ARMS, Arm
from mneme.evals.report import Row, table
from mneme.library.teams.team import Team
from mneme.models.asking.asking import ask

Wording = Literal["ours", "printed"]
ORDERS = (ARMS, ARMS[::-1])
OUTCOMES = ("intrinsic", "none", "first place", "second place", "undecided")


async def judged(held: Row, team: Team, judge: Identity, wordings: Sequence[Wording]) -> Row:
    """Judge a design by our question, and by figure 6's where it is asked for, each score justified."""
    parts = team.document
    design = Design(
        document=_shown(held),
        report="\n\n".join(f"{name}: {text}" for name, text in held["report"].items()),
        specification=[*parts.fields, f"{parts.item} 1", *parts.ratings, *parts.item_fields],
    )
    ours = await ask(judge_design, design, judge.responder, lane="background")
    found: Row = {"judgement": ours.value.model_dump(), "judged_by": ours.responder}
    if "printed" in wordings:
        printed = await ask(judge_as_printed, design, judge.responder, lane="background")
        found["printed"] = printed.value.model_dump()
    return found


async def compared(task: str, designs: Mapping[Arm, Row], judge: Identity) -> Row:
    """Compare the two designs of a repetition, by arm, in both orders; return what was preferred."""
    preferred: list[str] = []
    for first, second in ORDERS:
        pair = Pair(task=task, first=_shown(designs[first]), second=_shown(designs[second]))
        answer = (await ask(compare_designs, pair, judge.responder, lane="background")).value
        preferred.append(answer.better)
    return {"preferred": preferred, "outcome": outcome(preferred)}


def outcome(preferred: Sequence[str]) -> str:
    """Return which arm, or which place, two answers to the same pair in both orders prefer."""
    if "neither" in preferred:
        return "undecided"
    if preferred[0] == preferred[1]:
        return f"{preferred[0]} place"
    return "none" if preferred[0] == "first" else "intrinsic"


def _shown(held: Row) -> str:
    return json.dumps(held["document"], indent=1, ensure_ascii=False)


def tallied(rows: Sequence[Row]) -> Row:
    """Count the outcomes, with the sign test's p and the share that went by the place."""
    counts = {name: sum(row["outcome"] == name for row in rows) for name in OUTCOMES}
    decided = counts["intrinsic"] + counts["none"]
    by_place = counts["first place"] + counts["second place"]
    return {
        **counts,
        "pairs": len(rows),
        "p": float(binomtest(counts["intrinsic"], decided).pvalue) if decided else None,
        "position_bias": by_place / len(rows) if rows else 0.0,
    }


def pair_table(pairs: Mapping[Wording, Row]) -> Table:
    """Return what was preferred, by the wording of the task."""
    columns = (
        "task",
        "pairs",
        "intrinsic",
        "baseline",
        "first place",
        "second place",
        "undecided",
        "p",
        "bias",
    )
    lines = [
        (
            wording,
            each["pairs"],
            *(each[name] for name in OUTCOMES),
            each["p"],
            f"{each['position_bias']:.2f}",
        )
        for wording, each in pairs.items()
    ]
    return table("Blind pairs, each in both orders: which design is better", columns, lines)


def judge_table(rows: Sequence[Row], metrics: Sequence[str]) -> Table:
    """Return the means of both judges, by the wording of the task, both arms beside each other."""
    wordings = sorted({row["wording"] for row in rows})
    cells = [
        [metric, *(_means(rows, wording, judge, metric) for wording, judge in product(wordings, JUDGES))]
        for metric in metrics
    ]
    columns = ["", *(f"task {wording}, {said}" for wording, said in product(wordings, JUDGES.values()))]
    return table("Both judges: mean without → with intrinsic memory", columns, cells)


JUDGES = {"judgement": "our judge", "printed": "figure 6"}


def _means(rows: Sequence[Row], wording: str, judge: str, metric: str) -> str:
    scores = {
        arm: [row[judge][metric]["score"] for row in rows if (row["arm"], row["wording"]) == (arm, wording)]
        for arm in ARMS
    }
    return " → ".join(f"{sum(each) / len(each):.2f}" for each in scores.values())
