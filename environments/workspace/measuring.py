"""What the runs of a workspace's commands say: figures, and whether they may be believed."""

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from mneme.environments.workspace.confining import Ran, run
from mneme.environments.workspace.description import CPU, Aim, Held
from mneme.environments.worlds import Metric

LINE = re.compile(r"^\s*([A-Za-z_][\w.-]*)\s*=\s*(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*$", re.MULTILINE)
LONG_RUN = 2.0
"""Processor seconds after which a command is not run again."""
SHOWN = 3_000


class Figures(NamedTuple):
    """What one state of a workspace came to; `wrong` says why it did not pass."""

    wrong: str
    values: dict[str, float]
    shown: str
    output: str
    stopped: bool
    broken: bool = False
    """Whether it could not be run to its end for another reason than time."""


def measured(held: Held, folder: Path, fresh: Path) -> Figures:
    """Run the check in one copy and what is measured in another, which the check has not touched."""
    checked = run(held.check, folder, held.bounds) if held.check else None
    if checked is not None and not (checked.is_good or (checked.is_late and not held.measure)):
        wrong, broken = _why(held.check, checked), bool(checked.stopped) and not checked.is_late
        return Figures(wrong, {}, tail(checked.output), "", checked.is_late, broken)
    if not held.measure:
        assert checked is not None, "a world has a check or a measure"
        return _figures(held, checked, folder, checked.output)
    ran = run(held.measure, fresh, held.bounds)
    return _figures(held, ran, fresh, checked.output if checked else ran.output)


def raced(held: Held, folders: tuple[Path, Path], first: tuple[Figures, Figures]) -> tuple[Figures, Figures]:
    """Measure the original and a solution in turn; return the pair whose gain is the median.

    A processor's pace changes: what runs side by side is slowed alike, and a moment that hits one of both is
    an outlier. What takes long counts as it was measured first; a solution that fails once has failed.
    """
    pairs = [first]
    while held.metrics and len(pairs) < held.runs:
        if any(each.wrong or each.values[CPU] > LONG_RUN for each in pairs[-1]):
            break
        again = [(run(held.measure or held.check, folder, held.bounds), folder) for folder in folders]
        original, solution = (
            _figures(held, ran, folder, ran.output)._replace(shown=each.shown)
            for (ran, folder), each in zip(again, first, strict=True)
        )
        if solution.wrong:
            return first[0], solution
        pairs.append((original, solution))
    sound = [pair for pair in pairs if not pair[0].wrong] or [first]
    gains = [next((each.gain for each in compared(held.metrics, *pair)), 0.0) for pair in sound]
    return sound[sorted(range(len(sound)), key=gains.__getitem__)[len(sound) // 2]]


def _figures(held: Held, ran: Ran, folder: Path, shown: str) -> Figures:
    command = held.measure or held.check
    printed = {name: float(value) for name, value in LINE.findall(ran.output)}
    values = {**printed, **_written(folder, held.metrics_file), CPU: ran.seconds}  # whatever is printed
    if ran.is_late:
        return Figures(
            f"{command}: {ran.stopped or 'It was stopped.'}", values, tail(shown), ran.output, stopped=True
        )
    if ran.stopped:
        return Figures(_why(command, ran), values, tail(shown), "", stopped=False, broken=True)
    wrong = "" if ran.is_good else _why(command, ran)
    lacking = [aim.name for aim in held.metrics if aim.name not in values]
    if not wrong and lacking:
        wrong = f"{command} did not say {lacking[0]}: print a line {lacking[0]}=NUMBER."
    return Figures(wrong, values, tail(shown), ran.output, stopped=False)


def _why(command: str, ran: Ran) -> str:
    said = [line.strip() for line in ran.output.splitlines() if line.strip()]
    named = [line for line in said if re.search(r"\w(Error|Exception)\b", line)]
    last = (named or [line for line in said if "FAIL" in line] or said or ["it printed nothing"])[-1][:200]
    return f"{command}: {ran.stopped or f'it ended with {ran.exit}: {last}'}"


def _written(folder: Path, name: str) -> dict[str, float]:
    """Read a JSON object of figures; what is no number is left out."""
    file = folder / name
    if not name or file.is_symlink() or not file.is_file() or file.stat().st_size > 1_000_000:
        return {}
    try:
        read = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        return {}
    pairs = read.items() if isinstance(read, dict) else ()
    return {
        str(key): float(value)
        for key, value in pairs
        if isinstance(value, int | float) and math.isfinite(value)
    }


def tail(text: str) -> str:
    """Return the end of what was printed: there it says what went wrong."""
    return text if len(text) <= SHOWN else f"…{text[-SHOWN:]}"


def compared(aims: Sequence[Aim], before: Figures, after: Figures) -> list[Metric]:
    """Set the figures of a solution beside the baseline's."""
    return [
        Metric(
            name=aim.name,
            value=after.values[aim.name],
            baseline=before.values.get(aim.name),
            better=aim.better,
            wanted=aim.wanted,
            limit=aim.limit,
            stopped=before.stopped and aim.name == CPU,
        )
        for aim in aims
        if aim.name in after.values
    ]
