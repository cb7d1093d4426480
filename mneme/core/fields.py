"""Shared field types for the input of graphs, worlds and commands."""

from typing import Any

from pydantic import Field

MAX_INT = 2**53 - 1
"""The largest number that every JSON reader takes exactly."""


def described(description: str, example: Any, default: Any = "", **bounds: Any) -> Any:
    """Return a field with its description and one example; it is required where the default is `...`."""
    return Field(default, description=description, examples=[example], **bounds)
