"""Error answers of the server: problem details (RFC 9457) that reveal no internals; idempotent requests.

A request with an idempotency key is executed once; a repetition gets the stored answer.
"""

import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Header, Request, Response
from fastapi.exception_handlers import http_exception_handler
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.routing import Match

from mneme.api.operation import (
    API_PATH,
    ONCE,
    PROBLEM_TYPE,
    Operation,
    Operations,
    complaint,
    not_allowed,
    problem_of,
)
from mneme.core.errors import (
    BadInput,
    Conflict,
    Forbidden,
    KeyReused,
    MnemeError,
    ModelUnavailable,
    NotFound,
    StillRunning,
    StorageFailure,
    TooMany,
)
from mneme.stores.answers import Answer

log = logging.getLogger(__name__)

STATUS: dict[type[MnemeError], int] = {
    KeyReused: 422,
    BadInput: 400,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 409,
    TooMany: 429,
    ModelUnavailable: 503,
    StorageFailure: 503,
}
"""The status of each error and of those derived from it, the first that fits; 500 for all others."""
REFUSED = {400, 403, 404, 409, 429}
"""Statuses after which nothing has been done. After others it may have been done in part."""
HTTP_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
RETRY_HEADERS = {"retry-after": "1"}


class Problem(BaseModel):
    """An error (RFC 9457), and what to do about it."""

    type: str = Field(description="The kind of error.", examples=["urn:mneme:NotFound"])
    title: str
    status: int
    detail: str
    hint: str = ""


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the responses with these statuses, for the description of a route."""
    content = {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {each: {"description": HTTPStatus(each).phrase, "content": content} for each in statuses}


def problem(error: MnemeError, status: int = 0) -> Response:
    """Return an error as an answer with problem details."""
    found = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 500)
    headers = RETRY_HEADERS if isinstance(error, StillRunning) else None
    return JSONResponse(problem_of(error, status or found), status or found, headers, PROBLEM_TYPE)


def failure(error: Exception) -> Response:
    """Return the answer to a failed request; the details of an unexpected error are only in the log."""
    if isinstance(error, MnemeError):
        return problem(error)
    if isinstance(error, NotImplementedError):  # a part of LangGraph's store that ours does not do
        return problem(BadInput(str(error)))
    log.error("A request failed unexpectedly.", exc_info=error)
    return problem(MnemeError("The server failed unexpectedly.", "Its log says why; please report it."))


async def refused(_: Request, error: Exception) -> Response:
    """Answer an error raised in a route of the LangGraph server, such as for a filter of its store."""
    return failure(error)


async def not_understood(request: Request, error: Exception) -> Response:
    """Answer an input error inside a route of the LangGraph server, which does not check every body.

    An example is a missing schedule or namespace. The log has the details.
    """
    if is_ours(request.scope["path"]):
        return failure(error)
    log.warning("%s could not use a request.", request.scope["path"], exc_info=error)
    return JSONResponse({"detail": "The server could not use this request; compare it with /docs."}, 422)


async def not_valid(_: Request, error: RequestValidationError) -> Response:
    """Answer a request that its route's description does not allow."""
    return problem(not_allowed([complaint(each["loc"][1:], each["msg"]) for each in error.errors()]))


async def not_taken(request: Request, error: HTTPException) -> Response:
    """Answer a request that never reached a route's function, for example one whose body is not JSON."""
    if not is_ours(request.scope["path"]):
        return await http_exception_handler(request, error)
    kind = next((kind for kind, code in STATUS.items() if code == error.status_code), MnemeError)
    return problem(kind(str(error.detail), "See /docs."), error.status_code)


async def no_route(request: Request) -> Response:
    """Answer a request below our path that no operation has."""
    # Partial: the path fits, and the method does not.
    partly = [each for each in request.app.routes if each.matches(request.scope)[0] == Match.PARTIAL]
    allowed = sorted({method for each in partly for method in each.methods or ()})
    if not allowed:
        return problem(NotFound("There is no operation with this path.", "See /docs."))
    answer = problem(BadInput(f"This path takes {', '.join(allowed)} alone.", "See /docs."), 405)
    answer.headers["allow"] = ", ".join(allowed)
    return answer


def is_ours(path: str) -> bool:
    """Return whether a path is that of our operations, and not one of the LangGraph server's."""
    return path == API_PATH or path.startswith(f"{API_PATH}/")


JSON_TYPE = "application/json"
REPLAYED_HEADER = "Idempotency-Replayed"
"""Header that marks a stored answer, which was given before."""
IdempotencyKey = Annotated[
    str,
    Header(
        alias=ONCE,
        max_length=255,
        description="A new random text, such as a UUID, for each request. Repeated with it within a day, the "
        "request is not done again and gets the same answer; 409 while it is being done, 422 for another "
        "request. An answer that refuses (400 to 429) is not kept: nothing was done.",
    ),
]
Work = Callable[[], Awaitable[Response]]
"""A function that executes a request and returns its answer."""


async def once(key: str, request: Request, on: Operations, operation: Operation, work: Work) -> Response:
    """Execute a request, once for its idempotency key; without a key, every time."""
    if not key:
        return await work()
    answers = on.answers
    where = f"{request.method}\n{request.url.path}\n{request.url.query}\n"
    claim = await answers.claim(key, where.encode() + await request.body())  # Starlette keeps a read body
    if isinstance(claim, Answer):
        kind = JSON_TYPE if claim.status < 400 else PROBLEM_TYPE
        return Response(claim.body, claim.status, {REPLAYED_HEADER: "true"}, kind)
    response = await work()
    if response.status_code in REFUSED:
        await answers.release(claim)  # nothing was done: the key may be used again
        return response
    answer = Answer(response.status_code, bytes(response.body).decode())
    await answers.keep(claim, answer, erases=operation.route.erases)
    return response
