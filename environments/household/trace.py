"""A run's trace: JSON Lines that are appended while it runs, survive a kill and can be replayed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mneme.core.errors import BadInput
from mneme.environments.household.play import Frame


class Trace:
    """Append events to a file, one whole line after the other; an incomplete line is dropped."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, kind: str, **values: Any) -> None:
        """Write one line: its kind ("episode", "step", "decision", …) and plain values."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as out:
            self._mend(out)
            out.write(json.dumps({"kind": kind, **values}, ensure_ascii=False).encode() + b"\n")

    def _mend(self, out: Any) -> None:
        """Cut off what a killed writer left of a line."""
        if not out.tell():
            return
        out.seek(-1, 2)
        if out.read(1) != b"\n":
            out.seek(0)
            out.truncate(out.read().rfind(b"\n") + 1)

    def frame(self, frame: Frame) -> None:
        """Write one step."""
        self.append("step", **frame.model_dump(mode="json"))

    def read(self) -> Iterator[dict[str, Any]]:
        """Read the lines back; a last line cut short by a kill is left out."""
        if not self.path.exists():
            raise BadInput(f"There is no trace at {self.path}.", "Give the file that a run wrote.")
        *lines, _ = self.path.read_bytes().split(b"\n")
        for number, line in enumerate(lines, 1):
            yield self._line(number, line)

    def _line(self, number: int, line: bytes) -> dict[str, Any]:
        try:
            read = json.loads(line)
        except ValueError as error:
            raise BadInput(
                f"{self.path}: line {number} is not JSON.", "Give a file that a run wrote."
            ) from error
        if not isinstance(read, dict) or "kind" not in read:
            raise BadInput(f"{self.path}: line {number} has no kind.", "Give a file that a run wrote.")
        return read

    def frames(self) -> list[Frame]:
        """Read the steps in order; of a step written twice, as after a restart, the later."""
        steps = {line["step"]: line for line in self.read() if line["kind"] == "step"}
        return [Frame.model_validate(steps[step]) for step in sorted(steps)]
