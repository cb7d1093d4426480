"""The routes from the server's description, and the tools from their declarations."""

from collections.abc import Iterator
from typing import Any

from tables import Schema, bounds, code, fields, kind, table

from mneme.integrations.tools import tools as declared
from mneme.server.app import app

ROUTES = """\
All paths are below `/mneme/v1`. The server describes itself at `/openapi.json`, and shows that at
`/docs`; this page is made of the same description. [REST](../rest.md) explains keys, pages, repetition
and errors. Every route also takes the header `x-mneme-caller`: for which program something is done, which
the history keeps. Every `POST` takes `Idempotency-Key`.

"""
TOOLS = """\
These are the tools of `mneme.tools(…)` for LangChain agents and of `mneme mcp` for [MCP clients](../mcp.md),
with the words that a model reads.

"""
PREFIX = "/mneme/v1"
HEADERS = ("x-mneme-caller", "idempotency-key")


def routes() -> str:
    """Write every typed route with its parameters, grouped by what it is about."""
    described = app.openapi()
    parts = described["components"]["schemas"]
    groups: dict[str, list[str]] = {}
    for path, methods in described["paths"].items():
        for method, route in methods.items():
            if path.startswith(PREFIX):
                groups.setdefault(route["tags"][0], []).append(_route(method, path, route, parts))
    listed = (f"## {group}\n\n{''.join(written)}" for group, written in groups.items())
    return ROUTES + "".join(listed)


def _route(method: str, path: str, route: Schema, parts: Schema) -> str:
    rows = [*_beside_body(route, parts), *_of_body(route, parts)]
    summary, more = route["summary"], route["description"]
    told = summary if more in summary else f"{summary}\n\n{more}"
    return (
        f"### {method.upper()} {path.removeprefix(PREFIX)}\n\n{told}\n\n"
        f"{table(('parameter', 'in', 'type', 'bounds', 'default', 'what it is'), rows) if rows else ''}"
        f"Answer: {_answer(route, parts)}.\n\n"
    )


def _beside_body(route: Schema, parts: Schema) -> Iterator[tuple[str, ...]]:
    for each in route.get("parameters", ()):
        if each["name"].lower() not in HEADERS:
            is_required = each.get("required", False)
            yield _row(each["name"], each["in"], {**each["schema"], **_about(each)}, parts, is_required)


def _of_body(route: Schema, parts: Schema) -> Iterator[tuple[str, ...]]:
    for content in route.get("requestBody", {}).get("content", {}).values():
        body: dict[str, Any] = content["schema"]
        body = parts[body["$ref"].rpartition("/")[2]] if "$ref" in body else body
        for name, about in body.get("properties", {}).items():
            yield _row(name, "body", about, parts, name in body.get("required", ()))


def _about(parameter: Schema) -> Schema:
    return {"description": parameter["description"]} if "description" in parameter else {}


def _row(name: str, where: str, about: Schema, parts: Schema, is_required: bool) -> tuple[str, ...]:
    given = about.get("default")
    default = "required" if is_required else "" if given is None else code(given)
    return code(name), where, _plain(about, parts), bounds(about), default, about.get("description", "")


def _answer(route: Schema, parts: Schema) -> str:
    content = route["responses"]["200"].get("content", {})
    return next((_plain(each.get("schema", {}), parts) for each in content.values()), "nothing")


def _plain(schema: Schema, parts: Schema) -> str:
    """Name a type without a link: the description's own types are not on this page."""
    return kind(schema, {name: each for name, each in parts.items() if "enum" in each})


def tools() -> str:
    """Write every tool with its words and its arguments."""
    return TOOLS + "".join(map(_tool, declared()))


def _tool(tool: Any) -> str:
    schema = tool.args_schema.model_json_schema()
    taken = fields(schema, of=tool.name) if schema.get("properties") else "It takes nothing.\n\n"
    return f"## `{tool.name}`\n\n{tool.description}\n\n{taken}"
