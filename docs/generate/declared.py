"""Write `mneme/cli/declared.json`: the parameters of each operation that a command calls.

`python docs/generate/declared.py` writes the file; a test compares it with what this would write.
"""

import json
from typing import Any

import typer

from mneme.cli.commands import add_commands
from mneme.cli.derived import DECLARED, arguments_of, named
from mneme.cli.groups import Calls


def declared() -> dict[str, Any]:
    """Return the owner and the parameters of each operation that a command calls."""
    made = dict[str, Any]()
    called = Calls.__call__

    def noted(self: Calls, name: str, operation: str, *given: Any, **more: Any) -> None:
        kind = named(self.operations)
        schema = arguments_of(kind, operation).model_json_schema()
        made[f"{self.operations}.{operation}"] = {
            "owner": kind.OWNER,
            "parameters": schema.get("properties", {}),
        }
        called(self, name, operation, *given, **more)

    try:
        Calls.__call__ = noted  # type: ignore[method-assign]
        add_commands(typer.Typer())
    finally:
        Calls.__call__ = called  # type: ignore[method-assign]
    return made


if __name__ == "__main__":
    DECLARED.write_text(f"{json.dumps(declared(), indent=1, ensure_ascii=False)}\n", encoding="utf-8")
