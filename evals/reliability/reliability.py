"""All evaluations of this folder, each in small, as one table: what went wrong before, and what does now.

"Before" is what the same attempts, or those that led to them, met in the code before it was fixed; the
growth of checkpoints is measured against the former way in the same run. Some harm that one kind of damage
did has a line of its own.
"""

from collections.abc import Callable
from importlib import import_module
from time import monotonic
from typing import Any, NamedTuple

from pydantic import BaseModel

from mneme.core.errors import MnemeError
from mneme.evals import EVALUATIONS
from mneme.evals.options import RUNS, Fresh, Out
from mneme.evals.report import Journal, Progress, Report, Row, open_journal, table

KNOWN = {
    "ledger/mneme.json, removed": "the whole ledger was erased, exit 0",
    "mutable_id_tracker.mappings, halved": "178 of 300 records, no word",
    "flags_a.dat, one bit flipped": "275 of 300 records, no word",
    "checkpoints.sqlite, zeroed": "no word, exit 0",
    "checkpoints.sqlite, one bit flipped": "no word, exit 0",
}
"""What damage to a file did before, by the names in the summary of `damage`."""


class Options(BaseModel):
    """Where results go."""

    out: Out = RUNS
    fresh: Fresh = False


class Part(NamedTuple):
    """An evaluation with its options here, what was met before, and how its summary is said in a line."""

    module: str
    options: dict[str, Any]
    before: str
    now: Callable[[Row], str]


def _damaged(found: Row) -> str:
    outcomes = found["outcomes"]
    return (
        f"{outcomes['uncaught']} uncaught errors, {outcomes['silent loss']} silent losses "
        f"in {sum(outcomes.values())}"
    )


def _replied(found: Row) -> str:
    (case,) = found["server"]
    if case["first_token"] is None:
        return "no reply within a minute"
    return f"{case['first_token']:.1f} s, {case['ratio']:.2f} times a call; {case['waiting']} wait still"


def _cut(found: Row) -> str:
    outcomes = found["outcomes"]
    return f"{outcomes['uncaught']} uncaught errors, {outcomes['lost']} losses in {sum(outcomes.values())}"


def _failed(found: Row) -> str:
    outcomes = found["outcomes"]
    bad = [f"{outcomes[each]} {each}" for each in ("unclear error", "lost", "not again")]
    return f"{', '.join(bad)} in {sum(outcomes.values())}"


def _disturbed(found: Row) -> str:
    return f"{len(found['impossible'])} records with impossible histories, {found['operations']} operations"


def _erased(found: Row) -> str:
    return (
        f"{found['files after']} of {found['files before']} files still hold one of {found['words']} words, "
        f"{len(found['came back'])} came back"
    )


def _isolated(found: Row) -> str:
    kept = "intact" if found["intact"] else "NOT intact"
    return f"{found['let in']} let in, {found['leaks']} leaks in {found['asked']} requests; data {kept}"


def _grown(found: Row) -> str:
    sizes = found["last turns kept"]
    last = [*sizes["bytes"]][-1]
    return f"{sizes['bytes'][last] / 1e6:.1f} MB after {last} turns, exponent {sizes['exponent']:.2f}"


def _queued(found: Row) -> str:
    (row,) = found["widths"]
    return f"{row['commands'] - row['succeeded']} of {row['commands']} fail, {row['lost']} records lost"


PARTS = {
    "damage to files": Part(
        "damage",
        {"records": 60},
        "15 uncaught errors, 10 silent losses in 196; 13 and 16 in these 188",
        _damaged,
    ),
    "the same, after a kill": Part("damage", {"records": 60, "killed": True}, "not measured", _damaged),
    "power cuts": Part("power", {"every": 64}, "2 uncaught errors, 33 losses in 102", _cut),
    "failing calls and kills": Part("faults", {"each": 1}, "not measured", _failed),
    "kills of concurrent clients": Part(
        "history", {"seconds": 30}, "130 kills lost nothing; histories not checked", _disturbed
    ),
    "forgotten words": Part(
        "erasing", {"words": 2}, "still in checkpoints and in the server's files", _erased
    ),
    "other users": Part(
        "isolation",
        {},
        "164 attempts leaked nothing; POST /internal/truncate deleted all without a key",
        _isolated,
    ),
    "first token at 2 s a call, 100 messages waiting, one user's model stalled": Part(
        "latency",
        {"server": True, "quick": True, "seconds": 2},
        "none for 300 s; 9.8 s while remembering, 2.9 without",
        _replied,
    ),
    "growth of a chat": Part(
        "growth", {"turns": [25, 50, 100, 200]}, "9.6 MB after 50 turns, 79 MB after 200", _grown
    ),
    "commands at once": Part("queueing", {"at_once": [48]}, "35 of 48 fail", _queued),
}


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Run every part that is not in the journal, and report all; what a part lacks stands in its line."""
    journal = open_journal(options.out, "reliability", {"parts": [*PARTS]}, fresh=options.fresh)
    for number, (name, part) in enumerate(PARTS.items()):
        if name not in journal:
            progress(number, len(PARTS), name)
            journal.add(name, await _measured(part, options))
        progress(number + 1, len(PARTS), name)
    return report([journal[name] for name in PARTS], journal)


async def _measured(part: Part, options: Options) -> Row:
    module, started = import_module(f"mneme.evals.{EVALUATIONS[part.module].module}"), monotonic()
    try:
        told: Report = await module.run(module.Options(**part.options, out=options.out))
    except MnemeError as error:  # for example, no compiler
        return {"before": part.before, "now": f"not measured: {error}", "seconds": monotonic() - started}
    known = told.summary.get("known", {})
    seconds = monotonic() - started
    return {"before": part.before, "now": part.now(told.summary), "seconds": seconds, "known": known}


def report(rows: list[Row], journal: Journal) -> Report:
    """Show each part in a line."""
    cells = [[row["case"], row["before"], row["now"], f"{row['seconds']:.0f} s"] for row in rows]
    summary: Row = {row["case"]: {"before": row["before"], "now": row["now"]} for row in rows}
    notes = [
        f"All in {sum(row['seconds'] for row in rows) / 60:.1f} minutes.",
        "`mneme eval damage`, `power`, `faults`, `history`, `erasing`, `isolation`, `latency --server`, "
        "`growth` and `queueing` are the parts by themselves, with more attempts.",
    ]
    damaged = [[name, KNOWN[name], now] for name, now in rows[0].get("known", {}).items()]
    tables = [table("Reliability", ["what", "before", "now", "took"], cells, figures=False, lines=True)]
    if damaged:
        tables.append(table("Of the damage", ["file", "before", "now"], damaged, figures=False))
    return Report("reliability", "rules", journal.path, rows, summary, tables, notes=notes)
