"""LoCoMo's tables and plots: recall, tokens and latency of the search, and F1 of the answers."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from langchain_core.messages import HumanMessage
from langchain_core.messages.utils import count_tokens_approximately
from matplotlib.axes import Axes

from mneme.cli.tables import Table
from mneme.evals.answering import Identity
from mneme.evals.chat.locomo_data import CATEGORIES, WHOLE, Conversation
from mneme.evals.report import Journal, Report, Row, draw, table
from mneme.models.asking.counting import NOTHING, added, in_words
from mneme.stores.ledger.query import Mode

MODES: tuple[Mode, ...] = ("dense", "bm25", "hybrid", "blend")
DEPTHS = (5, 10, 20)
DEPTH = 10
"""How many records the chatbot recalls."""
ADVERSARIAL = 5
RESAMPLES = 2000
TIMES = ("seconds_with_embedding", "seconds_without_embedding")


def report(
    conversations: Sequence[Conversation], journal: Journal, who: Identity, embedder: str, kept_by: str
) -> Report:
    """Make the report of a finished run; `kept_by` is who kept what was searched, empty for raw turns."""
    searches = {mode: _searched(_rows(journal, mode)) for mode in MODES}
    searches["blend"]["gain"] = _gains(_rows(journal, "blend"), _rows(journal, "bm25"))
    answers = _answered(_rows(journal, "answer"))
    part = f"{len(conversations)} of {WHOLE} conversations"
    answered_by = f"{embedder} (search), {who if who.is_model else 'nobody'} (answers)"
    plot = draw(
        journal.path.with_suffix(".png"),
        f"LoCoMo, {part}: evidence found among {'memories' if kept_by else 'raw turns'}",
        answered_by,
        partial(_plot_recall, searches),
        partial(_plot_latency, searches),
    )
    return Report(
        name="locomo",
        answered_by=answered_by,
        raw=journal.path,
        rows=journal.rows,
        summary={"part": part, "search": searches, "answers": answers},
        tables=[
            _recall_table(searches),
            _category_table(searches),
            _cost_table(searches),
            *_answer_tables(answers, who),
        ],
        plots=[plot],
        notes=[
            f"Part of the benchmark used: {part}.",
            *_kept_notes(_rows(journal, "kept"), _rows(journal, "dense"), kept_by),
            *_remembering_notes(_rows(journal, "remembered")),
            *_refused_notes(_rows(journal, "answer")),
            *_notes(conversations, searches, who),
        ],
    )


def tokens(texts: Iterable[str]) -> int:
    """Estimate what it costs to show texts to a model."""
    return count_tokens_approximately([HumanMessage(text) for text in texts])


def _rows(journal: Journal, what: str) -> list[Row]:
    return [row for row in journal.rows if row["case"].endswith(f"/{what}")]


def _searched(rows: Sequence[Row]) -> dict[str, Any]:
    """Return recall by category and depth, tokens by depth, and percentiles of the time."""
    groups = _groups(rows)
    return {
        "questions": {name: len(group) for name, group in groups.items()},
        "recall": {name: _recalls(group) for name, group in groups.items() if group},
        "tokens": {
            depth: float(np.mean([row["tokens"][n] for row in rows])) for n, depth in enumerate(DEPTHS)
        },
        "milliseconds": {time: _percentiles([row[time] for row in rows]) for time in TIMES},
    }


def _groups(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the questions that have evidence, by category and all of them."""
    with_evidence = [row for row in rows if row["evidence"]]
    groups = {name: [r for r in with_evidence if r["category"] == n] for n, name in CATEGORIES.items()}
    return groups | {"all": with_evidence}


def _gains(rows: Sequence[Row], others: Sequence[Row]) -> dict[str, dict[str, float]]:
    """Return by category how much more one search finds than another of the same questions' evidence."""
    theirs = {row["case"].rpartition("/")[0]: _recall(row, DEPTH) for row in others if row["evidence"]}
    return {
        name: _mean([_recall(row, DEPTH) - theirs[row["case"].rpartition("/")[0]] for row in group])
        for name, group in _groups(rows).items()
        if group
    }


def _recalls(rows: Sequence[Row]) -> dict[int, dict[str, float]]:
    return {depth: _mean([_recall(row, depth) for row in rows]) for depth in DEPTHS}


def _recall(row: Row, depth: int) -> float:
    evidence = set(row["evidence"])
    found = {turn for turns in row["found"][:depth] for turn in turns}
    return len(evidence & found) / len(evidence)


def _mean(values: Sequence[float]) -> dict[str, float]:
    """Return a mean over questions with its 95 % bootstrap interval (2000 resamples, seed 0)."""
    of = np.array(values)
    means = np.random.default_rng(0).choice(of, (RESAMPLES, len(of))).mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return {"mean": float(of.mean()), "low": float(low), "high": float(high)}


def _percentiles(seconds: Sequence[float]) -> dict[str, float]:
    p50, p95 = np.percentile(1000 * np.array(seconds), [50, 95])
    return {"p50": float(p50), "p95": float(p95)}


def _answered(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the mean score by category, and over all questions but the adversarial ones too."""
    groups = {name: [r for r in rows if r["category"] == n] for n, name in CATEGORIES.items()}
    groups["all but adversarial"] = [row for row in rows if row["category"] != ADVERSARIAL]
    groups["all"] = list(rows)
    return {
        name: {"questions": len(group), **_mean([row["score"] for row in group])}
        for name, group in groups.items()
        if group
    }


def _recall_table(searches: dict[Mode, dict[str, Any]]) -> Table:
    """Show recall over all questions at each depth."""
    rows = [
        [mode, *(_with_interval(searches[mode]["recall"]["all"][depth]) for depth in DEPTHS)]
        for mode in MODES
    ]
    return table("Evidence recall over all questions (%)", ["search", *(f"@{d}" for d in DEPTHS)], rows)


def _category_table(searches: dict[Mode, dict[str, Any]]) -> Table:
    """Show recall by category at the depth that the chatbot reads, and the default's gain over BM25."""
    of = searches["bm25"]
    rows = [
        [
            name,
            of["questions"][name],
            *(_with_interval(searches[mode]["recall"][name][DEPTH]) for mode in MODES),
            _with_interval(searches["blend"]["gain"][name], signed=True),
        ]
        for name in of["recall"]
    ]
    title = f"Evidence recall @{DEPTH} (%) by category, with 95 % intervals; the difference is paired"
    return table(title, ["category", "questions", *MODES, "blend − bm25"], rows)


def _with_interval(of: dict[str, float], *, signed: bool = False) -> str:
    sign = "+" if signed else ""
    low, high = (f"{100 * of[end]:{sign}.0f}" for end in ("low", "high"))
    return f"{100 * of['mean']:{sign}.1f} ({low} to {high})"


def _interval(of: dict[str, float]) -> str:
    return f"{100 * of['low']:.0f}–{100 * of['high']:.0f}"


def _cost_table(searches: dict[Mode, dict[str, Any]]) -> Table:
    times = [f"{p} {name}" for name in ("with embedding, ms", "without, ms") for p in ("p50", "p95")]
    columns = ["search", *(f"tokens @{depth}" for depth in DEPTHS), *times]
    rows = [
        [
            mode,
            *(f"{searches[mode]['tokens'][depth]:.0f}" for depth in DEPTHS),
            *(f"{searches[mode]['milliseconds'][time][p]:.1f}" for time in TIMES for p in ("p50", "p95")),
        ]
        for mode in MODES
    ]
    return table(f"Tokens found (mean, about) and time of a search to depth {DEPTHS[-1]}", columns, rows)


def _answer_tables(answers: dict[str, Any], who: Identity) -> list[Table]:
    rows = [[name, of["questions"], f"{100 * of['mean']:.1f}", _interval(of)] for name, of in answers.items()]
    title = f"Answers of {who}: LoCoMo's token F1; adversarial: share that declines the trap (%)"
    return [table(title, ["category", "questions", "score", "95 %"], rows)] if rows else []


def _kept_notes(rows: Sequence[Row], asked: Sequence[Row], kept_by: str) -> list[str]:
    """Say what was searched where it was not the turns, and how much of the evidence is in it."""
    if not kept_by:
        return []
    memories = sum(row["memories"] for row in rows)
    behind = {row["case"].rpartition("/")[0]: set(row["turns"]) for row in rows}
    evidence = [(behind[row["case"].rsplit("/", 2)[0]], row["evidence"]) for row in asked if row["evidence"]]
    most = np.mean([len(turns.intersection(each)) / len(each) for turns, each in evidence])
    return [
        f"Searched are {memories} memories kept by {kept_by}.",
        f"A memory counts as the turns that it came from; {most:.0%} of the evidence is behind any memory, "
        "so no search finds more.",
        "A question is put to the memories of the speakers that it names, of which adversarial ones name the "
        "wrong one.",
    ]


def _remembering_notes(rows: Sequence[Row]) -> list[str]:
    """Say what remembering the turns cost, and how many could not be remembered."""
    if not rows:
        return []
    asked = NOTHING
    for row in rows:
        asked = added(asked, row["asked"])
    return [
        f"Remembering {len(rows)} turns took {in_words(asked)}",
        f"That was {asked['prompt_tokens']} tokens of prompts and {asked['reply_tokens']} of replies in "
        f"{sum(row['seconds'] for row in rows):.0f} s. {sum(bool(row['failed']) for row in rows)} turns "
        "could not be remembered.",
    ]


def _refused_notes(rows: Sequence[Row]) -> list[str]:
    refused = sum("refused" in row for row in rows)
    return [f"{refused} of {len(rows)} questions got no usable answer, and count as 0."] if refused else []


def _notes(
    conversations: Sequence[Conversation], searches: dict[Mode, dict[str, Any]], who: Identity
) -> list[str]:
    questions = sum(len(conversation.questions) for conversation in conversations)
    turns = sum(len(conversation.turns) for conversation in conversations)
    used = searches["dense"]["questions"]["all"]
    whole = [tokens(turn.wording for turn in conversation.turns) for conversation in conversations]
    notes = [
        f"{turns} turns of {len(conversations)} conversations; recall over {used} of {questions} questions: "
        f"{questions - used} name no evidence that is in the conversation."
    ]
    notes.append(f"For comparison, the full context: a conversation has about {np.mean(whole):.0f} tokens.")
    if not who.is_model:
        notes.append("Answers are not scored: no language model answers, and rules do not stand for one.")
    return notes


def _plot_recall(searches: dict[Mode, dict[str, Any]], axes: Axes) -> None:
    for mode in MODES:
        recall = [searches[mode]["recall"]["all"][depth] for depth in DEPTHS]
        middle = [100 * of["mean"] for of in recall]
        below = [100 * (of["mean"] - of["low"]) for of in recall]
        above = [100 * (of["high"] - of["mean"]) for of in recall]
        axes.errorbar(DEPTHS, middle, yerr=[below, above], marker="o", capsize=3, label=mode)
    axes.set_xlabel("turns found (k)")
    axes.set_ylabel("evidence recall at k (%), 95 % bootstrap interval")
    axes.set_xticks(DEPTHS)
    axes.set_ylim(0, 100)
    axes.legend()


def _plot_latency(searches: dict[Mode, dict[str, Any]], axes: Axes) -> None:
    """Draw p50 as a bar and p95 as the end of its whisker, with and without embedding."""
    width = 0.4
    for n, time in enumerate(TIMES):
        figures = [searches[mode]["milliseconds"][time] for mode in MODES]
        p50 = [of["p50"] for of in figures]
        over = [of["p95"] - of["p50"] for of in figures]
        places = [place + width * (n - 0.5) for place in range(len(MODES))]
        label = time.removeprefix("seconds_").replace("_", " ")
        axes.bar(places, p50, width, yerr=[[0.0] * len(p50), over], capsize=3, label=label)
    axes.set_xticks(range(len(MODES)), MODES)
    axes.set_ylabel("time of a search (ms): p50, whisker to p95")
    axes.legend()
