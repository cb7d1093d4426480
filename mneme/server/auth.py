"""Authentication and authorization on the LangGraph server: `auth.path` in `langgraph.json`.

With `MNEME_AUTH` every request needs a user's key, and every thread, run, assistant, cron and
stored item belongs to its user. Without it the server is for one person: it answers only this machine,
and of all web pages only LangSmith Studio.
"""

import asyncio
import json
from collections import defaultdict
from ipaddress import IPv6Address, ip_address
from typing import Any
from urllib.parse import urlsplit

from langgraph_sdk import Auth, get_client
from starlette.requests import HTTPConnection

from mneme.core.errors import Forbidden, MnemeError, TooMany
from mneme.core.settings import read_settings, settings
from mneme.server.opened import store
from mneme.server.users import authenticate
from mneme.stores.access import SOLE_PERSON, own_user
from mneme.stores.checkpoints.checkpointer import thread_owner
from mneme.stores.ledger.records import LOCAL
from mneme.stores.users.inbox import Inbox, Message

MAX_BUSY = 24
"""Maximum threads of one user that run at once: fewer than the server's workers, so that others' run, too."""
MAX_FIELD_BYTES = 64 << 10
"""Maximum bytes of each field of a resource besides its input: the server keeps them in memory."""
LIMITED_FIELDS = ("metadata", "config", "context", "payload", "name", "description")
STUDIO = "smith.langchain.com"
SYSTEM_USER = "system"

Headers = dict[bytes, bytes]
Value = dict[str, Any]
Context = Auth.types.AuthContext
Filter = dict[str, Any]

auth = Auth()
_counting = defaultdict[str, asyncio.Lock](asyncio.Lock)
"""One lock per user: a run is counted only after the one before it has started."""


@auth.authenticate
async def identify(headers: Headers, scope: dict[str, Any]) -> Auth.types.MinimalUserDict:
    """Return the caller's identity, or refuse the request."""
    path = (await read_settings()).auth
    if path is None:
        _refuse_strangers(headers, scope)
        return {"identity": LOCAL, "permissions": [SOLE_PERSON]}
    try:
        identity = await asyncio.to_thread(authenticate, path, key_of(headers))
    except Forbidden as refusal:
        raise _refusal(401, str(refusal)) from refusal
    except MnemeError as failure:
        raise _refusal(403, "The server cannot read its users file (MNEME_AUTH).") from failure
    return {"identity": identity, "permissions": []}


def identity_of(request: HTTPConnection) -> str | None:
    """Return the authenticated user of a request; None on a server without keys, for its one person."""
    return None if settings().auth is None else str(request.user.identity)


def key_of(headers: Headers) -> str:
    """Return the key in `x-api-key` or `Authorization: Bearer`."""
    scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
    bearer = token if scheme.lower() == b"bearer" else b""
    return (headers.get(b"x-api-key") or bearer).decode("latin-1").strip()  # latin-1 decodes any bytes


def _refusal(status: int, why: str) -> Exception:
    return Auth.exceptions.HTTPException(status_code=status, detail=why)


# Without keys: one person, one machine


def _refuse_strangers(headers: Headers, scope: dict[str, Any]) -> None:
    """Refuse other machines, other host names (DNS rebinding) and other web pages."""
    if not is_loopback((scope.get("client") or ("", 0))[0]):  # over a Unix socket there is no client
        raise _refusal(403, "Without MNEME_AUTH this server answers only its own machine.")
    host, origin = (headers.get(each, b"").decode("latin-1") for each in (b"host", b"origin"))
    if not _is_here(_hostname(f"//{host}")):
        raise _refusal(403, "Without MNEME_AUTH this server answers only to the name localhost.")
    page = _hostname(origin)
    is_studio = origin.startswith("https://") and (page == STUDIO or page.endswith(f".{STUDIO}"))
    # Only browsers send an origin; that of a sandboxed page is "null", which is no host of this machine.
    if b"origin" in headers and not (is_studio or _is_here(page)):
        raise _refusal(403, "Without MNEME_AUTH this server answers no pages of other sites.")


def _hostname(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def is_loopback(host: str) -> bool:
    try:
        address = ip_address(host)
    except ValueError:
        return False
    # A socket for IPv6 shows an IPv4 client as ::ffff:127.0.0.1, which is no loopback address by itself.
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def _is_here(hostname: str) -> bool:
    return hostname == "localhost" or is_loopback(hostname)


# With keys: several people, each with data of their own


@auth.on
async def refuse_the_unknown(ctx: Context, value: Value) -> bool:
    """Refuse every resource that no handler below allows."""
    return False


@auth.on.threads
async def own_threads(ctx: Context, value: Value) -> Filter:
    """Restrict threads and their runs to the user who created them."""
    await _refuse_another_s_checkpoints(ctx, value)
    if ctx.action == "create_run" and SOLE_PERSON not in ctx.permissions:
        me, given = ctx.user.identity, value.get("kwargs") or {}
        _refuse_another_user(me, given)
        await _refuse_a_full_inbox(me, given.get("input"))
        client = get_client(api_key=None)  # without a URL it calls this process; None: no key of LangSmith's
        async with _counting[me]:  # awaited last: the server then adds the run at once
            busy = await client.threads.count(metadata={"owner": me}, status="busy")
        if busy >= MAX_BUSY:  # runs of one thread count once
            raise _refusal(429, f"You have {MAX_BUSY} runs under way. Try again when one has ended.")
    return _own(ctx, value)


@auth.on.crons
async def own_crons(ctx: Context, value: Value) -> Filter:
    """Restrict scheduled runs to the user who created them."""
    return _own(ctx, value)


@auth.on.assistants
async def own_assistants(ctx: Context, value: Value) -> Filter:
    """Restrict assistants to the user who created them; everybody may use each graph's default assistant."""
    if ctx.action in ("read", "search"):
        return {"$or": [{"owner": ctx.user.identity}, {"created_by": SYSTEM_USER}]}
    mine = _own(ctx, value)
    if isinstance(value.get("metadata"), dict):
        value["metadata"]["created_by"] = "user"  # else it could claim to be a graph's default assistant
    return mine


@auth.on.store
async def own_store(ctx: Context, value: Value) -> bool:
    """Restrict stored items to `users/<caller>`; a search of everything becomes a search of that."""
    if SOLE_PERSON in ctx.permissions:
        return True
    home = ("users", ctx.user.identity)
    asked = tuple(value.get("namespace") or ())
    if ctx.action in ("search", "list_namespaces") and asked in ((), home[:1]):
        value["namespace"] = asked = home
    return asked[:2] == home


def _own(ctx: Context, value: Value) -> Filter:
    """Mark written data with its owner, refuse it if a field is large, and filter by that mark."""
    mine = {"owner": ctx.user.identity}
    if ctx.action not in ("create", "create_run", "update"):
        return mine
    given = (value.get("kwargs") or {}) | value  # a run has its config and context in `kwargs`
    for name in LIMITED_FIELDS:
        if len(json.dumps(given.get(name), default=str, ensure_ascii=False).encode()) > MAX_FIELD_BYTES:
            what = f"`{name}` may have {MAX_FIELD_BYTES >> 10} kB here."
            raise _refusal(413, f"{what} Send long texts as the input of a run, or store them as items.")
    if isinstance(value.get("metadata"), dict):
        value["metadata"].update(mine)
    return mine


async def _refuse_another_s_checkpoints(ctx: Context, value: Value) -> None:
    """Refuse a new thread whose id has checkpoints of another user."""
    # A killed server loses threads whose checkpoints stay; who created such a thread again would read them.
    makes = ctx.action == "create" or (ctx.action == "create_run" and value.get("if_not_exists") == "create")
    if SOLE_PERSON in ctx.permissions or not (makes and value.get("thread_id")):
        return
    if await thread_owner(str(value["thread_id"])) not in (None, ctx.user.identity):
        raise _refusal(409, "A thread with this id belongs to another user.")


def _refuse_another_user(me: str, given: Value) -> None:
    """Refuse a run whose context names another user than the key's; the graph would refuse it, too."""
    configured = (given.get("config") or {}).get("configurable")
    for context in (given.get("context"), configured):
        user = context.get("user") if isinstance(context, dict) else None
        if isinstance(user, str):
            try:
                own_user(me, user)
            except Forbidden as refusal:
                raise _refusal(403, f"{refusal} {refusal.hint}") from refusal


async def _refuse_a_full_inbox(me: str, given: object) -> None:
    """Refuse a run that brings more messages than may wait; the graph would fail in its first steps."""
    messages = given.get("messages") if isinstance(given, dict) else None
    if not isinstance(messages, list) or not messages:
        return
    last = messages[-1] if isinstance(messages[-1], dict) else {}
    text = str(last.get("content") or last.get("message") or "")  # the chatbot's form, `remember`'s own
    try:
        await Inbox((await store()).ledger).must_have_room(me, [Message(message=text)])
    except TooMany as error:
        raise _refusal(429, f"{error} {error.hint}") from error
