"""`mneme doctor`: what works, what does not, and the command that mends it."""

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

from langsmith.utils import tracing_is_enabled
from pydantic import BaseModel

from mneme.errors import MnemeError
from mneme.home import open_operations, open_or_find_server
from mneme.settings import settings
from mneme.sharing_operations import RetrieverState, SharingOperations
from mneme.show import console, print_json, print_table
from models.catalogue import Facts, Loaded, Server, survey
from models.embedders import open_embedder
from stores.checkpoints import open_checkpointer

ENOUGH_DISK = 1024**3
SIGNS = {"ok": "ok", "warning": "!", "failure": "FAILED"}


class Finding(BaseModel):
    """One thing that was checked; only a `failure` keeps the system from running."""

    what: str
    state: Literal["ok", "warning", "failure"]
    detail: str
    mend: str = ""


async def doctor(as_json: bool) -> int:
    """Print every finding; return 1 where the system cannot run."""
    findings = [finding async for finding in examine()]
    if as_json:
        for finding in findings:
            print_json(finding)
    else:
        rows = ((SIGNS[each.state], each.what, each.detail, each.mend) for each in findings)
        print_table("", ("", "what", "state", "what mends it"), rows)
        console.print(_summary(findings))
    return 1 if any(each.state == "failure" for each in findings) else 0


def _summary(findings: list[Finding]) -> str:
    states = [each.state for each in findings]
    if "failure" in states:
        return f"Mneme cannot run: {states.count('failure')} problem(s) to mend."
    return "Mneme can run." if "warning" not in states else "Mneme can run; see what is marked with !."


async def examine() -> AsyncIterator[Finding]:
    """Yield what is found, part by part."""
    async for finding in _ollama():
        yield finding
    yield await _embedder()
    yield await _ledger()
    async for finding in _pools():
        yield finding
    yield await _checkpoints()
    yield _disk()
    yield _langsmith()
    yield _users()


async def _ollama() -> AsyncIterator[Finding]:
    try:
        server = await survey(settings().ollama_url)
    except MnemeError as error:
        yield Finding(what="Ollama", state="warning", detail=f"{error} Rules answer.", mend=error.hint)
        return
    yield Finding(what="Ollama", state="ok", detail=f"{server.version} at {server.url}")
    loaded = {model.name: model for model in server.loaded}
    for model in server.models:
        yield _model(model, loaded.get(model.name))
    yield _default_model(server)


def _model(model: Facts, loaded: Loaded | None) -> Finding:
    parts = [model.parameters, model.quantization, ", ".join(sorted(model.capabilities))]
    parts.append(f"context {model.context_length}" if model.context_length else "")
    if loaded is None:
        return Finding(what=model.name, state="ok", detail=_join(*parts, "not loaded"))
    parts.append(f"loaded with context {loaded.context_length}, {loaded.gpu_share:.0%} on the GPU")
    if loaded.gpu_share >= 1:
        return Finding(what=model.name, state="ok", detail=_join(*parts))
    mend = "Lower MNEME_NUM_CTX, or take a smaller model: what is not on the GPU is slow."
    return Finding(what=model.name, state="warning", detail=_join(*parts), mend=mend)


def _default_model(server: Server) -> Finding:
    name = settings().model
    model = next((each for each in server.models if each.name in {name, f"{name}:latest"}), None)
    if model is None:
        missing = f"Ollama does not have {name}: rules answer."
        return Finding(what="auto", state="warning", detail=missing, mend=f"ollama pull {name}")
    if model.context_length and model.context_length < settings().num_ctx:
        detail = f"{name} has a context of {model.context_length}, less than {settings().num_ctx}"
        return Finding(
            what="auto", state="warning", detail=detail, mend=f"MNEME_NUM_CTX={model.context_length}"
        )
    return Finding(what="auto", state="ok", detail=f"{name} answers")


async def _embedder() -> Finding:
    try:
        embedder = await open_embedder(settings().embedder)
        await embedder.embed_query("a test")
    except MnemeError as error:
        return Finding(what="embedder", state="failure", detail=str(error), mend=error.hint)
    return Finding(what="embedder", state="ok", detail=f"{embedder.name}, {embedder.dimension} dimensions")


async def _ledger() -> Finding:
    try:
        ledger = await open_or_find_server()
    except MnemeError as error:
        return Finding(what="ledger", state="failure", detail=str(error), mend=error.hint)
    if isinstance(ledger, str):
        return Finding(what="ledger", state="ok", detail=f"served by {ledger}")
    info, records = await ledger.info(), await ledger.count()
    await ledger.close()
    detail = f"{info.kind} at {info.location}: {records} records, {info.embedder} ({info.dimension})"
    return Finding(what="ledger", state="ok", detail=detail)


async def _pools() -> AsyncIterator[Finding]:
    """Say what the team shares: its pools, and which version of each retriever serves."""
    try:
        async with open_operations(SharingOperations, os.environ.get("MNEME_TEAM", "local")) as shared:
            found = [_pool(each, await shared.serving_problem(each.pool)) for each in await shared.pools()]
    except MnemeError as error:
        yield Finding(what="pools", state="warning", detail=str(error), mend=error.hint)
        return
    for finding in found:
        yield finding


def _pool(pool: RetrieverState, problem: str) -> Finding:
    what = f"pool {pool.pool}"
    if problem:
        mend = f"mneme share retriever rollback --pool {pool.pool} --to 0"
        return Finding(what=what, state="warning", detail=problem, mend=mend)
    served = f"retriever {pool.serving}" if pool.serving else "the embedder as it came"
    detail = f"{pool.memories} memories, {pool.waiting} to learn from; {served} serves"
    return Finding(what=what, state="ok", detail=f"{detail}, of {len(pool.versions)} versions")


async def _checkpoints() -> Finding:
    location = settings().checkpoints_location
    try:
        async with open_checkpointer(location) as checkpointer:
            kind = type(checkpointer).__name__
    except MnemeError as error:
        return Finding(what="checkpoints", state="failure", detail=str(error), mend=error.hint)
    return Finding(what="checkpoints", state="ok", detail=f"{kind} at {_without_password(location)}")


def _without_password(location: str) -> str:
    head, at, tail = location.rpartition("@")
    return f"{head.partition('://')[0]}://…@{tail}" if at else location


def _disk() -> Finding:
    home = settings().home.absolute()
    folder = next(each for each in (home, *home.parents) if each.exists())
    free = shutil.disk_usage(folder).free
    detail = f"{free / 1024**3:.1f} GiB free at {home}"
    if not os.access(folder, os.W_OK):
        mend = "Set MNEME_HOME to a folder that you may write to."
        return Finding(what="disk", state="failure", detail=f"{folder} is read-only", mend=mend)
    if free < ENOUGH_DISK:
        return Finding(
            what="disk", state="warning", detail=detail, mend="Free some space, or set MNEME_HOME."
        )
    return Finding(what="disk", state="ok", detail=detail)


def _langsmith() -> Finding:
    if not tracing_is_enabled():
        return Finding(what="LangSmith", state="ok", detail="off (LANGSMITH_TRACING=true turns it on)")
    if not os.environ.get("LANGSMITH_API_KEY") and not os.environ.get("LANGCHAIN_API_KEY"):
        mend = "Set LANGSMITH_API_KEY, or LANGSMITH_TRACING=false."
        return Finding(what="LangSmith", state="warning", detail="on, but without a key", mend=mend)
    return Finding(what="LangSmith", state="ok", detail="on: runs with their texts are sent to it")


def _users() -> Finding:
    file = settings().auth
    if file is None:
        return Finding(what="users", state="ok", detail="one person, loopback only (MNEME_AUTH is not set)")
    if not Path(file).exists():
        missing = f"{file} does not exist: nobody may use the server."
        return Finding(what="users", state="failure", detail=missing, mend="mneme users add NAME")
    return Finding(what="users", state="ok", detail=f"keys in {file}")


def _join(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
