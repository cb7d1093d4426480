"""Write `mneme/cli/declared.json`: what the command line must know of each operation that it calls.

`python docs/generate/declared.py` writes the file; a test compares it with what this would write.
"""

import json
from collections.abc import Iterator
from typing import Any

from mneme.cli import commands
from mneme.cli.derived import DECLARED_FILE, arguments_of, operation_of


def declared() -> dict[str, Any]:
    """Return whose data each operation is on that a command calls, whether it erases, and its parameters."""
    return dict(sorted(_called(commands.declared())))


def _called(about: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for below in about.values():
        if isinstance(below, dict) and "calls" in below:
            operation = operation_of(below["calls"])
            schema = arguments_of(operation).model_json_schema()
            known = {"owner": operation.kind.OWNER, "erases": operation.route.erases}
            yield below["calls"], known | {"parameters": schema.get("properties", {})}
        elif isinstance(below, dict):
            yield from _called(below)


if __name__ == "__main__":
    DECLARED_FILE.write_text(f"{json.dumps(declared(), indent=1, ensure_ascii=False)}\n", encoding="utf-8")
