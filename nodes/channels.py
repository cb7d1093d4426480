"""Channels of a graph's state that keep models of our own; checkpoints hold plain JSON values of them.

So nodes neither dump nor validate, no class of ours is named in a checkpoint, and what an earlier version
wrote there as plain values is read as the models of this one.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, Self

from langgraph.channels import LastValue
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

Update = dict[str, Any]
"""What a node returns: new values of channels, by their names."""


@cache
def adapter_of(kind: Any) -> TypeAdapter[Any]:
    """Return what reads and writes values of a type; to make it is slow."""
    return TypeAdapter(kind)


class Typed(LastValue[Any]):
    """Hold a value of the annotated type, as in `Annotated[list[Card], Typed]`.

    Plain values become models when they are written, and when a checkpoint is read.
    """

    def update(self, values: Sequence[Any]) -> bool:
        return super().update([adapter_of(self.typ).validate_python(each) for each in values])

    def from_checkpoint(self, checkpoint: Any) -> Self:
        try:
            return super().from_checkpoint(adapter_of(self.typ).validate_python(checkpoint))
        except ValidationError:  # nothing was written, or it is of a form that this version does not know
            return super().from_checkpoint(checkpoint)

    def checkpoint(self) -> Any:
        if not self.is_available():
            return self.value
        return adapter_of(self.typ).dump_python(self.value, mode="json", warnings=False)


class Plain(LastValue[Any]):
    """Hold what users are given: models and plain values become JSON values when they are written."""

    def update(self, values: Sequence[Any]) -> bool:
        return super().update([to_jsonable_python(each) for each in values])
