"""Requests with an idempotency key: each is done once, and its answer given again to whoever repeats it."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Header, Request, Response

from mneme.api.operation import ONCE, PROBLEM, Operation, Operations
from mneme.server.problems import REFUSED
from mneme.stores.ledger.answers import Answer

JSON = "application/json"
REPEATED = "Idempotency-Replayed"
"""The header of an answer that was given before."""
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
"""Does what is asked, and answers whatever comes of it."""


async def once(key: str, request: Request, on: Operations, operation: Operation, work: Work) -> Response:
    """Do what is asked, once for its key; without one, whenever it is asked."""
    if not key:
        return await work()
    answers = on.answers
    where = f"{request.method}\n{request.url.path}\n{request.url.query}\n"
    claim = await answers.claim(key, where.encode() + await request.body())
    if isinstance(claim, Answer):
        kind = JSON if claim.status < 400 else PROBLEM
        return Response(claim.body, claim.status, {REPEATED: "true"}, kind)
    response = await work()
    if response.status_code in REFUSED:
        await answers.release(claim)
        return response
    answer = Answer(response.status_code, bytes(response.body).decode())
    await answers.keep(claim, answer, erases=operation.route.erases)
    return response
