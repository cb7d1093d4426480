"""Requests for every route of a server, with what one of its users has wherever it can be named."""

import asyncio
import sys
from collections.abc import Iterator
from typing import Any

import httpx
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from tenacity import retry, retry_if_result, stop_after_delay, wait_fixed

from mneme.server.entrance import MAX_WRONG_KEYS

WORD = "Zanzibar"
"""What Ann said, and nobody else may read."""
WRONG_KEY = f"mneme-{'0' * 16}-{'0' * 64}"
OPEN = {"/ok", "/docs", "/openapi.json", "/"}
METHODS = ("get", "post", "put", "patch", "delete")
SECONDS = 20.0
NOT_OFFERED = 501
"""The server's answer for the size of a thread's checkpoints, which it knows of its own checkpointer only."""
PATIENCE = 60.0
"""Seconds until what was said must be remembered."""
RULES: dict[str, Any] = {"chatbot": "rules", "memory_agent": "rules", "debounce": 0}
LINUX = sys.platform == "linux"
"""There, every address that begins with 127 is this machine's."""

Ids = dict[str, Any]
"""What a request may name of a user's, by the name of the parameter or field."""
Ask = tuple[str, str, dict[str, Any], Any]
"""A method, a path, its query and its body."""
MCP = "/mneme/mcp"
"""A route that the server's description does not have, as it is of another protocol."""


async def belongings(url: str, ann: str) -> Ids:
    """Let Ann chat, keep an assistant and a schedule, and return what a request may name of hers."""
    async with get_client(url=url, api_key=ann) as client:
        thread = (await client.threads.create(metadata={"place": WORD}))["thread_id"]
        spoken: Any = {"messages": [{"role": "user", "content": f"I live in {WORD}."}]}
        run = await client.runs.create(thread, "chatbot", input=spoken, context=RULES)
        await client.runs.join(thread, run["run_id"])
        memory = await remembered(client, "ann")
        assistant = await client.assistants.create("chatbot", name=WORD)
        cron: Any = await client.crons.create("chatbot", schedule="0 0 1 1 *", input=spoken)
        (state,) = await client.threads.get_history(thread, limit=1)
    return {
        "thread_id": thread,
        "run_id": run["run_id"],
        "assistant_id": assistant["assistant_id"],
        "cron_id": cron["cron_id"],
        "checkpoint_id": state["checkpoint"]["checkpoint_id"],
        "namespace": ["users", "ann", "memories"],
        "namespace_prefix": ["users", "ann"],
        "prefix": ["users", "ann"],
        "key": memory["key"],
        "user": "ann",
        "team": "ann",
        "name": "memory/ann",
        "thread_ids": [thread],
        "run_ids": [run["run_id"]],
        "ids": [thread],
    }


@retry(
    retry=retry_if_result(lambda item: item is None), stop=stop_after_delay(PATIENCE), wait=wait_fixed(0.1)
)
async def remembered(client: LangGraphClient, user: str) -> Any:
    """Wait until something of a user's is remembered, and return it."""
    found = (await client.store.search_items(["users", user, "memories"]))["items"]
    return found[0] if found else None


def asks(described: dict[str, Any], ids: Ids) -> Iterator[Ask]:
    """Yield requests for every route: with an empty body, and with Ann's ids wherever one can be named."""
    yield from _tool_calls()
    for path, methods in described["paths"].items():
        for method in (each for each in METHODS if each in methods):
            about = methods[method]
            query = {
                each["name"]: ids.get(each["name"], "1")
                for each in about.get("parameters", [])
                if each.get("in") == "query" and (each.get("required") or each["name"] in ids)
            }
            filled = path
            for name in (part.split("}")[0] for part in path.split("{")[1:]):
                filled = filled.replace(f"{{{name}}}", str(ids.get(name, "memories")))
            content = about.get("requestBody", {}).get("content", {}).get("application/json")
            yield method, filled, query, None if content is None else {}
            if content is not None:
                yield method, filled, query, filled_in(content.get("schema", {}), described, ids)


def _tool_calls() -> Iterator[Ask]:
    """Yield calls of tools that would tell what Ann has remembered."""
    told = {"search_memories": {"query": "Where do I live?"}, "list_memories": {}}
    for name, arguments in told.items():
        asked = {"name": name, "arguments": arguments}
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked}
        yield "post", MCP, {"user": "ann", "team": "ann"}, call


def filled_in(schema: dict[str, Any], described: dict[str, Any], ids: Ids) -> Any:
    """Return a body of the schema's form that names Ann's things."""
    while "$ref" in schema:
        schema = described["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return filled_in(schema[choice][0], described, ids)
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "object")
    if kind == "array":
        return [filled_in(schema.get("items", {}), described, ids)]
    if kind != "object":
        return {"string": "ann", "integer": 1, "number": 1, "boolean": False}.get(str(kind))
    fields, needed = schema.get("properties", {}), schema.get("required", ())
    return {
        name: ids[name] if name in ids else filled_in(of, described, ids)
        for name, of in fields.items()
        if name in ids or name in needed
    }


async def answers(url: str, key: str, ids: Ids) -> list[tuple[Ask, int, str]]:
    """Ask everything with a key of Bob's, a wrong one or none; return the requests, statuses and answers.

    Every few requests come from another address, so that a wrong key is looked at each time.
    """
    headers = {"x-api-key": key} if key else {}
    async with httpx.AsyncClient() as anybody:
        described = (await anybody.get(f"{url}/openapi.json")).json()
    every = [*asks(described, ids)]
    found = []
    for start in range(0, len(every), MAX_WRONG_KEYS):
        address = f"127.0.0.{10 + start // MAX_WRONG_KEYS + 100 * bool(key)}" if LINUX else None
        through = httpx.AsyncHTTPTransport(local_address=address)
        async with httpx.AsyncClient(
            base_url=url, timeout=SECONDS, headers=headers, transport=through
        ) as client:
            found += [(each, *await _told(client, each)) for each in every[start : start + MAX_WRONG_KEYS]]
    return found


async def _told(client: httpx.AsyncClient, ask: Ask) -> tuple[int, str]:
    method, path, query, body = ask
    text = ""
    accept = {"accept": "application/json, text/event-stream"} if path == MCP else {}
    async with client.stream(method, path, params=query, json=body, headers=accept) as answer:
        try:
            async with asyncio.timeout(3):
                async for part in answer.aiter_text():
                    text += part
        except TimeoutError:
            text += " (the stream is still open)"
    return answer.status_code, text


def is_refused(path: str, status: int) -> bool:
    """Say whether an answer is a refusal, as this route's must be."""
    closed = path.startswith(("/internal", "/deploy"))
    return status == 404 if closed else status in {401, 403, 429}
