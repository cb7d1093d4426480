"""Check what a graph is given against its declared input, whatever a client sent."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from mneme.core.errors import BadInput, first_fault
from mneme.nodes.channels import adapter_of


def read_input(kind: type, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a graph's input as its TypedDict `kind` declares it, with the defaults of what is not given.

    Raises BadInput for the first field at fault; its hint is the field's description.
    """
    adapter, given = adapter_of(kind), {name: each for name, each in state.items() if each is not None}
    try:
        read: dict[str, Any] = adapter.validate_python(given)
    except ValidationError as error:
        about = adapter.json_schema()["properties"].get(str(error.errors()[0]["loc"][0]), {})
        raise BadInput(first_fault(error), about.get("description", "")) from error
    return read
