"""`mneme doctor`: what works, what does not, and how to fix it."""

import os
import shutil
from collections.abc import AsyncIterator, Callable
from typing import Literal

from langsmith.utils import tracing_is_enabled
from pydantic import BaseModel

from mneme.api.pools import Pools
from mneme.cli.show import console, emit, print_table
from mneme.client.home import open_operations, opened
from mneme.client.measured import ModelMeasurements, measured_models
from mneme.core.errors import MnemeError
from mneme.core.settings import settings
from mneme.models.asking.responders import check
from mneme.models.embedding.absent import BUNDLED, Absent
from mneme.models.embedding.embedders import open_embedder
from mneme.models.ollama.catalogue import Facts, LoadedModel, survey
from mneme.nodes.background import MORE_WORKERS
from mneme.stores.access import roles
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.query import ClusterLayout

MIN_FREE_BYTES = 1024**3
ENGLISH_ONLY = (
    "all-MiniLM-L6-v2 knows English only; for other languages: mneme embedder install multilingual, "
    "then MNEME_EMBEDDER=multilingual mneme memories reembed"
)
STATE_SIGNS = {"ok": "ok", "warning": "!", "failure": "FAILED"}
State = Literal["ok", "warning", "failure"]


class Finding(BaseModel):
    """The result of one check; only a `failure` keeps Mneme from running."""

    what: str
    state: State
    detail: str
    fix: str = ""


def _found(what: str, detail: str, fix: str = "", state: State | None = None) -> Finding:
    """Return a finding: a warning where there is something to fix, unless its state is given."""
    return Finding(what=what, state=state or ("warning" if fix else "ok"), detail=detail, fix=fix)


async def doctor() -> int:
    """Check models, embedder, store, checkpoints, folders and tracing; print how to fix each problem."""
    findings = [finding async for finding in examine()]
    for finding in findings:
        emit(finding)
    rows = ((f"{STATE_SIGNS[each.state]} {each.what}", each.detail, each.fix) for each in findings)
    print_table("", ("check", "state", "how to fix it"), rows)
    states = [each.state for each in findings]
    if failures := states.count("failure"):
        console.print(f"Mneme cannot run: {failures} problem(s) to fix.")
        return 1
    console.print("Mneme can run; ! marks what could be better." if "warning" in states else "Mneme can run.")
    return 0


async def examine() -> AsyncIterator[Finding]:
    """Check each part and yield the finding; with settings that cannot be read, nothing else can be."""
    try:
        settings()
    except MnemeError as error:
        yield _found("settings", str(error), error.hint, "failure")
        return
    for what, state, check_ in CHECKS:
        try:
            async for finding in check_():
                yield finding
        except MnemeError as error:
            yield _found(what, str(error), error.hint, state)


async def _responders() -> AsyncIterator[Finding]:
    """Check the responders."""
    if settings().auto:  # its client is opened, no more: a question to a provider costs money
        await check("auto")
        yield _found("auto", f"{settings().auto} answers (MNEME_AUTO)")
        return
    try:
        server = await survey(settings().ollama_url)
    except MnemeError as error:  # a warning: rules can do the work
        yield _found("Ollama", f"{error} `rules` answers instead.", error.hint)
        return
    yield _found("Ollama", f"{server.version} at {server.url}")
    loaded = {model.name: model for model in server.loaded}
    for model in server.models:
        yield _model(model, loaded.get(model.name))
    name, wanted = settings().model, settings().num_ctx
    chosen = next((each for each in server.models if each.name in {name, f"{name}:latest"}), None)
    if chosen is None:
        yield _found("auto", f"Ollama does not have {name}: `rules` answers instead.", f"ollama pull {name}")
    elif chosen.context_length and chosen.context_length < wanted:  # Ollama would cut prompts silently
        detail = f"{name} has a context of {chosen.context_length}, less than {wanted}"
        yield _found("auto", detail, f"MNEME_NUM_CTX={chosen.context_length}")
    else:
        yield _found("auto", f"{name} answers")


def _model(model: Facts, loaded: LoadedModel | None) -> Finding:
    parts = [model.parameters, model.quantization, ", ".join(sorted(model.capabilities))]
    parts.append(f"context {model.context_length}" if model.context_length else "")
    fix = ""
    if loaded is None:
        parts.append("not loaded")
    else:
        parts.append(f"loaded with context {loaded.context_length}, {loaded.gpu_share:.0%} on the GPU")
        if loaded.gpu_share < 1:
            fix = "Lower MNEME_NUM_CTX or use a smaller model: the part that is not on the GPU is slow."
    return _found(model.name, "; ".join(filter(None, parts)), fix)


async def _measured() -> AsyncIterator[Finding]:
    """Yield for each model the roles for which `mneme eval model` found it fit, and those for which not."""
    for responder, measured in measured_models().items():
        days = sorted({found.on for found in measured.roles.values()})
        when = " to ".join(dict.fromkeys([*days[:1], *days[-1:]]))
        fit, unfit = (_by_workflow(measured, is_fit) for is_fit in (True, False))
        told = [f"fit for {fit}" if fit else "", f"not fit for {unfit}" if unfit else ""]
        detail = "; ".join(filter(None, [f"{responder} was measured on {when}", *told]))
        fix = "Give these roles another model (`mneme eval model` says why)." if unfit else ""
        yield _found("fitness", detail, fix)


def _by_workflow(measured: ModelMeasurements, is_fit: bool) -> str:
    """Join roles, `<workflow>: <role>`, as `chat (chatbot, memory_agent), learning (leader)`."""
    named: dict[str, list[str]] = {}
    for name in (each for each, found in measured.roles.items() if found.fit == is_fit):
        workflow, _, role = name.partition(": ")
        named.setdefault(workflow, []).append(role)
    return ", ".join(f"{workflow} ({', '.join(of)})" for workflow, of in named.items())


async def _embedder() -> AsyncIterator[Finding]:
    embedder = await open_embedder(settings().embedder)
    english = ENGLISH_ONLY if embedder.name == BUNDLED.name else ""
    if isinstance(embedder, Absent):
        why, how = embedder.missing
        yield _found("embedder", f"{why} Searches go by words.", ". ".join(filter(None, [how, english])))
        return
    await embedder.embed_query("a test")
    yield _found("embedder", f"{embedder.name}, {embedder.dimension} dimensions", english, "ok")


async def _ledger() -> AsyncIterator[Finding]:
    """Check the ledger; or the server that has it open."""
    async with opened(reading=True) as place:
        if isinstance(place, Ledger):
            info, records = await place.info(), await place.count()
            detail = f"{info.kind} at {info.location}: {records} records, {info.embedder} ({info.dimension})"
            yield _found("ledger", detail)
            if info.layout:
                yield _layout(info.layout)
            return
        from mneme.client.remote import workers_of  # an HTTP client is slow to import

        yield _found("ledger", f"served by {place.base_url}")
        try:
            workers = await workers_of(place)
        except MnemeError as error:
            yield _found("server", str(error), error.hint)
            return
        # the default of `langgraph dev`: the memory agent's work comes before the next reply
        alone = "It runs one thing at a time: replies wait for background work."
        is_alone = workers == 1
        yield _found("server", alone if is_alone else f"{workers} runs at once", MORE_WORKERS * is_alone)


def _layout(layout: ClusterLayout) -> Finding:
    """Report the ledger's layout on the server, unused parts, and settings that differ."""
    detail = f"{layout.shards} shards × {layout.replicas} replicas, a write counts with {layout.writes}"
    given, fix = settings(), ""
    asked = {
        "MNEME_QDRANT_SHARDS": (given.qdrant_shards, layout.shards),
        "MNEME_QDRANT_REPLICAS": (given.qdrant_replicas, layout.replicas),
        "MNEME_QDRANT_WRITES": (given.qdrant_writes, layout.writes),
    }
    other = [f"{name}={wish}" for name, (wish, is_so) in asked.items() if wish not in (None, is_so)]
    if layout.not_in_use:
        detail += f"; not in use: {', '.join(layout.not_in_use)}"
        fix = "Start the node again: it catches up by itself. One that is lost: docs/scaling.md."
    elif other:
        detail += f"; {', '.join(other)} has no effect: the ledger was made before"
        fix = (
            "Stop the writers and run `mneme memories reembed`: it makes the ledger anew as the settings say."
        )
    return _found("Qdrant", detail, fix)


async def _pools() -> AsyncIterator[Finding]:
    """Check the team's pools, and which version of each retriever is in use."""
    team = os.environ.get("MNEME_TEAM", "local")  # as --team has it where a command takes one
    async with open_operations(Pools, team, reading=True) as shared:
        for pool in await shared.list():
            if problem := await shared.serving_problem(pool.pool):
                fix = f"mneme share retriever rollback --pool {pool.pool} --to-version 0"
                yield _found(f"pool {pool.pool}", problem, fix)
                continue
            versions = f"retriever {pool.serving} of {len(pool.versions)}"
            used = versions if pool.serving else "the untrained embedder"
            detail = f"{pool.memories} memories, {pool.waiting} not learned yet; {used} is in use"
            yield _found(f"pool {pool.pool}", detail)


async def _checkpoints() -> AsyncIterator[Finding]:
    location = settings().checkpoints_location
    head, at, tail = location.rpartition("@")
    shown = f"{head.partition('://')[0]}://…@{tail}" if at else location  # without a password
    async with open_checkpointer(location) as checkpointer:
        yield _found("checkpoints", f"{type(checkpointer).__name__} at {shown}")


async def _surroundings() -> AsyncIterator[Finding]:
    home = settings().home.absolute()
    folder = next(each for each in (home, *home.parents) if each.exists())  # no home before the first use
    free = shutil.disk_usage(folder).free
    detail = f"{home} keeps memories, checkpoints and runs (MNEME_HOME); {free / 1024**3:.1f} GiB free"
    if not os.access(folder, os.W_OK):
        fix = "Set MNEME_HOME to a folder that you may write to."
        yield _found("home", f"{folder} is read-only", fix, "failure")
    else:
        yield _found("home", detail, "Free some space, or set MNEME_HOME." if free < MIN_FREE_BYTES else "")


async def _settings() -> AsyncIterator[Finding]:
    """Check benchmark files, tracing, and users."""
    data, users = settings().data, settings().auth
    if data is None:
        yield _found("benchmarks", "no folder (MNEME_DATA is not set)")
    elif data.is_dir() and any(data.iterdir()):
        yield _found("benchmarks", f"files in {data}")
    else:  # the name is easily taken for the folder of the memories
        fix = "MNEME_DATA is for benchmark files only. To keep your memories there, set MNEME_HOME instead."
        yield _found("benchmarks", f"{data} has no files", fix)
    if not tracing_is_enabled():
        yield _found("LangSmith", "off (LANGSMITH_TRACING=true turns it on)")
    elif not os.environ.get("LANGSMITH_API_KEY") and not os.environ.get("LANGCHAIN_API_KEY"):
        yield _found(
            "LangSmith", "on, but without a key", "Set LANGSMITH_API_KEY, or LANGSMITH_TRACING=false."
        )
    else:
        yield _found("LangSmith", "on: runs and their texts are sent to LangSmith")
    if users is None:
        yield _found("users", "one person, this machine only (MNEME_AUTH is not set)")
    elif users.exists():
        yield _found("users", f"keys in {users}")
    else:
        missing = f"{users} does not exist: nobody can use the server."
        yield _found("users", missing, "mneme users add NAME", "failure")
    if (path := settings().roles) is not None:
        shared = f"{path} names {', '.join(roles().teams) or 'no team'}"
        alone = "Set MNEME_AUTH: without keys whoever works here has all rights."
        yield _found("roles", shared, "" if users else alone)


CHECKS: tuple[tuple[str, State, Callable[[], AsyncIterator[Finding]]], ...] = (
    ("auto", "failure", _responders),
    ("measured models", "warning", _measured),
    ("embedder", "failure", _embedder),
    ("ledger", "failure", _ledger),
    ("pools", "warning", _pools),
    ("checkpoints", "failure", _checkpoints),
    ("home", "failure", _surroundings),
    ("settings", "failure", _settings),
)
"""The checks in order, each with the state that is reported if it raises an error."""
