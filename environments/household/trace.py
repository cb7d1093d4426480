"""A run's trace: JSON Lines that are appended while it runs, survive a kill and can be replayed.

Each line ends in a checksum of itself and of all lines before it.
"""

import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mneme.core.errors import BadInput
from mneme.environments.household.play import Frame

SUM = re.compile(rb', "sum": (\d+)\}\s*$')
LONGEST_SUM = 32
"""Bytes at the end of a line in which its checksum is."""


class Trace:
    """Append events to a file, one whole line after the other; an incomplete line is dropped."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, kind: str, **values: Any) -> None:
        """Write one line: its kind ("episode", "step", "decision", …) and plain values."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as out:
            self._mend(out)
            text = json.dumps({"kind": kind, **values}, ensure_ascii=False).encode()
            out.write(text[:-1] + b', "sum": %d}\n' % zlib.crc32(text, self._sum(out)))

    def _sum(self, out: Any) -> int:
        """Return the checksum of the last line; 0 where there is none."""
        out.seek(0, 2)
        out.seek(max(0, out.tell() - LONGEST_SUM))
        found = SUM.search(out.read())
        return int(found[1]) if found else 0

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

    def problem(self) -> str:
        """Say where the file is not as it was written; empty: it is whole, or ends earlier than it did."""
        total, lines = 0, self.path.read_bytes().split(b"\n")[:-1]
        for number, line in enumerate(lines, 1):
            found = SUM.search(line)
            if found is None and number == 1:
                return ""  # of an earlier version, which wrote no sums
            total = zlib.crc32(line[: found.start()] + b"}", total) if found else -1
            if found is None or total != int(found[1]):
                return f"{self.path} was changed: its line {number} is not as it was written."
        return ""

    def _line(self, number: int, line: bytes) -> dict[str, Any]:
        try:
            read = json.loads(line)
        except ValueError as error:
            raise BadInput(
                f"{self.path}: line {number} is not JSON.", "Give a file that a run wrote."
            ) from error
        if not isinstance(read, dict) or "kind" not in read:
            raise BadInput(f"{self.path}: line {number} has no kind.", "Give a file that a run wrote.")
        read.pop("sum", None)
        return read

    def frames(self) -> list[Frame]:
        """Read the steps in order; of a step written twice, as after a restart, the later."""
        steps = {line["step"]: line for line in self.read() if line["kind"] == "step"}
        return [Frame.model_validate(steps[step]) for step in sorted(steps)]
