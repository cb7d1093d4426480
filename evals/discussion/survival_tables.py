"""What survived, in tables: facts in the next context and right answers, by memory and by the turns since."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from matplotlib.axes import Axes

from mneme.cli.tables import Table
from mneme.evals.answering import Identity
from mneme.evals.measuring import p_cell, wilcoxon_p
from mneme.evals.report import Report, Row, draw, table

READERS = (
    "intrinsic, all memories",
    "intrinsic",
    "one shared memory",
    "one summary",
    "another agent's",
    "empty template",
    "newest turns",
    "whole conversation",
)
"""The writer's view of all agents' memories first; the last is not bounded: all that there was to know."""
BOUNDED = READERS[:-1]
GRID = ("model", "kind", "roles", "template")
RULES = (
    "Rules remember by the words of slots, and where a memory is full they drop what is "
    "oldest; the rule that sums up keeps what is newest. They answer only what they can quote: `right` says "
    "hardly more than whether the facts were there. `--agents ollama:MODEL` measures all of it with a model."
)


def report(
    rows: list[Row], models: Sequence[Identity], context_tokens: int, memory_tokens: int, raw: Path
) -> Report:
    """Make the tables, the plot and the summary of measured puzzles."""
    answered_by = ", ".join(map(str, models))
    groups = {key: list(found) for key, found in groupby(sorted(rows, key=_key), _key)}
    summary = {_name(key): summarise(found) for key, found in groups.items()}
    title = f"Facts in the next context, {context_tokens} tokens, memories of {memory_tokens}"
    first = {
        key[1]: figures for key, figures in zip(reversed(groups), reversed(summary.values()), strict=True)
    }
    plots = [_plotted(kind, figures) for kind, figures in first.items()]
    tables = [_table(name, figures) for name, figures in summary.items()]
    return Report(
        name="information_survival",
        answered_by=answered_by,
        raw=raw,
        rows=rows,
        summary=summary,
        tables=[*tables, _apart(summary)],
        plots=[draw(raw.with_suffix(".png"), title, answered_by, *plots)],
        notes=_notes(rows, summary, models),
    )


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in GRID)


def _name(key: Sequence[Any]) -> str:
    model, kind, roles, template = key
    return f"{kind.replace('_', ' ')}, {roles} agents, {template.replace('_', ' ')} template, {model}"


def summarise(rows: Sequence[Row]) -> Row:
    """Return by turn and memory the means over puzzles, and by turn how far memories are apart."""
    turns = [look["turn"] for look in rows[0]["apart"]]
    there = {look["arm"] for look in rows[0]["looks"]}
    readers = [reader for reader in READERS if reader in there]
    figures = {
        str(turn): {
            name: _figures(_looks(rows, turn, name), _looks(rows, turn, "newest turns")) for name in readers
        }
        for turn in turns
    }
    apart = {
        str(turn): {
            name: _mean(each[name] for row in rows for each in row["apart"] if each["turn"] == turn)
            for name in ("divergence", "role_kept", "own_facts")
        }
        for turn in turns
    }
    tokens = {
        name: fmean(row["costs"][name]["prompt_tokens"] + row["costs"][name]["reply_tokens"] for row in rows)
        for name in rows[0]["costs"]
    }
    return {"puzzles": len(rows), "by_turn": figures, "apart": apart, "tokens_of_remembering": tokens}


def _looks(rows: Sequence[Row], turn: int, reader: str) -> list[Row]:
    return [look for row in rows for look in row["looks"] if look["turn"] == turn and look["arm"] == reader]


def _figures(looks: Sequence[Row], newest: Sequence[Row]) -> Row:
    held = [fmean(look["facts"]) for look in looks]
    differences = [
        fmean(look["facts"]) - fmean(other["facts"]) for look, other in zip(looks, newest, strict=True)
    ]
    answers = [answer for look in looks for answer in look["answers"]]
    verdicts = {
        name: fmean(answer["verdict"] == name for answer in answers)
        for name in ("right", "wrong", "abstained", "unusable")
    }
    return {
        "facts": fmean(held),
        "facts_sd": stdev(held) if len(held) > 1 else 0.0,
        "p": wilcoxon_p(differences),
        "own": _mean(look["own"] for look in looks),
        "others": _mean(look["others"] for look in looks),
        "there": fmean(answer["there"] for answer in answers),
        "right_and_there": fmean(answer["there"] and answer["verdict"] == "right" for answer in answers),
        "tokens": fmean(look["tokens"] for look in looks),
        "turns_shown": fmean(look["turns_shown"] for look in looks),
        **verdicts,
    }


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _table(name: str, figures: Row) -> Table:
    columns = ("turn", "shown", "facts", "own", "others'", "p", "needed", "right", "wrong")
    lines = [
        (turn, reader, *_cells(by_reader[reader]))
        for turn, by_reader in figures["by_turn"].items()
        for reader in by_reader
    ]
    return table(f"{name.capitalize()}: shares, {figures['puzzles']} puzzles", columns, lines)


def _cells(each: Row) -> tuple[object, ...]:
    shares = [None if each[name] is None else f"{each[name]:.2f}" for name in ("facts", "own", "others")]
    answers = (f"{each[name]:.2f}" for name in ("there", "right", "wrong"))
    return *shares, p_cell(each["p"]), *answers


def _apart(summary: Row) -> Table:
    lines = [
        (name, turn, *(None if value is None else f"{value:.2f}" for value in apart.values()))
        for name, figures in summary.items()
        for turn, apart in figures["apart"].items()
    ]
    columns = ("intrinsic memories", "turn", "divergence", "role kept", "own facts")
    return table("How far agents' own memories diverge, and whether each keeps its role", columns, lines)


def _notes(rows: Sequence[Row], summary: Row, models: Sequence[Identity]) -> list[str]:
    notes = [
        "shown: what the next speaker is shown beside task and turns; all memories: the writer. facts: share "
        "of all facts that the context holds, own and others': of the reader's own and of the rest; p: "
        "Wilcoxon signed-rank of that share against the newest turns alone, same puzzles. needed: questions "
        "of which all facts that the answer needs are there. Who is neither right nor wrong abstained.",
        "Turns are drawn by seed and the same for every memory; all contexts but the whole conversation are "
        "bounded by the same tokens. This says what survives, and nothing about planning.",
        *better(summary),
    ]
    for name, figures in summary.items():
        spent = figures["tokens_of_remembering"]
        told = ", ".join(f"{what} {tokens:,.0f}" for what, tokens in spent.items())
        notes.append(f"Tokens of remembering in a puzzle ({name}): {told}.")
    if unusable := sum(len(row["complaints"]) for row in rows):
        notes.append(f"{unusable} updates got no usable answer, or one in part; the raw results say which.")
    return notes if any(each.is_model for each in models) else [*notes, RULES]


def better(summary: Row) -> list[str]:
    """Say at which turns which bounded memory shows its reader more facts than the reader's intrinsic one."""
    found = []
    for name, figures in summary.items():
        for turn, by_reader in figures["by_turn"].items():
            own = by_reader["intrinsic"]["facts"]
            ahead = [
                each for each in BOUNDED[1:] if each in by_reader and by_reader[each]["facts"] > own + 0.005
            ]
            if ahead:
                found.append(
                    f"After {turn} turns a reader has more facts than with its own intrinsic memory by "
                    f"{', '.join(ahead)} ({name})."
                )
    return found


def _plotted(kind: str, figures: Row) -> Any:
    return lambda axes: _survival(axes, kind, figures)


def _survival(axes: Axes, kind: str, figures: Row) -> None:
    turns = list(figures["by_turn"])
    for reader in figures["by_turn"][turns[0]]:
        shares = [figures["by_turn"][turn][reader]["facts"] for turn in turns]
        axes.plot(
            [int(turn) for turn in turns],
            shares,
            ":" if reader == READERS[-1] else "-",
            marker="o",
            label=reader,
        )
    axes.set_xlabel(f"turns ({kind.replace('_', ' ')})")
    axes.set_ylabel("share of facts in the context")
    axes.set_ylim(-0.03, 1.05)
    axes.legend(fontsize="x-small")
