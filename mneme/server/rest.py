"""A typed route for every operation, made from its declaration, so that the server's description has all."""

from collections.abc import Awaitable, Callable, Mapping
from inspect import Parameter, Signature
from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import Body, FastAPI, Header, Path, Query, Request, Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model, model_validator
from starlette.types import ASGIApp, Receive, Scope, Send

from mneme.api.operation import API_PATH, BY_USER, CALLER_HEADER, Operation, Operations, Owner
from mneme.server.problems import (
    HTTP_METHODS,
    JSON_TYPE,
    IdempotencyKey,
    Problem,
    documented,
    failure,
    is_ours,
    no_route,
    once,
)
from mneme.stores.ledger.records import LOCAL, MAX_NAME_CHARS

Opened = Callable[[Request, str, str, str], Awaitable[Operations]]
"""Opens a request's data, given the request, the owner, the caller, and what it reads; "" for a change."""

OWNER_TEXTS: dict[Owner, str] = {
    "user": "Whose data; with keys, the key's user's: name nobody else.",
    "team": "Which team's data; with keys, one of the key's user.",
}
FORGET = "/forget"
SLASH = "\x1f"
"""Stand-in for a slash within a path parameter: no name can contain it."""
AS_SENT = BeforeValidator(lambda parameter: parameter.replace(SLASH, "/"))
"""Validator that restores a path parameter as it was sent, before its type is parsed."""
NAME_BOUNDS: dict[str, Any] = {"min_length": 1, "max_length": MAX_NAME_CHARS}
Caller = Annotated[
    str, Header(alias=CALLER_HEADER, max_length=100, description="For which program; kept in the history.")
]


READ_RESPONSES = documented(400, 401, 403, 404, 409, 429, 500, 503)
WRITE_RESPONSES = documented(422) | READ_RESPONSES
LINK = {
    "description": "The pages after and before this one, relative to the request's address (RFC 8288): "
    'rel="next" where there may be more, rel="prev" where there is one.',
    "schema": {"type": "string"},
}


class Segments:
    """Middleware that keeps an encoded slash (`%2F`) inside its path parameter."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, with `SLASH` for each slash within a parameter."""
        raw = scope.get("raw_path") or b""
        if scope["type"] == "http" and b"%2f" in raw.lower() and is_ours(scope["path"]):
            # It splits before it decodes; a server has decoded `path` before anybody could split it.
            parts = [unquote(each).replace("/", SLASH) for each in raw.decode("latin-1").split("/")]
            scope = {**scope, "path": "/".join(parts)}
        await self._app(scope, receive, send)


class Api(FastAPI):
    """A FastAPI application whose description lists only answers that it can give."""

    def openapi(self) -> dict[str, Any]:
        """Return the description, with problem details as sent, and status 400 for invalid requests."""
        described = super().openapi()
        parts = described.setdefault("components", {}).setdefault("schemas", {})
        parts["Problem"] = Problem.model_json_schema()
        for path in described["paths"].values():
            if "get" in path:
                path["get"]["responses"].pop("422", None)  # FastAPI's; a query that is not valid is 400 here
        for unused in ("HTTPValidationError", "ValidationError"):
            parts.pop(unused, None)
        return described


def offer(app: FastAPI, kind: type[Operations], opened: Opened) -> None:
    """Add the routes of a class of operations to the app itself: LangGraph's server takes no routers.

    `DELETE …/{key}` is offered with the same effect as `POST …/{key}/forget`.
    """
    for operation in kind.OFFERED.values():
        _add(app, operation, operation.route.method, operation.route.path, opened)
        if operation.route.erases and (record := operation.route.path.removesuffix(FORGET)).endswith("}"):
            _add(app, operation, "DELETE", record, opened)


def _add(app: FastAPI, operation: Operation, method: str, path: str, opened: Opened) -> None:
    summary, _, more = operation.description.partition("\n")
    linked: dict[int | str, Any] = {200: {"headers": {"Link": LINK}}} if _first(operation) else {}
    name = f"{operation.kind.__name__}_{operation.name}".lower().rstrip("_")
    app.add_api_route(
        f"{API_PATH}/{path}",
        _endpoint(operation, method, opened),
        tags=[operation.kind.__name__],
        methods=[method],
        operation_id=f"{name}_by_delete" if method == "DELETE" else name,
        response_model=operation.result_type,  # for the description: `answer` returns finished JSON
        responses=READ_RESPONSES | linked if method == "GET" else WRITE_RESPONSES,
        summary=summary,
        description=more.strip() or summary,
    )


def refuse_all_else(app: FastAPI) -> None:
    """Answer every other path below that of the operations: call it after the last `offer`."""
    app.add_api_route(f"{API_PATH}/{{path:path}}", no_route, methods=HTTP_METHODS, include_in_schema=False)


def _first(operation: Operation) -> str:
    """Return the name of the parameter that says where a page begins; "" if the operation has no pages."""
    names = {"limit", "offset", "start"} & {*operation.beside_path}
    return next(iter(names - {"limit"}), "") if "limit" in names else ""


def _endpoint(operation: Operation, method: str, opened: Opened) -> Callable[..., Any]:
    """Return a route's function; FastAPI describes the route from its signature."""
    owner, first, in_body = operation.kind.OWNER, _first(operation), method == "POST"

    async def answer(request: Request, **given: Any) -> Response:
        body, key = given.pop("given", None), given.pop("once_for", "")
        arguments = {name: getattr(body, name) for name in operation.beside_path} | {
            name: given[name] for name in operation.in_path
        }
        whose = given[owner] if in_body else getattr(body, owner)
        reads = request.url.path if request.method == "GET" else ""
        operations = await opened(request, whose, given["caller"], reads)

        async def work() -> Response:
            try:
                result = await getattr(operations, operation.name)(**arguments)
            except Exception as error:  # noqa: BLE001  (whatever it is, the answer is a problem)
                return failure(error)
            headers = _links(request, first, arguments, len(result)) if first else None
            return Response(operation.returns.dump_json(result), headers=headers, media_type=JSON_TYPE)

        return await once(key, request, operations, operation, work)

    answer.__signature__ = _signature(operation, method)  # type: ignore[attr-defined]
    answer.__doc__ = operation.description
    return answer


def _links(request: Request, first: str, asked: Mapping[str, Any], found: int) -> dict[str, str]:
    """Return the header that links the previous and the next page, if there are any."""
    at, limit = asked[first], asked["limit"]
    pages = {"next": at + limit} if found >= limit else {}  # a full page can be the last one
    pages |= {"prev": max(0, at - limit)} if at else {}
    queries = {
        rel: request.url.include_query_params(**{"limit": limit, first: start}).query
        for rel, start in pages.items()
    }
    links = [f'<?{query}>; rel="{rel}"' for rel, query in queries.items()]
    return {"link": ", ".join(links)} if links else {}


def _signature(operation: Operation, method: str) -> Signature:
    """Return the parameters of a request: the path's, those of the query or the body, and of the headers."""
    owner = operation.kind.OWNER
    fields: dict[str, Any] = {name: operation.fields[name] for name in operation.beside_path}
    caller = _keyword("caller", Caller, BY_USER)
    parameters = [_keyword("request", Request)]
    parameters += [
        _keyword(name, Annotated[each.annotation, AS_SENT, Path()])
        for name, each in operation.in_path.items()
    ]
    once_for = _keyword("once_for", IdempotencyKey, "")
    if method != "POST":
        field = Field(LOCAL, description=OWNER_TEXTS[owner], **NAME_BOUNDS)
        # The owner is in the model, too: FastAPI gives a model all parameters, and it forbids unknown ones.
        model = _model(operation, {**fields, owner: (str, field)})
        query = _keyword("given", Annotated[model, Query()])
        return Signature([*parameters, query, caller, *([once_for] if method == "DELETE" else [])])
    whose = _keyword(owner, Annotated[str, Query(description=OWNER_TEXTS[owner], **NAME_BOUNDS)], LOCAL)
    if not fields:
        return Signature([*parameters, whose, caller, once_for])
    needed = any(default is ... for _, default in fields.values())
    model = _model(operation, fields)
    body = _keyword("given", Annotated[model, Body()], Parameter.empty if needed else model())
    return Signature([*parameters, whose, body, caller, once_for])


def _model(operation: Operation, fields: dict[str, Any]) -> type[BaseModel]:
    name = f"{operation.kind.__name__}{operation.name.strip('_').title().replace('_', '')}"
    checks: dict[str, Any] = {
        "renamed": model_validator(mode="before")(lambda given, _: operation.refuse_renamed(given))
    }
    return create_model(name, __config__=ConfigDict(extra="forbid"), __validators__=checks, **fields)


def _keyword(name: str, annotation: Any, default: Any = Parameter.empty) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
