"""`mneme doctor`: what works, what does not, and how to fix it."""

import os
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Literal

from langsmith.utils import tracing_is_enabled
from pydantic import BaseModel

from mneme.api.pools import Pools, RetrieverState
from mneme.cli.show import console, print_json, print_table
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


class Finding(BaseModel):
    """The result of one check; only a `failure` keeps Mneme from running."""

    what: str
    state: Literal["ok", "warning", "failure"]
    detail: str
    fix: str = ""


async def doctor(as_json: bool) -> int:
    """Print every finding; return 1 if Mneme cannot run."""
    findings = [finding async for finding in examine()]
    if as_json:
        for finding in findings:
            print_json(finding)
    else:
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
        yield Finding(what="settings", state="failure", detail=str(error), fix=error.hint)
        return
    async for finding in _ollama() if not settings().auto else _named():
        yield finding
    for finding in _measured():
        yield finding
    yield await _embedder()
    async for finding in _ledger():
        yield finding
    async for finding in _pools():
        yield finding
    yield await _checkpoints()
    yield _home()
    yield _data()
    yield _langsmith()
    yield _users()


async def _ollama() -> AsyncIterator[Finding]:
    try:
        server = await survey(settings().ollama_url)
    except MnemeError as error:
        yield Finding(
            what="Ollama", state="warning", detail=f"{error} `rules` answers instead.", fix=error.hint
        )
        return
    yield Finding(what="Ollama", state="ok", detail=f"{server.version} at {server.url}")
    loaded = {model.name: model for model in server.loaded}
    for model in server.models:
        yield _model(model, loaded.get(model.name))
    yield _default_model(server)


async def _named() -> AsyncIterator[Finding]:
    """See whether the responder that MNEME_AUTO names can answer; it is asked no question."""
    try:
        await check("auto")
    except MnemeError as error:
        yield Finding(what="auto", state="failure", detail=f"MNEME_AUTO: {error}", fix=error.hint)
    else:
        yield Finding(what="auto", state="ok", detail=f"{settings().auto} answers (MNEME_AUTO)")


def _model(model: Facts, loaded: Loaded | None) -> Finding:
    parts = [model.parameters, model.quantization, ", ".join(sorted(model.capabilities))]
    parts.append(f"context {model.context_length}" if model.context_length else "")
    if loaded is None:
        return Finding(what=model.name, state="ok", detail=_join(*parts, "not loaded"))
    parts.append(f"loaded with context {loaded.context_length}, {loaded.gpu_share:.0%} on the GPU")
    if loaded.gpu_share >= 1:
        return Finding(what=model.name, state="ok", detail=_join(*parts))
    fix = "Lower MNEME_NUM_CTX or use a smaller model: the part that is not on the GPU is slow."
    return Finding(what=model.name, state="warning", detail=_join(*parts), fix=fix)


def _default_model(server: Server) -> Finding:
    name = settings().model
    model = next((each for each in server.models if each.name in {name, f"{name}:latest"}), None)
    if model is None:
        missing = f"Ollama does not have {name}: `rules` answers instead."
        return Finding(what="auto", state="warning", detail=missing, fix=f"ollama pull {name}")
    if model.context_length and model.context_length < settings().num_ctx:
        detail = f"{name} has a context of {model.context_length}, less than {settings().num_ctx}"
        return Finding(
            what="auto", state="warning", detail=detail, fix=f"MNEME_NUM_CTX={model.context_length}"
        )
    return Finding(what="auto", state="ok", detail=f"{name} answers")


def _measured() -> Iterator[Finding]:
    """Say for which roles each model was found fit by `mneme eval model`."""
    try:
        for responder, measured in measured_models().items():
            yield _fitness(responder, measured)
    except MnemeError as error:
        yield Finding(what="measured models", state="warning", detail=str(error), fix=error.hint)


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
    return Finding(what="fitness", state="warning" if unfit else "ok", detail=detail, fix=fix)


def _by_workflow(roles: list[str]) -> str:
    """Join roles, `<workflow>: <role>`, as `chat (chatbot, memory_agent), learning (leader)`."""
    named: dict[str, list[str]] = {}
    for workflow, _, role in (each.partition(": ") for each in roles):
        named.setdefault(workflow, []).append(role)
    return ", ".join(f"{workflow} ({', '.join(of)})" for workflow, of in named.items())


async def _embedder() -> Finding:
    try:
        embedder = await open_embedder(settings().embedder)
        if isinstance(embedder, Absent):
            detail = f"{embedder.missing[0]} Searches go by words."
            others = ENGLISH_ONLY if embedder.name == BUNDLED.name else ""
            fix = ". ".join(filter(None, [embedder.missing[1], others]))
            return Finding(what="embedder", state="warning", detail=detail, fix=fix)
        await embedder.embed_query("a test")
    except MnemeError as error:
        return Finding(what="embedder", state="failure", detail=str(error), fix=error.hint)
    detail = f"{embedder.name}, {embedder.dimension} dimensions"
    fix = ENGLISH_ONLY if embedder.name == BUNDLED.name else ""
    return Finding(what="embedder", state="ok", detail=detail, fix=fix)


async def _ledger() -> AsyncIterator[Finding]:
    """Check the ledger, or the server that has it open."""
    try:
        ledger = await open_or_find_server(reading=True)
    except MnemeError as error:
        yield Finding(what="ledger", state="failure", detail=str(error), fix=error.hint)
        return
    if isinstance(ledger, str):
        yield Finding(what="ledger", state="ok", detail=f"served by {ledger}")
        yield await _workers(ledger)
        return
    info, records = await ledger.info(), await ledger.count()
    await ledger.close()
    detail = f"{info.kind} at {info.location}: {records} records, {info.embedder} ({info.dimension})"
    yield Finding(what="ledger", state="ok", detail=detail)
    if info.layout:
        yield _layout(info.layout)


def _layout(layout: Layout) -> Finding:
    """Say how the ledger lies on the server, what is out of use, and what the settings say otherwise."""
    detail = f"{layout.shards} shards × {layout.replicas} replicas, a write counts with {layout.writes}"
    if layout.not_in_use:
        gone = f"{detail}; not in use: {', '.join(layout.not_in_use)}"
        fix = "Start the node again: it catches up by itself. One that is lost: docs/scaling.md."
        return Finding(what="Qdrant", state="warning", detail=gone, fix=fix)
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
        return Finding(what="Qdrant", state="warning", detail=detail, fix=fix)
    return Finding(what="Qdrant", state="ok", detail=detail)


async def _workers(url: str) -> Finding:
    """Tell whether a reply must wait for background work, since the server runs one thing at a time."""
    from mneme.client.remote import workers_of  # an HTTP client is slow to import

    try:
        workers = await workers_of(url)
    except MnemeError as error:
        return Finding(what="server", state="warning", detail=str(error), fix=error.hint)
    if workers == 1:
        detail = "It runs one thing at a time: replies wait for background work."
        return Finding(what="server", state="warning", detail=detail, fix=MORE_WORKERS)
    return Finding(what="server", state="ok", detail=f"{workers} runs at once")


async def _pools() -> AsyncIterator[Finding]:
    """Check the team's pools, and which version of each retriever is in use."""
    try:
        async with open_operations(Pools, os.environ.get("MNEME_TEAM", "local"), reading=True) as shared:
            found = [_pool(each, await shared.serving_problem(each.pool)) for each in await shared.list()]
    except MnemeError as error:
        yield Finding(what="pools", state="warning", detail=str(error), fix=error.hint)
        return
    for finding in found:
        yield finding


def _pool(pool: RetrieverState, problem: str) -> Finding:
    what = f"pool {pool.pool}"
    if problem:
        fix = f"mneme share retriever rollback --pool {pool.pool} --to 0"
        return Finding(what=what, state="warning", detail=problem, fix=fix)
    used = f"retriever {pool.serving} of {len(pool.versions)}" if pool.serving else "the untrained embedder"
    detail = f"{pool.memories} memories, {pool.waiting} not learned yet; {used} is in use"
    return Finding(what=what, state="ok", detail=detail)


async def _checkpoints() -> Finding:
    location = settings().checkpoints_location
    try:
        async with open_checkpointer(location) as checkpointer:
            kind = type(checkpointer).__name__
    except MnemeError as error:
        return Finding(what="checkpoints", state="failure", detail=str(error), fix=error.hint)
    return Finding(what="checkpoints", state="ok", detail=f"{kind} at {_without_password(location)}")


def _without_password(location: str) -> str:
    head, at, tail = location.rpartition("@")
    return f"{head.partition('://')[0]}://…@{tail}" if at else location


def _home() -> Finding:
    home = settings().home.absolute()
    folder = next(each for each in (home, *home.parents) if each.exists())
    free = shutil.disk_usage(folder).free
    detail = f"{home} keeps memories, checkpoints and runs (MNEME_HOME); {free / 1024**3:.1f} GiB free"
    if not os.access(folder, os.W_OK):
        fix = "Set MNEME_HOME to a folder that you may write to."
        return Finding(what="home", state="failure", detail=f"{folder} is read-only", fix=fix)
    if free < ENOUGH_DISK:
        return Finding(what="home", state="warning", detail=detail, fix="Free some space, or set MNEME_HOME.")
    return Finding(what="home", state="ok", detail=detail)


def _data() -> Finding:
    """Say what MNEME_DATA is for, since it is easily taken for the folder of the memories."""
    folder = settings().data
    if folder is None:
        return Finding(what="benchmarks", state="ok", detail="no folder (MNEME_DATA is not set)")
    if folder.is_dir() and any(folder.iterdir()):
        return Finding(what="benchmarks", state="ok", detail=f"files in {folder}")
    fix = "MNEME_DATA is for benchmark files only. To keep your memories there, set MNEME_HOME instead."
    return Finding(what="benchmarks", state="warning", detail=f"{folder} has no files", fix=fix)


def _langsmith() -> Finding:
    if not tracing_is_enabled():
        return Finding(what="LangSmith", state="ok", detail="off (LANGSMITH_TRACING=true turns it on)")
    if not os.environ.get("LANGSMITH_API_KEY") and not os.environ.get("LANGCHAIN_API_KEY"):
        fix = "Set LANGSMITH_API_KEY, or LANGSMITH_TRACING=false."
        return Finding(what="LangSmith", state="warning", detail="on, but without a key", fix=fix)
    return Finding(what="LangSmith", state="ok", detail="on: runs and their texts are sent to LangSmith")


def _users() -> Finding:
    file = settings().auth
    if file is None:
        return Finding(
            what="users", state="ok", detail="one person, this machine only (MNEME_AUTH is not set)"
        )
    if not Path(file).exists():
        missing = f"{file} does not exist: nobody can use the server."
        return Finding(what="users", state="failure", detail=missing, fix="mneme users add NAME")
    return Finding(what="users", state="ok", detail=f"keys in {file}")


def _join(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
