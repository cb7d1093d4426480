"""Channels of a graph's state that keep models of our own; checkpoints hold plain JSON values of them.

So nodes neither dump nor validate, no class of ours is named in a checkpoint, and what an earlier version
wrote there as plain values is read as the models of this one.
"""

from collections.abc import Sequence
from typing import Any, Self

from langgraph.channels import LastValue
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

Update = dict[str, Any]
"""What a node returns: new values of channels, by their names."""


class Typed(LastValue[Any]):
    """Hold a value of the annotated type, as in `Annotated[list[Card], Typed]`.

    Plain values become models when they are written, and when a checkpoint is read.
    """

    def __init__(self, typ: Any, key: str = "", kind: TypeAdapter[Any] | None = None) -> None:
        super().__init__(typ, key)
        self.kind = kind or TypeAdapter(typ)

    def copy(self) -> Self:
        same = self.__class__(self.typ, self.key, self.kind)
        same.value = self.value
        return same

    def update(self, values: Sequence[Any]) -> bool:
        return super().update([self.kind.validate_python(each) for each in values])

    def from_checkpoint(self, checkpoint: Any) -> Self:
        restored = self.__class__(self.typ, self.key, self.kind)
        try:
            restored.value = self.kind.validate_python(checkpoint)
        except ValidationError:  # nothing was written, or it is of a form that this version does not know
            restored.value = checkpoint
        return restored

    def checkpoint(self) -> Any:
        if not self.is_available():
            return self.value
        return self.kind.dump_python(self.value, mode="json", warnings=False)


class Plain(LastValue[Any]):
    """Hold what users are given: models and plain values become JSON values when they are written."""

    def update(self, values: Sequence[Any]) -> bool:
        return super().update([to_jsonable_python(each) for each in values])
