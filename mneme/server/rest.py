"""A typed route for every operation, made from its declaration, so that the server's description has all."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from inspect import Parameter, Signature
from typing import Annotated, Any

from fastapi import Body, FastAPI, Header, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, create_model

from mneme.api.operation import API_PATH, CALLER, USER, Operation, Operations, Owner
from mneme.nodes.context import LOCAL

Opened = Callable[[Request, str, str], Awaitable[Operations]]
"""Opens the data that a request names, for its caller: the request, the owner, the caller."""

OWNERS: dict[Owner, Any] = {
    "user": (str, Field(LOCAL, description="Whose data; with keys, always those of the key's user.")),
    "team": (str, Field(LOCAL, description="Which team's data; with keys, one of the key's user.")),
}
Caller = Annotated[
    str, Header(alias=CALLER, max_length=100, description="For which program; kept in the history.")
]


class Problem(BaseModel):
    """What went wrong (RFC 9457), and what to do."""

    type: str = Field(description="The kind of error.", examples=["urn:mneme:NotFound"])
    title: str
    status: int
    detail: str
    hint: str = ""


DESCRIBED = Problem.model_json_schema()
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": HTTPStatus(status).phrase}
    for status in (400, 403, 404, 409, 429)
}


def offer(app: FastAPI, kind: type[Operations], opened: Opened) -> None:
    """Add the routes of a class of operations to the app itself: LangGraph's server takes no routers."""
    for operation in kind.OFFERED.values():
        summary, _, more = operation.description.partition("\n")
        app.add_api_route(
            f"{API_PATH}/{operation.route.path}",
            _endpoint(operation, opened),
            tags=[kind.__name__],
            methods=[operation.route.method],
            operation_id=f"{kind.__name__}_{operation.name}".lower().rstrip("_"),
            response_model=operation.result_type,
            responses=REFUSALS,
            summary=summary,
            description=more.strip() or summary,
        )


def _endpoint(operation: Operation, opened: Opened) -> Callable[..., Any]:
    """Return the function behind a route, with a signature from which the route is described."""
    owner = operation.kind.OWNER

    async def answer(request: Request, **given: Any) -> Response:
        body = given.pop("given", None)
        arguments = {name: getattr(body, name) for name in operation.beside_path} | {
            name: given[name] for name in operation.in_path
        }
        whose = getattr(body, owner) if operation.route.method == "GET" else given[owner]
        operations = await opened(request, whose, given["caller"])
        result = await getattr(operations, operation.name)(**arguments)
        return Response(operation.returns.dump_json(result), media_type="application/json")

    answer.__signature__ = _signature(operation)  # type: ignore[attr-defined]
    answer.__doc__ = operation.description
    return answer


def _signature(operation: Operation) -> Signature:
    """Return the parameters of a request: the path's, those of the query or the body, and the caller."""
    owner, fields = operation.kind.OWNER, _fields(operation)
    caller = _keyword("caller", Caller, USER)
    parameters = [_keyword("request", Request)]
    parameters += [
        _keyword(name, Annotated[each.annotation, Path()]) for name, each in operation.in_path.items()
    ]
    if operation.route.method == "GET":
        model = _model(operation, {**fields, owner: OWNERS[owner]})
        return Signature([*parameters, _keyword("given", Annotated[model, Query()]), caller])
    kind, described = OWNERS[owner]
    whose = _keyword(owner, Annotated[kind, Query(description=described.description)], described.default)
    if not fields:
        return Signature([*parameters, whose, caller])
    needed = any(default is ... for _, default in fields.values())
    model = _model(operation, fields)
    body = _keyword("given", Annotated[model, Body()], Parameter.empty if needed else model())
    return Signature([*parameters, whose, body, caller])


def _fields(operation: Operation) -> dict[str, Any]:
    return {
        name: (each.annotation, ... if each.default is Parameter.empty else each.default)
        for name, each in operation.beside_path.items()
    }


def _model(operation: Operation, fields: dict[str, Any]) -> type[BaseModel]:
    name = f"{operation.kind.__name__}{operation.name.strip('_').title().replace('_', '')}"
    return create_model(name, __config__=ConfigDict(extra="forbid"), **fields)


def _keyword(name: str, annotation: Any, default: Any = Parameter.empty) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
