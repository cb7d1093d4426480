"""What checkpoints hold, written as plain values and restored through a list of plain types.

There is no pickle in them and no class of ours, so that whoever can write to the database cannot make a
reader run code.
"""

from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Overwrite, Send
from pydantic import BaseModel


class PlainSerializer(JsonPlusSerializer):
    """Write models of our own as plain JSON values; restore LangGraph's safe types and no other."""

    def __init__(self) -> None:
        super().__init__(pickle_fallback=False, allowed_msgpack_modules=None)

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        return super().dumps_typed(_plain(obj))


def _plain(value: Any) -> Any:
    if type(value) is dict:
        return {key: _plain(each) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    if isinstance(value, Send):
        return Send(value.node, _plain(value.arg), timeout=value.timeout)
    if isinstance(value, Overwrite):
        return Overwrite(_plain(value.value))
    is_ours = isinstance(value, BaseModel) and type(value).__module__.startswith("mneme.")
    return value.model_dump(mode="json") if is_ours else value
