"""The household evaluation's notes: what its figures mean, and where they do not say what they seem to."""

from evals.household_arms import LAPSES, Arm, Lineup
from evals.household_figures import AVERAGE, CLEAR, COLUMNS, Difference, Played
from evals.household_paper import CATEGORIES
from evals.household_plots import AIM

TUNED_ON = (range(21), range(501, 507), range(1001, 1006), range(2000, 2031))
"""Seeds of generated episodes that were looked at while the rules were tuned."""
COUNTED_NOTE = (
    "Conflicts and redundant visits are counted in what is decided (MiTa's manager refuses conflicts, so "
    "that 0 is by construction); steps lost, since another agent was first, and plans forestalled, since "
    "another had taken or moved the thing, are what the world measured."
)
COELA_NOTE = (
    "CoELA's rules weigh a message by constants set by hand; over 30 earlier episodes sending bought nothing "
    "measurable (36.7 steps, never sending 37.3; paired +0.5 ± 2.9)."
)
CLEAR_NOTE = (
    "Clear: the 95 % interval of the paired difference leaves 0 out, or Wilcoxon's test agrees with "
    f"p < {CLEAR}; no correction for the number of comparisons."
)


def notes_of(played: Played, lineup: Lineup, *, has_model: bool) -> list[str]:
    """Say what bears on reading the tables."""
    notes = [
        "A symbolic world after measured rules, with the oracle's bound as its limit: compare differences "
        "between methods; the paper's cells were played in Unity by GPT-4o.",
        *_seeds_note(played),
        *_categories_note(played),
        _placed_note(played),
        _bound_note(played),
        *_aim_notes(played, lineup),
        *_opened_note(played, lineup),
        *_window_notes(played, lineup),
        *([CLEAR_NOTE] if lineup.pairs else []),
        COUNTED_NOTE,
    ]
    if lineup.weaker and lineup.weaker[-1].is_weakened:
        notes.append(
            f"Figure 3b under rules: of a weaker role's decisions {LAPSES:.0%} go to a possible action drawn "
            "at random; name a model with --weak-model to have it instead."
        )
        notes += _members_note(played, lineup)
    if not has_model:
        notes += [COELA_NOTE] if any(arm.method == "CoELA" for arm in lineup.arms) else []
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
    """Say where MiTa is clearly ahead of a rival, where on average only, and where it is not."""
    where: dict[str, list[str]] = {}
    for column in COLUMNS:
        gap = played.difference(mita, rival, column)
        if gap is not None:
            where.setdefault(_standing(gap), []).append("all together" if column == AVERAGE else column)
    said = "; ".join(f"{standing}: {', '.join(columns)}" for standing, columns in where.items())
    return f"MiTa, {mita.agents} agents, against {rival.name}: {said}."


def _standing(gap: Difference) -> str:
    if not gap.mean.value:
        return "level"
    side = "ahead" if gap.mean.value < 0 else "behind"
    return f"clearly {side}" if gap.is_clear else f"{side} on average, not clear"


def _seeds_note(played: Played) -> list[str]:
    """Say whether generated episodes are other ones than those that the rules were tuned on."""
    seeds = sorted({row["seed"] for row in played.rows if row["seed"] is not None})
    if not seeds:
        return []
    tuned = sum(any(seed in each for each in TUNED_ON) for seed in seeds)
    looked_at = ", ".join(f"{each.start} to {each.stop - 1}" for each in TUNED_ON)
    which = f"{tuned} of these {len(seeds)} are among them" if tuned else "none of these is among them"
    return [
        f"Episodes of the seeds {seeds[0]} to {seeds[-1]}; the rules were tuned on seeds {looked_at}: "
        f"{which}."
    ]


def _categories_note(played: Played) -> list[str]:
    """Say which episodes no column but the average shows."""
    strange = {row["episode"]: row["category"] for row in played.rows if row["category"] not in CATEGORIES}
    if not strange:
        return []
    named = ", ".join(sorted(set(strange.values())))
    return [f"{len(strange)} episodes are of no category of the paper ({named}): only Average counts them."]


def _opened_note(played: Played, lineup: Lineup) -> list[str]:
    """Say how much of the way to the bound is finding and opening what is closed."""
    if lineup.mita is None or lineup.opened is None:
        return []
    closed, opened = played.over_bound(lineup.mita), played.over_bound(lineup.opened)
    if closed is None or opened is None:
        return []
    return [
        "Where the gap to the oracle comes from: with every container open from the start the same MiTa "
        f"takes {opened:.2f} × the bound of the closed episode, against {closed:.2f}; what lies between is "
        "finding and opening closed containers, which the oracle need not search."
    ]


def _window_notes(played: Played, lineup: Lineup) -> list[str]:
    """Say what the summary is worth at each window, and that the window decides it."""
    gaps = [(whole.window, played.difference(without, whole)) for whole, without in lineup.windows]
    told = [
        f"{gap.mean:+.1f} steps at window {window}{_doubt(gap)}" for window, gap in gaps if gap is not None
    ]
    if not told:
        return []
    return [
        "The window (latest steps that members report themselves; the paper names none) decides what the "
        f"summary is worth: without it {', '.join(told)}. All other rows: window {gaps[-1][0]}."
    ]


def _doubt(gap: Difference) -> str:
    return "" if gap.is_clear else " (not clear)"
