"""The household evaluation's notes: what its figures mean, and what they do not show."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from mneme.evals.household.arms import LAPSES, Arm, Plan
from mneme.evals.household.paper import CATEGORIES
from mneme.evals.household.plots import AIM
from mneme.evals.household.results import AVERAGE, CLEAR, COLUMNS, Difference, Results, name_of

TUNED_ON = (
    range(21),
    range(501, 507),
    range(1001, 1032),
    range(2000, 2031),
    range(3000, 3010),
    range(5000, 5014),
)
"""Seeds of generated episodes that were looked at while the rules were tuned."""
COUNTED_NOTE = (
    "Conflicts and redundant visits are counted in what is decided (MiTa's manager refuses conflicts, so "
    "that they are always 0); steps lost, since another agent was first, and plans forestalled, since "
    "another had taken or moved the thing, are what the world measured."
)
COELA_NOTE = (
    "CoELA's rules weigh a message by constants set by hand; over 30 earlier episodes sending made no "
    "measurable difference (36.7 steps, never sending 37.3; paired +0.5 ± 2.9)."
)
CLEAR_NOTE = (
    "Clear: the 95 % interval of the paired difference leaves 0 out, or Wilcoxon's test agrees with "
    f"p < {CLEAR}; no correction for the number of comparisons."
)


EYES_NOTE = (
    "The visual setting: frames of simple shapes, 90 degrees wide; the bound is of who knows where all lies, "
    "and turning to look costs a step."
)


def notes_of(results: Results, plan: Plan, *, has_model: bool, others: Sequence[Results] = ()) -> list[str]:
    """Say what bears on reading the tables."""
    notes = [
        "A world of our own after measured rules, with the oracle's bound as its limit: compare differences "
        "between methods; the paper's cells were played in Unity by GPT-4o.",
        *([EYES_NOTE] if any(arm.setting == "visual" for arm in plan.arms) else []),
        *_seeds_note(results),
        *_categories_note(results),
        _placed_note(results),
        _bound_note(results),
        *(note for each in (results, *others) for note in _aim_notes(each, plan)),
        *_lead_notes([results, *others], plan),
        *_lesson_note(plan),
        *_opened_note(results, plan),
        *_window_notes(results, plan),
        *([CLEAR_NOTE] if plan.pairs else []),
        COUNTED_NOTE,
    ]
    if plan.weaker and plan.weaker[-1].is_weakened:
        notes.append(
            f"Figure 3b under rules: of a weaker role's decisions {LAPSES:.0%} go to a random action that "
            "is kept until it is done; name a model with --weak-model to have it instead. A lapse that lasts "
            "one round costs little, since every round decides anew for all: hence the kinds."
        )
        notes += _members_note(results, plan)
    if not has_model:
        notes += [COELA_NOTE] if any(arm.method == "CoELA" for arm in plan.arms) else []
        notes.append("Answered by rules: the figures show the mechanisms, not a language model.")
    return notes


def _members_note(results: Results, plan: Plan) -> list[str]:
    """Say why weaker members cost nothing, where they do."""
    gap = results.difference(plan.weaker[1], plan.weaker[0])
    if gap is None or gap.ahead or gap.behind:
        return []
    return [
        "Weaker members change nothing under rules: the manager's rule weighs every possible action of every "
        "member itself, so that a proposal tells it nothing that the reports do not."
    ]


def _placed_note(results: Results) -> str:
    placed = [place for row in results.rows for place in row["placed"]]
    seeded = sum(place != "recorded" for place in placed)
    if not any(place == "recorded" for place in placed):
        return "Generated episodes: every start is placed by their seed."
    return (
        f"{seeded} of {len(placed)} starts are not recorded (the third agent's) and placed by a seeded rule."
    )


def _bound_note(results: Results) -> str:
    solved = {
        (row["episode"], row["agents"]): (row["optimum"], row["bound"])
        for row in results.rows
        if row.get("optimum")
    }
    if not solved:
        return "The bound knows everything at once; no episode was small enough to say how near it is."
    exact = sum(best == least for best, least in solved.values())
    over = fmean(best / least for best, least in solved.values())
    return (
        "The bound knows everything at once, and is a relaxation. Of the small episodes (at most 3 things), "
        f"{len(solved)} were solved exactly for a team that knows everything: {over:.2f} × the bound on "
        f"average, and as many steps as the bound in {exact}."
    )


def _aim_notes(results: Results, plan: Plan) -> list[str]:
    """Say in which categories MiTa is ahead of each rival, and how far from the bound it is."""
    mita = plan.mita
    if mita is None:
        return []
    notes = [_ahead(results, mita, rival) for one, rival in plan.pairs if one == mita]
    for arm in (mita, replace(mita, taught=True)):
        over = results.over_bound(arm)
        if over is not None:
            verdict = "within" if over.value <= AIM else "not within"
            who = f"{arm.name}, {mita.agents} agents, {name_of(results)}"
            notes.append(f"{who}: {over:.2f} × the bound on average, {verdict} {AIM}.")
    return notes


def _lead_notes(sources: Sequence[Results], plan: Plan) -> list[str]:
    """Say by how much MiTa leads each rival, on each source: a lead on one need not hold on another."""
    return [
        f"{one.agents} agents, lead of {one.name} over {rival.name}: {'; '.join(said)}."
        for one, rival in plan.pairs
        if rival.method != "MiTa"
        if (said := [each for results in sources if (each := _lead(results, one, rival))])
    ]


def _lead(results: Results, one: Arm, rival: Arm) -> str:
    mine, theirs = results.steps(one), results.steps(rival)
    if mine is None or theirs is None:
        return ""
    lead = 1 - mine.value / theirs.value
    return f"{lead:+.0%} on {name_of(results)} ({mine.value:.1f} steps, {theirs.value:.1f})"


def _lesson_note(plan: Plan) -> list[str]:
    if not any(arm.taught for arm in plan.arms):
        return []
    return [
        "Taught teams know where things of each class turned up in lessons: episodes of other seeds. "
        "What is generated hides things as five recorded C-WAH episodes did (environments/household/"
        "generator.py), so that a taught team on those is not free of what it is measured on."
    ]


def _ahead(results: Results, mita: Arm, rival: Arm) -> str:
    """Say where MiTa is clearly ahead of a rival, where on average only, and where it is not."""
    where: dict[str, list[str]] = {}
    for column in COLUMNS:
        gap = results.difference(mita, rival, column)
        if gap is not None:
            where.setdefault(_standing(gap), []).append("all together" if column == AVERAGE else column)
    said = "; ".join(f"{standing}: {', '.join(columns)}" for standing, columns in where.items())
    return f"MiTa, {mita.agents} agents, against {rival.name}, {name_of(results)}: {said}."


def _standing(gap: Difference) -> str:
    if not gap.mean.value:
        return "level"
    side = "ahead" if gap.mean.value < 0 else "behind"
    return f"clearly {side}" if gap.is_clear else f"{side} on average, not clear"


def _seeds_note(results: Results) -> list[str]:
    """Say whether generated episodes are other ones than those that the rules were tuned on."""
    seeds = sorted({row["seed"] for row in results.rows if row["seed"] is not None})
    if not seeds:
        return []
    tuned = sum(any(seed in each for each in TUNED_ON) for seed in seeds)
    looked_at = ", ".join(f"{each.start} to {each.stop - 1}" for each in TUNED_ON)
    which = f"{tuned} of these {len(seeds)} are among them" if tuned else "none of these is among them"
    return [
        f"Episodes of the seeds {seeds[0]} to {seeds[-1]}; the rules were tuned on seeds {looked_at}: "
        f"{which}."
    ]


def _categories_note(results: Results) -> list[str]:
    """Say which episodes no column but the average shows."""
    strange = {row["episode"]: row["category"] for row in results.rows if row["category"] not in CATEGORIES}
    if not strange:
        return []
    named = ", ".join(sorted(set(strange.values())))
    return [f"{len(strange)} episodes are of no category of the paper ({named}): only Average counts them."]


def _opened_note(results: Results, plan: Plan) -> list[str]:
    """Say how much of the way to the bound is finding and opening what is closed."""
    if plan.mita is None or plan.opened is None:
        return []
    closed, opened = results.over_bound(plan.mita), results.over_bound(plan.opened)
    if closed is None or opened is None:
        return []
    return [
        "Where the gap to the oracle comes from: with every container open from the start the same MiTa "
        f"takes {opened:.2f} × the bound of the closed episode, against {closed:.2f}; what lies between is "
        "finding and opening closed containers, which the oracle need not search."
    ]


def _window_notes(results: Results, plan: Plan) -> list[str]:
    """Say what the summary is worth at each window, and that the window decides it."""
    gaps = [(whole.window, results.difference(without, whole)) for whole, without in plan.windows]
    differences = [
        f"{gap.mean:+.1f} steps at window {window}{_doubt(gap)}" for window, gap in gaps if gap is not None
    ]
    if not differences:
        return []
    return [
        "The window (latest steps that members report themselves; the paper names none) decides what the "
        f"summary is worth: without it {', '.join(differences)}. All other rows: window {gaps[-1][0]}."
    ]


def _doubt(gap: Difference) -> str:
    return "" if gap.is_clear else " (not clear)"
