"""A run's trace: JSON Lines that are appended while it runs and can be replayed."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mneme.core.errors import BadInput
from mneme.environments.household.play import Frame


class Trace:
    """A file of events, one a line."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, kind: str, **values: Any) -> None:
        """Write one line: its kind ("episode", "step", "decision", …) and plain values."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as out:
            out.write(json.dumps({"kind": kind, **values}, ensure_ascii=False) + "\n")

    def read(self) -> Iterator[dict[str, Any]]:
        """Return the lines; a last line cut short by a kill is left out."""
        if not self.path.exists():
            raise BadInput(f"There is no trace at {self.path}.", "Give the file that a run wrote.")
        *lines, _ = self.path.read_bytes().split(b"\n")  # what follows the last newline was cut short
        for number, line in enumerate(lines, 1):
            try:
                read = json.loads(line)
            except ValueError as error:
                told = f"{self.path}: line {number} is not JSON."
                raise BadInput(told, "Give a file that a run wrote.") from error
            if not isinstance(read, dict) or "kind" not in read:
                raise BadInput(f"{self.path}: line {number} has no kind.", "Give a file that a run wrote.")
            yield read

    def frames(self) -> list[Frame]:
        """Return the steps of the file, as `frames_of` does."""
        return frames_of(self.read())


def frames_of(lines: Iterable[Mapping[str, Any]]) -> list[Frame]:
    """Return the steps among a run's lines, in order; of a step that occurs twice, the later one."""
    steps = {line["step"]: line for line in lines if line["kind"] == "step"}
    return [Frame.model_validate(steps[step]) for step in sorted(steps)]
