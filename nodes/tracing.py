"""Which run a step belongs to, and where LangSmith shows it."""

import asyncio
from contextlib import suppress
from threading import Thread
from typing import Any, cast

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.tracers.base import BaseTracer
from langgraph.config import get_config
from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from mneme.models.asking.lazily import import_lazily

PATIENCE = 2.0
"""Seconds that a step waits for LangSmith to say where a project is shown; then it goes without."""

_pages: dict[tuple[str, str], str] = {}
_lookups: dict[tuple[str, str], Thread] = {}


class Traced(TypedDict):
    """The run that something was done in, and its page in LangSmith; no page where tracing is off."""

    run_id: str
    trace: str


async def traced(runtime: Runtime[Any]) -> Traced:
    """Return the whole run that this step is part of, as its tracer, the server or the caller knows it.

    Where nobody gave it an id, the step's own stands for it. For steps in the background: the first one with
    tracing on waits for LangSmith.
    """
    config = get_config()
    manager = cast(BaseCallbackManager, config["callbacks"])
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
    """Return the page of a project that a tracer writes to; empty for a tracer that is not LangSmith's."""
    langsmith = await import_lazily("langchain_core.tracers.langchain")
    if not isinstance(tracer, langsmith.LangChainTracer):
        return ""
    client = cast(Any, tracer).client
    place = (str(client.api_url), name)
    known = _pages.get(place, "")
    return known or await asyncio.to_thread(_look_up, client, place)


def _look_up(client: Any, place: tuple[str, str]) -> str:
    """Ask LangSmith for a project, once at a time; the answer may come after nobody waits for it any more."""
    asking = _lookups.get(place)
    if asking is None or not asking.is_alive():
        asking = _lookups[place] = Thread(target=_ask, args=(client, place), daemon=True)
        asking.start()
    asking.join(PATIENCE)
    return _pages.get(place, "")


def _ask(client: Any, place: tuple[str, str]) -> None:
    from langsmith.utils import LangSmithError  # noqa: PLC0415  (loads its client, which the tracer has loaded)

    with suppress(LangSmithError, ValueError):  # no link is shown; LangSmith's client says what is wrong
        _pages[place] = str(client.read_project(project_name=place[1]).url)
