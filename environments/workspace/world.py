"""Files checked by a command, as a world: a solution is new text for files, tried on a copy."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from statistics import median
from typing import NamedTuple, TypeVar

import yaml
from pydantic import BaseModel, TypeAdapter

from mneme.core.errors import BadInput
from mneme.environments.trial import NOISE
from mneme.environments.workspace import syntax
from mneme.environments.workspace.changes import NotAllowed, changed_files, is_changeable, write
from mneme.environments.workspace.confining import Ran, confined_by, run
from mneme.environments.workspace.description import CPU, Aim, Described, Held
from mneme.environments.workspace.template import MAX_FILE_BYTES, Template
from mneme.environments.worlds import InWords, Metric, Solution, Trial, World, failed, parts_of


class Tactics(BaseModel):
    """A language of patterns that change files without a model; several stand with `;` between them."""

    scope: str
    """Domain of lessons that apply to every world of the language."""
    noun: str
    definition: str
    """Description of the patterns, for agents."""
    first: Sequence[str]
    """The patterns in the order in which they are tried where nothing is known."""
    ending: str
    """Suffix of the files that are read and changed."""
    features: Mapping[str, re.Pattern[str]]
    """Features that a condition can name (slow on much data), and the text that shows each."""
    patterns: Mapping[str, Sequence[tuple[re.Pattern[str], str]]]
    """Replacements in a file's text, by pattern."""

    def check(self, pattern: str) -> str:
        """Return the pattern with tactics in their usual spelling; other words stay as they are."""
        known = {name.lower(): name for name in self.patterns}
        return "; ".join(known.get(part.strip().lower(), part.strip()) for part in pattern.split(";"))

    def apply(self, pattern: str, files: Mapping[str, str], callers: Iterable[str] = ()) -> dict[str, str]:
        """Return the files that the tactics change, which `callers` call. Raises InWords for words."""
        steps = self.check(pattern).split("; ")
        if any(step not in self.patterns for step in steps):
            raise InWords(f"{pattern!r} is in words: it is for the reader to carry out.")
        changed = {path: text for path, text in files.items() if path.endswith(self.ending)}
        callers = [*callers, *changed.values()]
        for path, text in changed.items():
            for step in steps:
                text = syntax.cached(text, callers) if step == syntax.CACHE else text  # noqa: PLW2901
                for expression, replacement in self.patterns[step]:
                    text = expression.sub(replacement, text)  # noqa: PLW2901
            changed[path] = text
        return {path: text for path, text in changed.items() if text != files[path]}

    def features_of(self, files: Mapping[str, str]) -> list[str]:
        """Name what the files do that is slow on much data."""
        texts = [text for path, text in files.items() if path.endswith(self.ending)]
        reader = syntax.FEATURE_READERS.get(self.ending)
        read = {each for text in texts for each in reader(text)} if reader else ()
        shown = [name for name, how in self.features.items() if any(map(how.search, texts))]
        return [*shown, *sorted(read)]

    @property
    def known_features(self) -> set[str]:
        """Return all that a condition can name."""
        return {*self.features, *syntax.FEATURES_BY_SUFFIX.get(self.ending, ()), LARGE_FILE}


@cache
def tactics() -> Mapping[str, Tactics]:
    """Return the tactics of each language."""
    text = Path(__file__).with_name("tactics.yaml").read_text(encoding="utf-8")
    return TypeAdapter(dict[str, Tactics]).validate_python(yaml.safe_load(text))


LARGE_FILE, LARGE_BYTES = "a file over 1 MB", 2**20
LINE = r"(?m)^[\s.FEsxX]*{name}\s*=\s*(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*$"
"""Pattern of a printed figure; pytest writes the results of tests (`.`, `F`, …) in front of it."""
LONG_RUN = 2.0
"""Processor seconds after which a command is not run again, unless noise decides."""
LONG_RUNS = 3
MAX_OUTPUT_CHARS = 3_000


class Figures(NamedTuple):
    """Measurements of one state of a workspace; `wrong` says why the check failed."""

    wrong: str
    values: dict[str, float]
    shown: str
    output: str
    stopped: bool
    broken: bool = False
    """Whether it could not be completed for another reason than time."""
    silent: bool = False
    """Whether it passed, but did not print a required metric."""


def measured(held: Held, folder: Path, fresh: Path) -> Figures:
    """Run the check in one copy and what is measured in another, which the check has not touched."""
    checked = run(held.check, folder, held.bounds) if held.check else None
    # A check that is itself measured may be late: then it is slow, not wrong.
    if checked is not None and not (checked.is_good or (checked.is_late and not held.measure)):
        shown = tail(checked.output)
        return Figures(_why(held.check, checked), {}, shown, "", checked.is_late, checked.is_broken)
    ran = run(held.measure, fresh, held.bounds) if held.measure else checked
    assert ran is not None, "a world has a check or a measure"
    return _figures(held, ran, checked.output if checked else ran.output)


def _figures(held: Held, ran: Ran, shown: str) -> Figures:
    command = held.measure or held.check
    said = {aim.name: re.findall(LINE.format(name=re.escape(aim.name)), ran.output) for aim in held.metrics}
    values = {name: float(found[-1]) for name, found in said.items() if found}  # the last one printed counts
    values[CPU] = ran.seconds  # whatever is printed
    lacking = [aim.name for aim in held.metrics if aim.name not in values]
    wrong = "" if ran.is_good else _why(command, ran)
    if ran.is_late:
        wrong = f"{command}: {ran.stopped or 'It was stopped.'}"
    if silent := bool(lacking) and not wrong:
        wrong = f"{command} did not say {lacking[0]}: print a line {lacking[0]}=NUMBER."
    output = "" if ran.is_broken else ran.output
    return Figures(wrong, values, tail(shown), output, ran.is_late, ran.is_broken, silent)


def _why(command: str, ran: Ran) -> str:
    said = [line.strip() for line in ran.output.splitlines() if line.strip()]
    # The exception's name tells agents more than the last line, which is often a summary.
    named = [line for line in said if re.search(r"\w(Error|Exception)\b", line)]
    last = (named or [line for line in said if "FAIL" in line] or said or ["it printed nothing"])[-1][:200]
    return f"{command}: {ran.stopped or f'it ended with {ran.exit}: {last}'}"


def tail(text: str) -> str:
    """Return the end of the output, which names the error."""
    return text if len(text) <= MAX_OUTPUT_CHARS else f"…{text[-MAX_OUTPUT_CHARS:]}"


Seconds = TypeVar("Seconds", float, float | None)
MAX_MATERIAL_CHARS = 12_000
CHANGES_FORM = """\
Files are those that change, each with its path and its whole new text; or the diff is a unified
diff of them. Statements, query and answer stay empty."""
PYTEST = re.compile(r"(?:\S*python[\d.]* -m )?pytest\b[^;&|]*")
_baselines: dict[str, Figures] = {}
_starts: dict[str, float] = {}


class FilesWorld(World):
    """A world with one workspace and its check command."""

    form = CHANGES_FORM
    parts = ("files", "diff")

    def __init__(self, template: Template, held: Held, described: Described, known: Tactics | None) -> None:
        self._template, self._held, self._described = template, held, described
        self.language = self._tactics = known
        self.snapshot = template.key
        self.scope = described.scope or (known.scope if known else described.name)
        self.noun = described.noun or (known.noun if known else "tasks")

    @property
    def versions(self) -> Mapping[str, str]:
        """Return the versions that the world's description names."""
        return self._described.versions

    @cached_property
    def _files(self) -> dict[str, str]:
        return self._template.texts()

    @cached_property
    def open_files(self) -> dict[str, str]:
        """The files that may change, with their text."""
        return {
            path: text
            for path, text in self._files.items()
            if is_changeable(path, self._files, self._held.may_change)
        }

    @property
    def start(self) -> float:
        """Return the processor seconds of the start of the timed command, measured once in this process."""
        timed = self._held.measure or self._held.check
        command = self._held.start or (f"{timed} --collect-only" if PYTEST.fullmatch(timed) else "")
        if not command or all(aim.name != CPU for aim in self._held.metrics):
            return 0.0
        key = f"{self._template.key} {command}"
        if key not in _starts:
            with self._template.copy() as folder:
                ran = [run(command, folder, self._held.bounds) for _ in range(LONG_RUNS)]
            # A start that cannot be run is not subtracted.
            _starts[key] = median(each.seconds for each in ran) if all(each.is_good for each in ran) else 0.0
        return _starts[key]

    @property
    def baseline(self) -> Figures:
        """Return the metrics of the unchanged workspace, measured once in this process.

        Raises BadInput if it cannot be run, does not print the metrics to improve, or proves nothing: the
        check passes, and no metric is to improve.
        """
        key = f"{self._template.key} {self._held.model_dump_json()}"
        if key not in _baselines:
            with self._template.copy() as one, self._template.copy() as other:
                found = measured(self._held, one, other)
            if found.broken:
                raise BadInput(
                    f"The unchanged files cannot be run: {found.wrong}", "Run the command by hand."
                )
            if found.silent:
                raise BadInput(found.wrong, "It is what a solution is measured by.")
            _baselines[key] = found
        found = _baselines[key]
        improves = any(aim.wanted or aim.limit is not None for aim in self._held.metrics)
        if not (found.wrong or found.stopped or improves):
            raise BadInput(
                "The check passes already, and there is no metric to improve: no solution could be judged.",
                "Name a metric, e.g. --metric cpu_seconds:lower:2.",
            )
        return found

    def material(self) -> str:
        """Return the files that may change, the names of the others, and what the check printed."""
        shown = [f"{path}:\n{text}" for path, text in self.open_files.items()]
        others = ", ".join(path for path in self._files if path not in self.open_files)
        text = "\n\n".join([self._described.about, *shown, f"Other files: {others or 'none'}"]).strip()
        if len(text) > MAX_MATERIAL_CHARS:
            text = f"{text[:MAX_MATERIAL_CHARS]}\n… (read_file shows more)"
        return f"{text}\n\nAs it is, the check says:\n{self.baseline.shown}"

    def wanted(self) -> str:
        """Return the requirements on a solution."""
        held = self._held
        lines = [f"`{held.check}` ends with 0."] if held.check else []
        lines += [f"`{held.measure}` prints what it prints now."] if held.same_output else []
        for aim in held.metrics:
            now = self._without_start(aim, self.baseline.values.get(aim.name))
            from_ = "" if now is None else f", now {now:.4g}"
            gain = f" {aim.wanted:g} times as good ({aim.better} is better{from_})" if aim.wanted else ""
            lines.append(
                aim.name + gain + (f", at most {aim.limit:g}" if aim.limit is not None else "") + "."
            )
        lines.append(f"May change: {', '.join(held.may_change or self.open_files)}.")
        return " ".join([*lines, f"It runs confined: {confined_by()}."])

    @property
    def wanted_gain(self) -> float:
        """Return the factor by which the first metric should improve."""
        return self._held.metrics[0].wanted if self._held.metrics else 0.0

    @cached_property
    def features(self) -> list[str]:
        """Name the features of the files that may change, and whether there is much data."""
        read = self._tactics.features_of(self.open_files) if self._tactics else []
        sizes = (file.stat().st_size for file in self._template.folder.rglob("*"))
        return [*read, *([LARGE_FILE] if read and any(size > LARGE_BYTES for size in sizes) else [])]

    @property
    def general(self) -> list[str]:
        """Name the features without how much data there is: a lesson holds for less, too."""
        return [each for each in self.features if each != LARGE_FILE]

    def applies(self, condition: str) -> bool | None:
        """Return whether the files have the features that a condition names."""
        known = self._tactics.known_features if self._tactics else ()
        asked = parts_of(condition)
        if not asked or any(part not in known for part in asked):
            return None
        return {*asked} <= {*self.features}

    def carry_out(self, pattern: str) -> Solution:
        """Carry a tactic out on the files. Raises BadInput where it changes nothing, InWords for words."""
        assert self._tactics is not None, "without tactics, patterns are text"
        changed = self._tactics.apply(pattern, self.open_files, self._files.values())
        if not changed:
            raise BadInput(f"There is nothing here for {pattern}.", "Try another.")
        return Solution(files=changed)

    def first_ideas(self) -> Sequence[str]:
        """Return first ideas from textbooks."""
        return self._tactics.first if self._tactics else ()

    def remedies(self) -> Sequence[str]:
        """Return the tactics."""
        return tuple(self._tactics.patterns) if self._tactics else ()

    def attempt(self, solution: Solution, *, quick: bool = False) -> Trial:
        """Run the check on a copy with the change; compare it with the baseline."""
        wanted = self.wanted_gain
        try:
            files = changed_files(solution, self._files, self._held.may_change)
            if not files:
                return failed("Nothing was changed.", wanted=wanted)
            with self._changed(files) as one, self._changed(files) as other:
                before, after = self.baseline, measured(self._held, one, other)
            # A quick trial is repeated only where noise decides.
            again = not quick or (not after.wrong and self._is_near((before, after)))
            if again and not after.wrong and not self._unlike(before, after):
                with self._template.copy() as original, self._changed(files) as changed:
                    before, after = self._raced((original, changed), (before, after))
        except NotAllowed as refused:
            return failed(f"Refused: {refused}", wanted=wanted)
        if wrong := after.wrong or self._unlike(before, after):
            return failed(wrong, after.shown, wanted)
        return self._judged(before, after, self._compared(before, after))

    def probe(self, solution: Solution, command: str) -> str:
        """Run a hidden check on a copy; a check that a sound original fails too is wrong, and returns ""."""
        bounds = self._held.bounds
        try:
            with self._changed(changed_files(solution, self._files, self._held.may_change)) as copy:
                ran = run(command, copy, bounds)
        except NotAllowed:
            return ""
        if ran.is_good:
            return ""
        with self._template.copy() as original:
            # An original that fails its own check can prove no hidden check wrong.
            is_sound = bool(self.baseline.wrong) or run(command, original, bounds).is_good
        return _why("hidden check", ran) if is_sound else ""

    def _raced(self, folders: tuple[Path, Path], first: tuple[Figures, Figures]) -> tuple[Figures, Figures]:
        """Measure the original and a solution in turn; return the pair whose gain is the median.

        A long run is measured once, unless noise decides; then it is repeated, as short runs always are.
        """
        # The speed of a processor varies: runs side by side are slowed alike, and a delay of one of them is
        # an outlier.
        held, pairs, middle = self._held, [first], first
        while held.metrics and not any(each.wrong for each in pairs[-1]):
            is_long = any(each.values[CPU] > LONG_RUN for each in pairs[-1])
            most, more = (1, LONG_RUNS) if is_long else (held.runs, 2 * held.runs)
            if len(pairs) >= (more if self._is_near(middle) else most):
                break
            again = [run(held.measure or held.check, folder, held.bounds) for folder in folders]
            original, solution = (
                _figures(held, ran, ran.output)._replace(shown=each.shown)
                for ran, each in zip(again, first, strict=True)
            )
            if solution.wrong:  # once is enough
                return first[0], solution
            pairs.append((original, solution))
            sound = [pair for pair in pairs if not pair[0].wrong] or [first]
            middle = sorted(sound, key=self._gain)[len(sound) // 2]
        return middle

    def _gain(self, pair: tuple[Figures, Figures]) -> float:
        """Return the factor of improvement of the first metric; 0 without one."""
        return next((each.gain for each in self._compared(*pair)), 0.0)

    def _is_near(self, pair: tuple[Figures, Figures]) -> bool:
        """Return whether noise alone decides if a solution reaches the wanted gain."""
        return abs(self._gain(pair) - self.wanted_gain) <= NOISE * self.wanted_gain

    def _compared(self, before: Figures, after: Figures) -> list[Metric]:
        """Compare a solution's metrics with the baseline's; processor seconds are without the start's."""
        return [
            Metric(
                name=aim.name,
                value=self._without_start(aim, after.values[aim.name]),
                baseline=self._without_start(aim, before.values.get(aim.name)),
                better=aim.better,
                wanted=aim.wanted,
                limit=aim.limit,
                stopped=before.stopped and aim.name == CPU,
            )
            for aim in self._held.metrics
            if aim.name in after.values
        ]

    def _without_start(self, aim: Aim, value: Seconds) -> Seconds:
        """Subtract the start from processor seconds; left is at least the noise of the start itself."""
        return value if value is None or aim.name != CPU else max(value - self.start, NOISE * self.start)

    def _unlike(self, before: Figures, after: Figures) -> str:
        """Return why the output is not credible: missing, or different from the baseline's."""
        if not self._held.same_output:
            silent = before.shown.strip() and not after.shown.strip()
            return "It printed nothing, and did before: that proves nothing." if silent else ""
        if before.stopped:  # a baseline that timed out printed a part
            return "" if self._held.check else "The baseline was stopped: there is no output to compare with."
        if not before.output.strip():
            return "The original prints nothing: equal silence proves nothing."
        if before.output == after.output:
            return ""
        # With line ends, since outputs may differ in them alone.
        old, new = (each.output.splitlines(keepends=True) for each in (before, after))
        if len(old) != len(new):
            return f"It prints {len(new)} lines; the original prints {len(old)}."
        unlike = (n for n, (one, other) in enumerate(zip(old, new, strict=True)) if one != other)
        n = next(unlike)
        return f"Line {n + 1} is {new[n][:80]!r}; the original's is {old[n][:80]!r}."

    def _judged(self, before: Figures, after: Figures, metrics: list[Metric]) -> Trial:
        mended = bool(before.wrong) and not before.stopped
        missed = [each for each in metrics if not each.met and not (mended and each.baseline is None)]
        first = metrics[0] if metrics else None
        words = [_said(each) for each in metrics if each.baseline is not None]
        summary = "; ".join([*(["the check passes, and did not before"] if mended else []), *words])
        return Trial(
            correct=True,
            solved=not missed,
            gain=first.gain if first else 1.0,
            wanted=first.wanted if first else 0.0,
            metrics=metrics,
            evidence=after.shown,
            summary=summary or "the check passes",
        )

    @contextmanager
    def _changed(self, files: dict[str, str]) -> Iterator[Path]:
        with self._template.copy() as copy:
            write(copy, files)
            yield copy

    def looks(self) -> Sequence[Callable[..., str]]:
        """Return the researcher's tools."""

        def read_file(path: str) -> str:
            """Return a text file of the workspace."""
            if path not in self._files and path in self._template.names():
                return f"{path} is not shown: it is no text, or has more than {MAX_FILE_BYTES} bytes."
            return self._files.get(path, f"There is no file {path}; there are {', '.join(self._files)}.")

        def try_files(path: str, text: str) -> str:
            """Try one file with another text on a copy, and say what the check says."""
            trial = self.attempt(Solution(files={path: text}), quick=True)
            return f"{trial.summary}\n{trial.evidence}"

        return [read_file, try_files]


def _said(metric: Metric) -> str:
    before = f"{'more than ' if metric.stopped else ''}{metric.baseline:.3g}"
    below = math.floor(100 * metric.gain) / 100  # a gain below 1.5 is not rounded up to 1.5
    gain = f"{metric.gain:.1f}" if metric.met else f"{below:g}"
    said = f"{metric.name} {before} -> {metric.value:.3g}, {gain} times as good"
    if metric.over:
        return f"{said}; the limit is {metric.limit:g}"
    return said if metric.met else f"{said}; {metric.wanted:g} times is required"
