"""Latency's tables and plot."""

from collections.abc import Sequence
from functools import partial
from statistics import median
from typing import Any

from matplotlib.axes import Axes

from mneme.cli.tables import Table
from mneme.evals.report import Journal, Report, Row, draw, table

TARGET = 1.2
BASE = "version 3 in sequence"


def report(rows: Sequence[Row], journal: Journal, seconds: float) -> Report:
    """Make the report of a finished run."""
    chats = [_chatted(row) for row in rows if row["what"] == "chat" and row["gated"]]
    ungated = [_chatted(row) for row in rows if row["what"] == "chat" and not row["gated"]]
    hot = [_hot(row, chats) for row in rows if row["what"] == "hot path"]
    remembering = _remembered([row for row in rows if "trials" in row])
    answered_by = f"a double of Ollama at {1000 * seconds:.0f} ms a call (no model took part)"
    plot = draw(
        journal.path.with_suffix(".png"),
        "Time to the first token, and to remember one message",
        answered_by,
        partial(_plot_chats, chats, hot),
        partial(_plot_remembering, remembering),
    )
    return Report(
        name="latency",
        answered_by=answered_by,
        raw=journal.path,
        rows=list(rows),
        summary={"chat": chats, "chat_without_gate": ungated, "hot_path": hot, "remembering": remembering},
        tables=[_chat_table(chats), _ungated_table(ungated), _hot_table(hot), _remember_table(remembering)],
        plots=[plot],
        notes=_notes(chats),
    )


def _chatted(row: Row) -> dict[str, Any]:
    single = median(row["single"])
    first = [reply["first_token"] for reply in row["replies"]]
    return {
        "parallel": row["parallel"],
        "pending": row["pending"],
        "pending_after": row["pending_after"],
        "single": single,
        "first_token": median(first),
        "slowest": max(first),
        "ratio": median(first) / single,
        "slowest_ratio": max(first) / single,
        "reached": median(first) / single <= TARGET,
        **_medians(row["replies"], "before_model", "model", "after_model", "calls", "prompt_tokens"),
    }


def _hot(row: Row, chats: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Compare the hot path with the chat with a background memory agent, both with nothing pending."""
    same = min((c for c in chats if c["parallel"] == row["parallel"]), key=lambda chat: int(chat["pending"]))
    figures = _medians(row["replies"], "first_token", "whole", "calls", "prompt_tokens")
    return {
        "parallel": row["parallel"],
        **figures,
        "ratio_to_chat": figures["first_token"] / same["first_token"],
    }


def _remembered(rows: Sequence[Row]) -> list[dict[str, Any]]:
    medians = [
        {"system": row["what"], "parallel": row["parallel"], "operations": row["trials"][0]["operations"]}
        | _medians(row["trials"], "seconds", "calls", "prompt_tokens")
        for row in rows
    ]
    base = {one["parallel"]: one["seconds"] for one in medians if one["system"] == BASE}
    return [one | {"speedup": base[one["parallel"]] / one["seconds"]} for one in medians]


def _medians(rows: Sequence[Row], *names: str) -> dict[str, float]:
    return {name: float(median(row[name] for row in rows)) for name in names}


def _chat_table(chats: Sequence[dict[str, Any]]) -> Table:
    columns = [
        "parallel / pending",
        "single call, ms",
        "first token, ms",
        "ratio",
        "slowest",
        f"≤ {TARGET}",
        "before model, ms",
        "model, ms",
        "after, ms",
        "still pending",
    ]
    return table(
        "Time to the first token of a reply (median)", columns, [_chat_cells(chat) for chat in chats]
    )


def _chat_cells(chat: dict[str, Any]) -> list[object]:
    times = [_ms(chat[name]) for name in ("before_model", "model", "after_model")]
    return [
        f"{chat['parallel']} / {chat['pending']}",
        _ms(chat["single"]),
        _ms(chat["first_token"]),
        f"{chat['ratio']:.2f}",
        f"{chat['slowest_ratio']:.2f}",
        "yes" if chat["reached"] else "no",
        *times,
        chat["pending_after"],
    ]


def _ungated_table(ungated: Sequence[dict[str, Any]]) -> Table:
    columns = ["parallel / pending", "single call, ms", "first token, ms", "ratio"]
    rows = [
        [
            f"{chat['parallel']} / {chat['pending']}",
            _ms(chat["single"]),
            _ms(chat["first_token"]),
            f"{chat['ratio']:.1f}",
        ]
        for chat in ungated
    ]
    return table("The same without the gate, first come, first served (one reply each)", columns, rows)


def _hot_table(hot: Sequence[dict[str, Any]]) -> Table:
    columns = [
        "parallel",
        "first token, ms",
        "× background chat",
        "whole reply, ms",
        "calls",
        "prompt tokens",
    ]
    rows = [
        [
            str(one["parallel"]),
            _ms(one["first_token"]),
            f"{one['ratio_to_chat']:.2f}",
            _ms(one["whole"]),
            f"{one['calls']:.0f}",
            f"{one['prompt_tokens']:.0f}",
        ]
        for one in hot
    ]
    return table("Hot path: the same chat, where the model remembers before it replies", columns, rows)


def _remember_table(remembering: Sequence[dict[str, Any]]) -> Table:
    columns = ["memory agent / parallel", "wall time, ms", "faster ×", "calls", "prompt tokens", "did"]
    rows = [
        [
            f"{one['system']} / {one['parallel']}",
            _ms(one["seconds"]),
            f"{one['speedup']:.2f}",
            f"{one['calls']:.0f}",
            f"{one['prompt_tokens']:.0f}",
            " + ".join(one["operations"]),
        ]
        for one in remembering
    ]
    return table("One remembered message with ten similar memories (median)", columns, rows)


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.0f}"


def _notes(chats: Sequence[dict[str, Any]]) -> list[str]:
    first = chats[0]
    missed = [f"{c['parallel']} / {c['pending']}" for c in chats if not c["reached"]]
    emptied = [f"{c['parallel']} / {c['pending']}" for c in chats if c["pending_after"] < c["pending"]]
    notes = [
        f"A reply takes {first['calls']:.0f} call of about {first['prompt_tokens']:.0f} prompt tokens "
        "(four characters a token); remembering comes on top, in the background.",
        f"Target, first token within {TARGET} of a single call at every load: "
        + (f"missed at parallel / pending {', '.join(missed)}." if missed else "reached."),
    ]
    if emptied:
        notes.append(f"Some background work was over before the last chat at {', '.join(emptied)}.")
    return notes


def _plot_chats(chats: Sequence[dict[str, Any]], hot: Sequence[dict[str, Any]], axes: Axes) -> None:
    for parallel in dict.fromkeys(chat["parallel"] for chat in chats):
        of = [chat for chat in chats if chat["parallel"] == parallel]
        loads = [str(chat["pending"]) for chat in of]
        axes.plot(loads, [1000 * chat["first_token"] for chat in of], "o-", label=f"parallelism {parallel}")
    axes.axhline(1000 * chats[0]["single"], color="black", linestyle="--", label="single call")
    axes.axhline(1000 * TARGET * chats[0]["single"], color="gray", linestyle=":", label=f"{TARGET} × single")
    axes.axhline(1000 * hot[0]["first_token"], color="tab:red", linestyle="-.", label="hot path, no load")
    axes.set_xlabel("background messages pending")
    axes.set_ylabel("time to the first token (ms), median")
    axes.set_ylim(bottom=0)
    axes.legend()


def _plot_remembering(remembering: Sequence[dict[str, Any]], axes: Axes) -> None:
    names = [f"{one['system']}, {one['parallel']} parallel" for one in remembering][::-1]
    axes.barh(names, [1000 * one["seconds"] for one in remembering][::-1], color="tab:purple")
    axes.set_xlabel("wall time of one remembered message (ms), median")
