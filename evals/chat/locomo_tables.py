"""LoCoMo's tables and plot: recall, tokens and time of the search, and F1 of the answers."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from langchain_core.messages import HumanMessage
from langchain_core.messages.utils import count_tokens_approximately
from matplotlib.axes import Axes

from mneme.api.tables import Table
from mneme.evals.chat.locomo_data import LOCOMO_CONVERSATIONS, QUESTION_CATEGORIES, Conversation
from mneme.evals.measuring import interval_of_mean
from mneme.evals.options import Identity
from mneme.evals.report import Journal, Report, Row, framed, table
from mneme.models.asking.counting import NOTHING, in_words, sum_counts
from mneme.stores.ledger.query import Mode

SEARCH_MODES: tuple[Mode, ...] = ("dense", "bm25", "hybrid", "blend")
DEPTHS = (5, 10, 20)
CHATBOT_DEPTH = 10
"""Number of records that the chatbot recalls."""


def report(
    conversations: Sequence[Conversation], journal: Journal, who: Identity, embedder: str, kept_by: str
) -> Report:
    """Return the report of a finished run; `kept_by` made the searched memories, empty for raw turns."""
    searched = pd.DataFrame(_measured(mode, row) for mode in SEARCH_MODES for row in _rows(journal, mode))
    searches: dict[str, Any] = {mode: _figures(searched[searched["mode"] == mode]) for mode in SEARCH_MODES}
    recall = searched.pivot(index=["question", "category"], columns="mode", values=f"recall {CHATBOT_DEPTH}")
    gain = (recall["blend"] - recall["bm25"]).dropna()  # paired: both searched for the same questions
    searches["blend"]["gain"] = {name: _spread(own) for name, own in _by_category(gain)}
    asked = _rows(journal, "answer")
    answers, refused = _answered(asked), sum("refused" in row for row in asked)
    answered = table(
        f"Answers of {who}: LoCoMo's token F1; adversarial: share that declines the trap (%)",
        ["category", "questions", "score, 95 %"],
        [[name, of["questions"], _cell(of)] for name, of in answers.items()],
    )
    part = f"{len(conversations)} of {LOCOMO_CONVERSATIONS} conversations"
    answered_by = f"{embedder} (search), {who if who.is_model else 'nobody'} (answers)"
    title = f"LoCoMo, {part}: evidence found among {'memories' if kept_by else 'raw turns'}"
    return journal.report(
        answered_by,
        {"part": part, "search": searches, "answers": answers},
        [*_search_tables(searches), *([answered] if answers else [])],
        [
            f"Part of the benchmark used: {part}.",
            *_kept_notes(_rows(journal, "kept"), _rows(journal, "dense"), kept_by),
            *_remembering_notes(_rows(journal, "remembered")),
            *[f"{refused} of {len(asked)} questions got no usable answer, and count as 0."] * bool(refused),
            *_notes(conversations, searches, who),
        ],
    ).with_plots(title, partial(_plot_recall, searches))


def tokens(texts: Iterable[str]) -> int:
    """Estimate what it costs to show texts to a model."""
    return count_tokens_approximately([HumanMessage(text) for text in texts])


def _rows(journal: Journal, what: str) -> list[Row]:
    return [row for row in journal.rows if row["case"].endswith(f"/{what}")]


def _measured(mode: str, row: Row) -> Row:
    """Return recall of a question's evidence by depth (nan where it has none), tokens and times."""
    evidence = set(row["evidence"])
    found = {depth: {turn for turns in row["found"][:depth] for turn in turns} for depth in DEPTHS}
    recall = {depth: len(evidence & found[depth]) / len(evidence) if evidence else np.nan for depth in DEPTHS}
    return {
        "mode": mode,
        "question": row["case"].rpartition("/")[0],
        "category": QUESTION_CATEGORIES[row["category"]],
        **{f"recall {depth}": recall[depth] for depth in DEPTHS},
        **{f"tokens {depth}": row["tokens"][n] for n, depth in enumerate(DEPTHS)},
        "ms": 1000 * row["seconds"],
    }


def _figures(searched: pd.DataFrame) -> Row:
    """Return recall by category and depth, tokens by depth, and percentiles of the time."""
    with_evidence = searched.dropna(subset=[f"recall {CHATBOT_DEPTH}"]).set_index("category")
    groups = dict(_by_category(with_evidence))
    return {
        "questions": {name: len(own) for name, own in groups.items()},
        "recall": {
            name: {depth: _spread(own[f"recall {depth}"]) for depth in DEPTHS} for name, own in groups.items()
        },
        "tokens": {depth: float(searched[f"tokens {depth}"].mean()) for depth in DEPTHS},
        "milliseconds": {f"p{each}": float(np.percentile(searched["ms"], each)) for each in (50, 95)},
    }


def _by_category(rows: Any) -> Iterator[tuple[str, Any]]:
    """Yield the rows of each non-empty category, then all rows."""
    found = rows.index.get_level_values("category")
    yield from ((name, rows[found == name]) for name in QUESTION_CATEGORIES.values() if name in found)
    yield "all", rows


def _spread(values: Any) -> dict[str, float]:
    """Return a mean over questions with its 95 % bootstrap interval."""
    low, high = interval_of_mean(values)
    return {"mean": float(np.mean(values)), "low": low, "high": high}


def _answered(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the mean score by category, over all, and over all questions but the adversarial ones."""
    if not rows:
        return {}
    scores = pd.Series([row["score"] for row in rows], [QUESTION_CATEGORIES[row["category"]] for row in rows])
    scores.index.name = "category"
    groups = dict(_by_category(scores))
    others = scores[scores.index != QUESTION_CATEGORIES[5]]  # adversarial ones are scored 0 or 1, not by F1
    groups |= {"all but adversarial": others} if len(others) else {}
    return {name: {"questions": len(own), **_spread(own)} for name, own in groups.items()}


def _search_tables(searches: dict[str, Any]) -> list[Table]:
    """Show recall by depth and by category, the default's gain over BM25, and the cost of a search."""
    by_depth = {
        mode: {f"@{n}": _cell(of["recall"]["all"][n]) for n in DEPTHS} for mode, of in searches.items()
    }
    by_category = {
        name: {"questions": count}
        | {mode: _cell(of["recall"][name][CHATBOT_DEPTH]) for mode, of in searches.items()}
        | {"blend − bm25": _cell(searches["blend"]["gain"][name], "+")}
        for name, count in searches["bm25"]["questions"].items()
    }
    costs = {
        mode: {f"tokens @{depth}": f"{count:.0f}" for depth, count in of["tokens"].items()}
        | {f"{name}, ms": f"{each:.1f}" for name, each in of["milliseconds"].items()}
        for mode, of in searches.items()
    }
    titles = (
        "Evidence recall over all questions (%)",
        f"Evidence recall @{CHATBOT_DEPTH} (%) by category, with 95 % intervals; the difference is paired",
        f"Tokens found (mean, about) and time of a search to depth {DEPTHS[-1]}",
    )
    frames = [pd.DataFrame.from_dict(each, orient="index") for each in (by_depth, by_category, costs)]
    names = ("search", "category", "search")
    return [
        framed(title, each.rename_axis(name)) for title, each, name in zip(titles, frames, names, strict=True)
    ]


def _cell(of: dict[str, float], sign: str = "") -> str:
    low, high = (f"{100 * of[end]:{sign}.0f}" for end in ("low", "high"))
    return f"{100 * of['mean']:{sign}.1f} ({low} to {high})"


def _kept_notes(rows: Sequence[Row], asked: Sequence[Row], kept_by: str) -> list[str]:
    """Describe the searched memories, if they are not the turns, and their share of the evidence."""
    if not kept_by:
        return []
    behind = {row["case"].rpartition("/")[0]: set(row["turns"]) for row in rows}
    evidence = [(behind[row["case"].rsplit("/", 2)[0]], row["evidence"]) for row in asked if row["evidence"]]
    most = np.mean([len(turns.intersection(each)) / len(each) for turns, each in evidence])
    return [
        f"Searched are {sum(row['memories'] for row in rows)} memories kept by {kept_by}.",
        f"A memory counts as the turns that it came from; {most:.0%} of the evidence is behind any memory, "
        "so no search finds more.",
    ]


def _remembering_notes(rows: Sequence[Row]) -> list[str]:
    """Describe the cost of remembering the turns, and the number of failures."""
    if not rows:
        return []
    asked = NOTHING
    for row in rows:
        asked = sum_counts(asked, row["asked"])
    return [
        f"Remembering {len(rows)} turns took {in_words(asked)}",
        f"That was {asked['prompt_tokens']} tokens of prompts and {asked['reply_tokens']} of replies in "
        f"{sum(row['seconds'] for row in rows):.0f} s. {sum(bool(row['failed']) for row in rows)} turns "
        "could not be remembered.",
    ]


def _notes(conversations: Sequence[Conversation], searches: dict[str, Any], who: Identity) -> list[str]:
    questions = sum(len(conversation.questions) for conversation in conversations)
    turns = sum(len(conversation.turns) for conversation in conversations)
    used = searches["dense"]["questions"]["all"]
    whole = [tokens(turn.wording for turn in conversation.turns) for conversation in conversations]
    notes = [
        f"{turns} turns of {len(conversations)} conversations; recall over {used} of {questions} questions: "
        f"{questions - used} name no evidence that is in the conversation.",
        f"For comparison, the full context: a conversation has about {np.mean(whole):.0f} tokens.",
    ]
    if not who.is_model:
        notes.append("Answers are not scored: no language model answers, and rules do not stand for one.")
    return notes


def _plot_recall(searches: dict[str, Any], axes: Axes) -> None:
    for mode in SEARCH_MODES:
        recall = pd.DataFrame(searches[mode]["recall"]["all"]).T * 100
        errors = [recall["mean"] - recall["low"], recall["high"] - recall["mean"]]
        axes.errorbar(DEPTHS, recall["mean"], yerr=errors, marker="o", capsize=3, label=mode)
    axes.set(xlabel="turns found (k)", ylabel="evidence recall at k (%), 95 %", xticks=DEPTHS, ylim=(0, 100))
    axes.legend()
