"""Fields of a task's input, for worlds, graphs and commands."""

from typing import Any

from pydantic import Field


def described(description: str, example: Any, default: Any = "", **bounds: Any) -> Any:
    """Return a field with its description and one example; it is required where the default is `...`."""
    return Field(default, description=description, examples=[example], **bounds)
