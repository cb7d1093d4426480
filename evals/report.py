"""The result of every evaluation, and the journal of raw results that makes it resumable."""

import asyncio
import hashlib
import json
import platform
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from rich.console import Console

from mneme.api.tables import Table, figure
from mneme.core.errors import BadInput, StorageFailure, first_fault

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

C = TypeVar("C")
Row = dict[str, Any]
Progress = Callable[[int, int, str], None]
"""Called after each case with the number of finished cases, their total, and the case's name."""

BY_RULES = "Answered by rules: docs/measurements.md says what that cannot tell."
MEND = "Make room, or give another folder with --out; finished cases are kept."
SOURCE_ROOT = Path(__file__).resolve().parent.parent
# API, client and core are in `mneme/` in a checkout, and beside the other packages in an installation.
FOLDERS = (
    *("environments", "evals", "graphs", "library", "models", "nodes", "prompts", "rules", "stores"),
    *("api", "client", "core", "mneme/api", "mneme/client", "mneme/core"),
)
SOURCES = {".py", ".pddl", ".yaml"}
LIBRARIES = (
    "mneme-agents",
    "langgraph",
    "langchain-core",
    "langchain-ollama",
    "qdrant-edge-py",
    "onnxruntime",
    "numpy",
    "scipy",
    "bert-score",
    "rapidfuzz",
    "torch",
    "transformers",
    "langmem",
    "mem0ai",
)


@dataclass
class Report:
    """The outcome of one evaluation: tables to print, figures for `--json`, raw results, plots."""

    name: str
    answered_by: str
    raw: Path
    rows: list[Row]
    summary: dict[str, Any]
    tables: list[Table]
    plots: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def print(self, console: Console) -> None:
        """Print who answered, the tables, the notes, and where raw results and plots are."""
        console.print(f"{self.name}: answered by {self.answered_by}", style="bold", soft_wrap=True)
        for table in self.tables:
            console.print(table)
            console.print()
        for note in self.notes:
            console.print(f"- {note}", soft_wrap=True, highlight=False, markup=False)
        for path in (self.raw, *self.plots):
            console.print(str(path), soft_wrap=True, highlight=False, markup=False)

    def with_plots(self, title: str, *plots: "Callable[[Axes], None]") -> "Report":
        """Draw plots side by side into a PNG beside the raw results."""
        self.plots.append(draw(self.raw.with_suffix(".png"), title, self.answered_by, *plots))
        return self

    def json(self) -> Row:
        """Return the output of `--json`: the summary and the paths of the rest."""
        return {
            "name": self.name,
            "answered_by": self.answered_by,
            "summary": self.summary,
            "notes": self.notes,
            "raw": str(self.raw),
            "plots": [str(path) for path in self.plots],
        }


class Journal:
    """Finished cases of one configuration, one JSON line each; the first line is the configuration.

    The file is named by a digest of the configuration, which holds a digest of our own code, so that
    a resumed run never mixes results of two programs, data files or models.
    """

    def __init__(self, path: Path, rows: Sequence[Row] = ()) -> None:
        self.path = path
        self._rows = {row["case"]: row for row in rows}

    def __contains__(self, case: str) -> bool:
        return case in self._rows

    def __getitem__(self, case: str) -> Row:
        return self._rows[case]

    @property
    def rows(self) -> list[Row]:
        return list(self._rows.values())

    def add(self, case: str, row: Row) -> Row:
        """Store the result of one case; it is in the file when this returns."""
        kept = {"case": case, "at": datetime.now(UTC).isoformat(timespec="milliseconds"), **row}
        try:
            with self.path.open("a", encoding="utf-8") as file:
                # One write: a kill leaves at most one torn line, the last.
                file.write(json.dumps(kept, ensure_ascii=False) + "\n")
        except OSError as error:
            raise StorageFailure(f"Cannot write to {self.path}: {error.strerror}.", MEND) from error
        self._rows[case] = kept
        return kept

    async def play(
        self,
        cases: Mapping[str, C],
        one: Callable[[C], Awaitable[Row]],
        progress: Progress,
        *,
        concurrency: int = 1,
    ) -> list[Row]:
        """Complete the unfinished cases, that many at once; return the rows of all, in order.

        The first failure stops the others; finished cases are kept.
        """
        waiting = {name: case for name, case in cases.items() if name not in self}
        places, done = asyncio.Semaphore(concurrency), count(len(cases) - len(waiting) + 1)

        async def finish(name: str, case: C) -> None:
            async with places:
                self.add(name, await one(case))
            progress(next(done), len(cases), name)

        if concurrency == 1:
            for name, case in waiting.items():
                await finish(name, case)
        else:
            await together(finish(name, case) for name, case in waiting.items())
        return [self[name] for name in cases]

    def report(
        self,
        answered_by: object,
        summary: Row,
        tables: list[Table],
        notes: Iterable[str],
        rows: list[Row] | None = None,
    ) -> Report:
        """Return the report of a finished run, of these rows or of all."""
        name, rows = self.path.stem.rpartition("-")[0], self.rows if rows is None else rows
        said = [*notes, BY_RULES] if str(answered_by) == "rules" else [*notes]
        return Report(name, str(answered_by), self.path, rows, summary, tables, notes=said)


async def together(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run coroutines concurrently; the first failure stops them all and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            for each in work:
                group.create_task(each)
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None  # as from a loop; the others were cancelled because of it


def open_journal(folder: Path, name: str, configuration: Row, *, fresh: bool = False) -> Journal:
    """Open the journal of a configuration, with the cases that an interrupted run has finished."""
    whole = configuration | {"code": code_digest(), "versions": versions()}
    path = folder / f"{name}-{digest(whole)}.jsonl"
    if path.exists() and not fresh:
        return Journal(path, _finished(path))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"configuration": whole}, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise StorageFailure(f"Cannot write to {folder}: {error.strerror}.", MEND) from error
    return Journal(path)


def _finished(path: Path) -> list[Row]:
    """Read every whole line after the first, and cut off an interrupted one."""
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]  # what a killed run was writing has no line end
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    rows = []
    for number, line in enumerate(whole.splitlines()[1:], 2):
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError as error:
            wrong = f"{path}, line {number} is damaged: {error}."
            raise BadInput(wrong, "Start anew with --fresh.") from error
    return rows


def read_lines(path: Path, kind: type[C], hint: str = "", usual: Row | None = None) -> list[C]:
    """Read JSON Lines as `kind`, with `usual` as default fields. Raises BadInput, naming an invalid line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"Cannot read {path}: {error}.", hint) from error
    checked, read = TypeAdapter(kind), list[C]()
    for number, line in enumerate(lines, 1):
        try:
            read += [checked.validate_python((usual or {}) | json.loads(line))] if line.strip() else []
        except ValidationError as error:
            raise BadInput(f"{path}, line {number}: {first_fault(error, 'the line')}", hint) from error
        except (ValueError, TypeError) as error:
            raise BadInput(f"{path}, line {number}: {error}.", hint) from error
    return read


def digest(value: Row) -> str:
    """Return a short digest of a configuration's content, as its name."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


def file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def code_digest() -> str:
    """Return a digest of all our source files that take part: the program that gave a result."""
    whole = hashlib.sha256()
    for package in FOLDERS:
        for path in sorted(each for each in (SOURCE_ROOT / package).rglob("*") if each.suffix in SOURCES):
            whole.update(path.read_bytes())
    return whole.hexdigest()[:12]


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that bear on a result."""
    found = {"python": platform.python_version(), "machine": platform.platform()}
    for library in LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            found[library] = "not installed"  # an extra that changes what is compared
    return found


def table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    figures: bool = True,
    lines: bool = False,
) -> Table:
    """Return a table whose first column is text; the others are figures, or text too."""
    return Table(title, columns, [[_cell(value) for value in row] for row in rows], figures, lines)


def framed(title: str, frame: "pd.DataFrame", *, figures: bool = True, lines: bool = False) -> Table:
    """Return a data frame as a table; the levels of its index are the first columns."""
    is_named = any(name is not None for name in frame.index.names)  # "" is a name, None is none
    flat = frame.reset_index() if is_named else frame
    rows = flat.astype(object).to_numpy().tolist()
    return table(title, [*map(str, flat.columns)], rows, figures=figures, lines=lines)


def _cell(value: object) -> str:
    if value is None or value != value:  # noqa: PLR0124 (not a number)
        return "–"
    return figure(value) if isinstance(value, float) else str(value)


def draw(path: Path, title: str, answered_by: str, *plots: "Callable[[Axes], None]") -> Path:
    """Draw plots side by side into a PNG whose title names the responder."""
    # The Agg canvas needs no display, and a Figure of one's own no global state of pyplot.
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415  (a process that plays draws nothing)
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(max(6.4, 5.6 * len(plots)), 4.8), layout="constrained")
    FigureCanvasAgg(figure)
    for number, plot in enumerate(plots):
        plot(figure.add_subplot(1, len(plots), number + 1))
    figure.suptitle(f"{title}\nanswered by {answered_by}", fontsize="medium")
    figure.savefig(path, dpi=120)
    return path
