"""Graphs that also run without a context, and inside another graph."""

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from pydantic import BaseModel, ValidationError

from mneme.core.errors import BadInput, first_fault

RUNTIME = "__pregel_runtime"
"""Where a node's config has the runtime of the graph that runs it."""


class CompiledWorkflow(CompiledStateGraph[Any, Any, Any, Any]):
    """A compiled graph whose steps find a context of their own kind, whoever runs it.

    LangGraph hands a subgraph the context of its parent as it is, and none where none was given.
    """

    def stream(
        self, input: Any, config: RunnableConfig | None = None, *, context: Any = None, **more: Any
    ) -> Iterator[Any]:
        """Yield the stream of a run, as CompiledStateGraph does. Raises BadInput for a wrong context."""
        return super().stream(input, config, context=self._own(context, config), **more)

    def astream(
        self, input: Any, config: RunnableConfig | None = None, *, context: Any = None, **more: Any
    ) -> AsyncIterator[Any]:
        """Yield the stream of a run, as CompiledStateGraph does. Raises BadInput for a wrong context."""
        return super().astream(input, config, context=self._own(context, config), **more)

    def _own(self, given: Any, config: RunnableConfig | None) -> Any:
        """Return a context of this graph's kind: of the given one or the parent's, the fields that it has."""
        kind = self.context_schema
        if kind is None or isinstance(given, kind | dict):
            return given
        runtime = ((config or {}).get("configurable") or {}).get(RUNTIME)
        known = given if given is not None else getattr(runtime, "context", None)
        if isinstance(known, kind):
            return known
        try:
            return kind(
                **{name: value for name, value in _fields(known).items() if name in kind.model_fields}
            )
        except ValidationError as error:
            wrong = f"The parent's context does not fit {self.name}: {first_fault(error)}"
            raise BadInput(wrong, "Give this graph a context of its own.") from error


def _fields(context: Any) -> Mapping[str, Any]:
    if isinstance(context, BaseModel):
        return dict(context)
    if is_dataclass(context) and not isinstance(context, type):
        return asdict(context)
    return context if isinstance(context, Mapping) else {}


class Workflow(StateGraph[Any, Any, Any, Any]):
    """A StateGraph that is compiled to a `CompiledWorkflow`."""

    def compile(self, *args: Any, **more: Any) -> CompiledWorkflow:
        """Compile the graph."""
        compiled = super().compile(*args, **more)
        compiled.__class__ = CompiledWorkflow  # StateGraph names the class that it makes, and offers no other
        assert isinstance(compiled, CompiledWorkflow)
        return compiled
