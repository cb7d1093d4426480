"""`mneme doctor`: what works, what does not, and how to fix it."""

import os
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Literal

from langsmith.utils import tracing_is_enabled
from pydantic import BaseModel

from mneme.api.pools import Pools, RetrieverState
from mneme.cli.show import console, emit, print_table
from mneme.client.home import open_operations, open_or_find_server
from mneme.client.measured import Measured, measured_models
from mneme.core.errors import MnemeError
from mneme.core.settings import settings
from mneme.models.asking.responders import check
from mneme.models.embedding.absent import BUNDLED, Absent
from mneme.models.embedding.embedders import open_embedder
from mneme.models.ollama.catalogue import Facts, Loaded, Server, survey
from mneme.nodes.background import MORE_WORKERS
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from mneme.stores.ledger.engine import Layout

ENOUGH_DISK = 1024**3
ENGLISH_ONLY = (
    "all-MiniLM-L6-v2 knows English only; for other languages: mneme embedder install multilingual, "
    "then MNEME_EMBEDDER=multilingual mneme memories reembed"
)
SIGNS = {"ok": "ok", "warning": "!", "failure": "FAILED"}


State = Literal["ok", "warning", "failure"]


class Finding(BaseModel):
    """The result of one check; only a `failure` keeps Mneme from running."""

    what: str
    state: State
    detail: str
    fix: str = ""


def _found(what: str, detail: str, fix: str = "", state: State = "ok") -> Finding:
    return Finding(what=what, state=state, detail=detail, fix=fix)


async def doctor() -> int:
    """Check models, embedder, store, checkpoints, folders and tracing; print how to fix each problem."""
    findings = [finding async for finding in examine()]
    for finding in findings:
        emit(finding)
    rows = ((SIGNS[each.state], each.what, each.detail, each.fix) for each in findings)
    print_table("", ("", "what", "state", "how to fix it"), rows)
    console.print(_summary(findings))
    return 1 if any(each.state == "failure" for each in findings) else 0


def _summary(findings: list[Finding]) -> str:
    states = [each.state for each in findings]
    if "failure" in states:
        return f"Mneme cannot run: {states.count('failure')} problem(s) to fix."
    return "Mneme can run." if "warning" not in states else "Mneme can run; ! marks what could be better."


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
    """See who answers; the responder that MNEME_AUTO names is asked no question."""
    if settings().auto:
        await check("auto")
        yield _found("auto", f"{settings().auto} answers (MNEME_AUTO)")
        return
    try:
        server = await survey(settings().ollama_url)
    except MnemeError as error:
        yield _found("Ollama", f"{error} `rules` answers instead.", error.hint, "warning")
        return
    yield _found("Ollama", f"{server.version} at {server.url}")
    loaded = {model.name: model for model in server.loaded}
    for model in server.models:
        yield _model(model, loaded.get(model.name))
    yield _default_model(server)


def _model(model: Facts, loaded: Loaded | None) -> Finding:
    parts = [model.parameters, model.quantization, ", ".join(sorted(model.capabilities))]
    parts.append(f"context {model.context_length}" if model.context_length else "")
    if loaded is None:
        return _found(model.name, _join(*parts, "not loaded"))
    parts.append(f"loaded with context {loaded.context_length}, {loaded.gpu_share:.0%} on the GPU")
    if loaded.gpu_share >= 1:
        return _found(model.name, _join(*parts))
    fix = "Lower MNEME_NUM_CTX or use a smaller model: the part that is not on the GPU is slow."
    return _found(model.name, _join(*parts), fix, "warning")


def _default_model(server: Server) -> Finding:
    name = settings().model
    model = next((each for each in server.models if each.name in {name, f"{name}:latest"}), None)
    if model is None:
        missing = f"Ollama does not have {name}: `rules` answers instead."
        return _found("auto", missing, f"ollama pull {name}", "warning")
    if model.context_length and model.context_length < settings().num_ctx:
        detail = f"{name} has a context of {model.context_length}, less than {settings().num_ctx}"
        return _found("auto", detail, f"MNEME_NUM_CTX={model.context_length}", "warning")
    return _found("auto", f"{name} answers")


async def _measured() -> AsyncIterator[Finding]:
    """Say for which roles each model was found fit by `mneme eval model`."""
    for responder, measured in measured_models().items():
        yield _fitness(responder, measured)


def _fitness(responder: str, measured: Measured) -> Finding:
    fit = [role for role, found in measured.roles.items() if found.fit]
    unfit = [role for role in measured.roles if role not in fit]
    days = sorted({found.on for found in measured.roles.values()})
    when = " to ".join(dict.fromkeys([*days[:1], *days[-1:]]))
    told = [
        f"fit for {_by_workflow(fit)}" if fit else "",
        f"not fit for {_by_workflow(unfit)}" if unfit else "",
    ]
    detail = _join(f"{responder} was measured on {when}", *told)
    fix = "Give these roles another model (`mneme eval model` says why)." if unfit else ""
    return _found("fitness", detail, fix, "warning" if unfit else "ok")


def _by_workflow(roles: list[str]) -> str:
    """Join roles, `<workflow>: <role>`, as `chat (chatbot, memory_agent), learning (leader)`."""
    named: dict[str, list[str]] = {}
    for workflow, _, role in (each.partition(": ") for each in roles):
        named.setdefault(workflow, []).append(role)
    return ", ".join(f"{workflow} ({', '.join(of)})" for workflow, of in named.items())


async def _embedder() -> AsyncIterator[Finding]:
    embedder = await open_embedder(settings().embedder)
    if isinstance(embedder, Absent):
        why, how = embedder.missing
        fix = ". ".join(filter(None, [how, ENGLISH_ONLY if embedder.name == BUNDLED.name else ""]))
        yield _found("embedder", f"{why} Searches go by words.", fix, "warning")
        return
    await embedder.embed_query("a test")
    fix = ENGLISH_ONLY if embedder.name == BUNDLED.name else ""
    yield _found("embedder", f"{embedder.name}, {embedder.dimension} dimensions", fix)


async def _ledger() -> AsyncIterator[Finding]:
    """Check the ledger, or the server that has it open."""
    ledger = await open_or_find_server(reading=True)
    if isinstance(ledger, str):
        yield _found("ledger", f"served by {ledger}")
        yield await _workers(ledger)
        return
    info, records = await ledger.info(), await ledger.count()
    await ledger.close()
    detail = f"{info.kind} at {info.location}: {records} records, {info.embedder} ({info.dimension})"
    yield _found("ledger", detail)
    if info.layout:
        yield _layout(info.layout)


def _layout(layout: Layout) -> Finding:
    """Say how the ledger lies on the server, what is out of use, and what the settings say otherwise."""
    detail = f"{layout.shards} shards × {layout.replicas} replicas, a write counts with {layout.writes}"
    if layout.not_in_use:
        gone = f"{detail}; not in use: {', '.join(layout.not_in_use)}"
        fix = "Start the node again: it catches up by itself. One that is lost: docs/scaling.md."
        return _found("Qdrant", gone, fix, "warning")
    given = settings()
    asked = {
        "MNEME_QDRANT_SHARDS": (given.qdrant_shards, layout.shards),
        "MNEME_QDRANT_REPLICAS": (given.qdrant_replicas, layout.replicas),
        "MNEME_QDRANT_WRITES": (given.qdrant_writes, layout.writes),
    }
    other = [f"{name}={wish}" for name, (wish, is_so) in asked.items() if wish not in (None, is_so)]
    if other:
        detail = f"{detail}; {', '.join(other)} has no effect: the ledger was made before"
        fix = (
            "Stop the writers and run `mneme memories reembed`: it makes the ledger anew as the settings say."
        )
        return _found("Qdrant", detail, fix, "warning")
    return _found("Qdrant", detail)


async def _workers(url: str) -> Finding:
    """Tell whether a reply must wait for background work, since the server runs one thing at a time."""
    from mneme.client.remote import workers_of  # an HTTP client is slow to import

    try:
        workers = await workers_of(url)
    except MnemeError as error:
        return _found("server", str(error), error.hint, "warning")
    if workers == 1:
        detail = "It runs one thing at a time: replies wait for background work."
        return _found("server", detail, MORE_WORKERS, "warning")
    return _found("server", f"{workers} runs at once")


async def _pools() -> AsyncIterator[Finding]:
    """Check the team's pools, and which version of each retriever is in use."""
    async with open_operations(Pools, os.environ.get("MNEME_TEAM", "local"), reading=True) as shared:
        for each in await shared.list():
            yield _pool(each, await shared.serving_problem(each.pool))


def _pool(pool: RetrieverState, problem: str) -> Finding:
    what = f"pool {pool.pool}"
    if problem:
        fix = f"mneme share retriever rollback --pool {pool.pool} --to 0"
        return _found(what, problem, fix, "warning")
    used = f"retriever {pool.serving} of {len(pool.versions)}" if pool.serving else "the untrained embedder"
    return _found(what, f"{pool.memories} memories, {pool.waiting} not learned yet; {used} is in use")


async def _checkpoints() -> AsyncIterator[Finding]:
    location = settings().checkpoints_location
    async with open_checkpointer(location) as checkpointer:
        yield _found("checkpoints", f"{type(checkpointer).__name__} at {_without_password(location)}")


def _without_password(location: str) -> str:
    head, at, tail = location.rpartition("@")
    return f"{head.partition('://')[0]}://…@{tail}" if at else location


async def _surroundings() -> AsyncIterator[Finding]:
    yield _home()
    yield _data()
    yield _langsmith()
    yield _users()


CHECKS: tuple[tuple[str, State, Callable[[], AsyncIterator[Finding]]], ...] = (
    ("auto", "failure", _responders),
    ("measured models", "warning", _measured),
    ("embedder", "failure", _embedder),
    ("ledger", "failure", _ledger),
    ("pools", "warning", _pools),
    ("checkpoints", "failure", _checkpoints),
    ("home", "failure", _surroundings),
)
"""The checks in order, and what it is where one raises an error."""


def _home() -> Finding:
    home = settings().home.absolute()
    folder = next(each for each in (home, *home.parents) if each.exists())
    free = shutil.disk_usage(folder).free
    detail = f"{home} keeps memories, checkpoints and runs (MNEME_HOME); {free / 1024**3:.1f} GiB free"
    if not os.access(folder, os.W_OK):
        fix = "Set MNEME_HOME to a folder that you may write to."
        return _found("home", f"{folder} is read-only", fix, "failure")
    if free < ENOUGH_DISK:
        return _found("home", detail, "Free some space, or set MNEME_HOME.", "warning")
    return _found("home", detail)


def _data() -> Finding:
    """Say what MNEME_DATA is for, since it is easily taken for the folder of the memories."""
    folder = settings().data
    if folder is None:
        return _found("benchmarks", "no folder (MNEME_DATA is not set)")
    if folder.is_dir() and any(folder.iterdir()):
        return _found("benchmarks", f"files in {folder}")
    fix = "MNEME_DATA is for benchmark files only. To keep your memories there, set MNEME_HOME instead."
    return _found("benchmarks", f"{folder} has no files", fix, "warning")


def _langsmith() -> Finding:
    if not tracing_is_enabled():
        return _found("LangSmith", "off (LANGSMITH_TRACING=true turns it on)")
    if not os.environ.get("LANGSMITH_API_KEY") and not os.environ.get("LANGCHAIN_API_KEY"):
        fix = "Set LANGSMITH_API_KEY, or LANGSMITH_TRACING=false."
        return _found("LangSmith", "on, but without a key", fix, "warning")
    return _found("LangSmith", "on: runs and their texts are sent to LangSmith")


def _users() -> Finding:
    file = settings().auth
    if file is None:
        return _found("users", "one person, this machine only (MNEME_AUTH is not set)")
    if not Path(file).exists():
        missing = f"{file} does not exist: nobody can use the server."
        return _found("users", missing, "mneme users add NAME", "failure")
    return _found("users", f"keys in {file}")


def _join(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
