"""Checkpoints for tests: saved, listed, and kept as differences."""

from collections.abc import Sequence
from itertools import chain
from typing import Annotated, Any, cast
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, CheckpointMetadata, empty_checkpoint
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

Saver = BaseCheckpointSaver[str]


def thread(name: str, **metadata: str) -> RunnableConfig:
    return {"configurable": {"thread_id": name}, "metadata": metadata}


async def put(saver: Saver, name: str, value: Any, **metadata: Any) -> RunnableConfig:
    """Save one checkpoint of one channel in a thread."""
    checkpoint: Checkpoint = {**empty_checkpoint(), "channel_values": {"x": value}}
    version = f"1.{uuid4().int}"
    checkpoint["channel_versions"] = {"x": version}
    config: RunnableConfig = {"configurable": {"thread_id": name, "checkpoint_ns": ""}}
    described = cast(CheckpointMetadata, {"source": "input", "step": 0, **metadata})
    return await saver.aput(config, checkpoint, described, {"x": version})


async def values(saver: Saver, name: str) -> list[Any]:
    """Return what the checkpoints of a thread hold, newest first."""
    return [each.checkpoint["channel_values"]["x"] async for each in saver.alist(thread(name))]


def in_differences() -> Any:
    """Return the builder of a graph that keeps its state as differences."""

    def joined(state: list[str], writes: Sequence[list[str]]) -> list[str]:
        return [*state, *chain.from_iterable(writes)]

    class Deltas(TypedDict):
        notes: Annotated[list[str], DeltaChannel(joined, list)]

    async def note(state: Deltas) -> Deltas:
        return {"notes": ["noted"]}

    return StateGraph(Deltas).add_node(note).add_edge(START, "note")
