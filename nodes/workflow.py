"""Graphs that also run without a context, and inside another graph; steps that count what they ask."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from functools import wraps
from typing import Any, TypeVar, cast

from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import get_runtime
from pydantic import BaseModel, ValidationError

from mneme.core.errors import BadInput, first_fault
from mneme.models.asking.counting import Asked, counting

Node = TypeVar("Node", bound=Callable[..., Awaitable[dict[str, Any]]])


class CompiledWorkflow(CompiledStateGraph[Any, Any, Any, Any]):
    """A compiled graph whose steps find a context of their own kind, whoever runs it.

    LangGraph hands a subgraph the context of its parent as it is, and none where none was given.
    """

    def stream(self, *given: Any, context: Any = None, **more: Any) -> Iterator[Any]:
        """Yield the stream of a run, as CompiledStateGraph does. Raises BadInput for a wrong context."""
        return super().stream(*given, context=self._own(context), **more)

    def astream(self, *given: Any, context: Any = None, **more: Any) -> AsyncIterator[Any]:
        """Yield the stream of a run, as CompiledStateGraph does. Raises BadInput for a wrong context."""
        return super().astream(*given, context=self._own(context), **more)

    def _own(self, given: Any) -> Any:
        """Return a context of this graph's kind: of the given one or the parent's, the fields that it has."""
        kind = self.context_schema
        if kind is None or isinstance(given, kind | dict):
            return given
        if given is None:
            with suppress(RuntimeError, AttributeError):  # it runs in no other graph
                given = get_runtime().context
        if isinstance(given, kind):
            return given
        try:
            return kind(
                **{name: value for name, value in _fields(given).items() if name in kind.model_fields}
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
        # `StateGraph.compile` names the class that it makes and offers no other. A wrapper would not be the
        # Pregel that Studio, the server and a parent graph look for.
        compiled.__class__ = CompiledWorkflow
        assert isinstance(compiled, CompiledWorkflow)
        return compiled


def counted(node: Node) -> Node:
    """Add to a node's update, as `asked`, the questions that it asked; a decorator."""

    @wraps(node)
    async def counting_node(state: Any, runtime: Any) -> dict[str, Any]:
        with counting() as asked:
            update = await node(state, runtime)
        return {**update, "asked": Asked(**asked)}

    return cast(Node, counting_node)
