"""Building blocks of all workflows: the graph, the channels of its state, its input, and the run of a step.

A graph also runs without a context, and inside another graph. Its state holds Mneme's models, which are
stored in checkpoints as plain JSON. So nodes neither dump nor validate, no class of Mneme is named in a
checkpoint, and plain values that an earlier version wrote are read as today's models.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from functools import cache, wraps
from threading import Thread
from typing import Any, Self, TypeVar, cast

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.tracers.base import BaseTracer
from langgraph.channels import LastValue
from langgraph.config import get_config
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime, get_runtime
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python
from typing_extensions import TypedDict

from mneme.core.errors import BadInput, first_fault
from mneme.models.asking.counting import Asked, counting
from mneme.models.asking.lazily import import_lazily

Update = dict[str, Any]
"""A node's update: new values of channels, by name."""
Node = TypeVar("Node", bound=Callable[..., Awaitable[Update]])
TRACE_LINK_SECONDS = 2.0
"""Maximum seconds that a step waits for LangSmith to return a project's page; then the link is left out."""

_pages: dict[tuple[str, str], str] = {}
_lookups: dict[tuple[str, str], Thread] = {}


class CompiledWorkflow(CompiledStateGraph[Any, Any, Any, Any]):
    """A compiled graph whose steps always get a context of this graph's type.

    LangGraph passes the parent's context to a subgraph unchanged, and None if none was given.
    """

    def astream(self, *given: Any, context: Any = None, **more: Any) -> AsyncIterator[Any]:
        """Yield the stream of a run, as CompiledStateGraph does. Raises BadInput for a wrong context.

        From a context of another type, given or the parent's, this graph's fields are taken.
        """
        kind = self.context_schema
        if kind is None or isinstance(context, kind | dict):  # LangGraph makes the context of a dict itself
            return super().astream(*given, context=context, **more)
        if context is None:
            with suppress(RuntimeError, AttributeError):  # there is no parent graph
                context = get_runtime().context
        if not isinstance(context, kind):
            if is_dataclass(context) and not isinstance(context, type):
                context = asdict(context)
            fields = dict(context) if isinstance(context, BaseModel | Mapping) else {}
            try:  # with fields of the same name, since a parent's context has others, too
                context = kind(**{name: fields[name] for name in kind.model_fields.keys() & fields.keys()})
            except ValidationError as error:
                wrong = f"The parent's context does not fit {self.name}: {first_fault(error)}"
                raise BadInput(wrong, "Give this graph a context of its own.") from error
        return super().astream(*given, context=context, **more)


class Workflow(StateGraph[Any, Any, Any, Any]):
    """A StateGraph that is compiled to a `CompiledWorkflow`."""

    def compile(self, *args: Any, **more: Any) -> CompiledWorkflow:
        """Compile the graph to a `CompiledWorkflow`."""
        # `StateGraph.compile` takes no class to build, so its parts are copied into one of ours. A wrapper
        # would not be the Pregel that Studio, the server and a parent graph look for.
        parts = vars(super().compile(*args, **more)).items()
        return CompiledWorkflow(**{name: part for name, part in parts if not name.startswith("_")})


def counted(node: Node) -> Node:
    """Add the counts of a node's questions to its update, as `asked`; a decorator."""

    @wraps(node)
    async def counting_node(state: Any, runtime: Any) -> dict[str, Any]:
        with counting() as asked:
            update = await node(state, runtime)
        return {**update, "asked": Asked(**asked)}

    return cast(Node, counting_node)


@cache
def adapter_of(kind: Any) -> TypeAdapter[Any]:
    """Return the adapter that reads and writes values of a type; cached, since making it is slow."""
    return TypeAdapter(kind)


class Typed(LastValue[Any]):
    """A channel with a value of the annotated type, as in `Annotated[list[Card], Typed]`.

    Plain values become models when written to the channel, and when a checkpoint is read.
    """

    def update(self, values: Sequence[Any]) -> bool:
        # Pydantic passes an instance of the annotated model through: only plain values are validated.
        return super().update([adapter_of(self.typ).validate_python(each) for each in values])

    def from_checkpoint(self, checkpoint: Any) -> Self:
        try:
            return super().from_checkpoint(adapter_of(self.typ).validate_python(checkpoint))
        except ValidationError:  # no value yet, or one of another version's form
            return super().from_checkpoint(checkpoint)

    def checkpoint(self) -> Any:
        if not self.is_available():
            return self.value  # LangGraph's mark of an empty channel, which is no value of the type
        # Without warnings: what passed `update` may have fields that `model_copy` set to another type.
        return adapter_of(self.typ).dump_python(self.value, mode="json", warnings=False)


class Plain(LastValue[Any]):
    """A channel for output: models and plain values become JSON values when written to it."""

    def update(self, values: Sequence[Any]) -> bool:
        return super().update([to_jsonable_python(each) for each in values])


def read_input(kind: type, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a graph's input as its TypedDict `kind` declares it, with defaults for missing fields.

    Raises BadInput for the first field at fault; its hint is the field's description.
    """
    # Studio sends null for a field that was left open.
    adapter, given = adapter_of(kind), {name: each for name, each in state.items() if each is not None}
    try:
        read: dict[str, Any] = adapter.validate_python(given)
    except ValidationError as error:
        about = adapter.json_schema()["properties"].get(str(error.errors()[0]["loc"][0]), {})
        raise BadInput(first_fault(error), about.get("description", "")) from error
    return read


class Traced(TypedDict):
    """The run in which something was done, and its page in LangSmith; empty if tracing is off."""

    run_id: str
    trace: str


async def traced(runtime: Runtime[Any]) -> Traced:
    """Return the root run of this step, by the id that its tracer, the server or the caller gave it.

    Without such an id, the step's own is returned. Only for steps in the background: with tracing on, the
    first one waits for LangSmith.
    """
    config = get_config()
    manager = cast(BaseCallbackManager, config["callbacks"])  # inside a node a manager, never a list
    step = str(manager.parent_run_id)
    for handler in manager.handlers:
        if isinstance(handler, BaseTracer) and (run := handler.run_map.get(step)):
            page = await _project_page(handler, run.session_name or "")
            return Traced(run_id=str(run.trace_id), trace=page and f"{page}/r/{run.trace_id}")
    given = config.get("configurable", {}).get("run_id")
    if given is None and runtime.execution_info is not None:
        given = runtime.execution_info.run_id
    return Traced(run_id=str(given or step), trace="")


async def _project_page(tracer: BaseTracer, name: str) -> str:
    """Return the page of the project that a tracer writes to; empty for a tracer other than LangSmith's."""
    langsmith = await import_lazily("langchain_core.tracers.langchain")
    if not isinstance(tracer, langsmith.LangChainTracer):
        return ""
    client = cast(Any, tracer).client
    place = (str(client.api_url), name)
    known = _pages.get(place, "")
    return known or await asyncio.to_thread(_look_up, client, place)


def _look_up(client: Any, place: tuple[str, str]) -> str:
    """Ask LangSmith for a project, with one request at a time; a late answer is cached for the next call."""
    # A daemon thread of its own: the process would wait at its end for one of an executor.
    asking = _lookups.get(place)
    if asking is None or not asking.is_alive():
        asking = _lookups[place] = Thread(target=_ask, args=(client, place), daemon=True)
        asking.start()
    asking.join(TRACE_LINK_SECONDS)
    return _pages.get(place, "")


def _ask(client: Any, place: tuple[str, str]) -> None:
    from langsmith.utils import LangSmithError  # noqa: PLC0415  (loads its client, which the tracer has loaded)

    with suppress(LangSmithError, ValueError):  # then no link is shown; the client logs the reason
        _pages[place] = str(client.read_project(project_name=place[1]).url)
