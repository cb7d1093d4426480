"""Problem details (RFC 9457): how the server says what went wrong, without anything of its inside."""

import logging
from http import HTTPStatus
from typing import Any

from fastapi.exception_handlers import http_exception_handler
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Match

from mneme.api.operation import API_PATH, PROBLEM, complaint, not_allowed, problem_of
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
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
AGAIN = {"retry-after": "1"}


class Problem(BaseModel):
    """What went wrong (RFC 9457), and what to do."""

    type: str = Field(description="The kind of error.", examples=["urn:mneme:NotFound"])
    title: str
    status: int
    detail: str
    hint: str = ""


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the responses with these statuses, for the description of a route."""
    content = {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {each: {"description": HTTPStatus(each).phrase, "content": content} for each in statuses}


def problem(error: MnemeError, status: int = 0) -> Response:
    """Return the answer that tells of an error."""
    found = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 500)
    headers = AGAIN if isinstance(error, StillRunning) else None
    return JSONResponse(problem_of(error, status or found), status or found, headers, PROBLEM)


def failure(error: Exception) -> Response:
    """Return the answer to a request that failed: what is unexpected stands in the log alone."""
    if isinstance(error, MnemeError):
        return problem(error)
    if isinstance(error, NotImplementedError):  # what our store does not do
        return problem(BadInput(str(error)))
    log.error("A request failed unexpectedly.", exc_info=error)
    return problem(MnemeError("The server failed unexpectedly.", "Its log says why; please report it."))


async def refused(_: Request, error: Exception) -> Response:
    """Answer an error that a route of the LangGraph server ran into, such as for a filter in its store."""
    return failure(error)


async def not_understood(request: Request, error: Exception) -> Response:
    """Answer what a route of the LangGraph server stumbled over: it does not check every body that it reads.

    Such as a schedule or a namespace that is missing. What it was stands in the log.
    """
    if is_ours(request.scope["path"]):
        return failure(error)
    log.warning("%s could not use a request.", request.scope["path"], exc_info=error)
    return JSONResponse({"detail": "The server could not use this request; compare it with /docs."}, 422)


async def not_valid(_: Request, error: RequestValidationError) -> Response:
    """Answer a request that its route's description does not allow."""
    return problem(not_allowed([complaint(each["loc"][1:], each["msg"]) for each in error.errors()]))


async def not_taken(request: Request, error: HTTPException) -> Response:
    """Answer a request that never came to a route's function, such as one whose body is no JSON."""
    if not is_ours(request.scope["path"]):
        return await http_exception_handler(request, error)
    kind = next((kind for kind, code in STATUS.items() if code == error.status_code), MnemeError)
    return problem(kind(str(error.detail), "See /docs."), error.status_code)


async def no_route(request: Request) -> Response:
    """Answer a request below our path that no operation has."""
    partly = [each for each in request.app.routes if each.matches(request.scope)[0] == Match.PARTIAL]
    allowed = sorted({method for each in partly for method in each.methods or ()})
    if not allowed:
        return problem(NotFound("There is no operation with this path.", "See /docs."))
    answer = problem(BadInput(f"This path takes {', '.join(allowed)} alone.", "See /docs."), 405)
    answer.headers["allow"] = ", ".join(allowed)
    return answer


def is_ours(path: str) -> bool:
    """Tell whether a path is that of our operations, and not one of the LangGraph server's."""
    return path == API_PATH or path.startswith(f"{API_PATH}/")
