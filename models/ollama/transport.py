"""Retry transient failures, and tell the user what to do about all others.

Retried, with growing and jittered waits: 429, 499, 500, 502, 503, an error inside a stream, transport
errors, broken lines, empty streams, streams without their `done` line, invalid vectors. Never retried: 400,
401, 403, 404.
"""

import json
from collections.abc import Awaitable, Callable
from typing import TypeVar

import httpx
from ollama import ResponseError
from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, stop_after_delay
from tenacity.wait import wait_exponential_jitter

from mneme.core.errors import ModelUnavailable
from mneme.core.settings import settings
from mneme.models.ollama.catalogue import refusal, unreachable

T = TypeVar("T")

TRANSIENT_STATUSES = {429, 499, 500, 502, 503, -1}  # -1: an error within a stream, whose status was 200
MAX_WAIT_SECONDS = 20.0


class BrokenStreamError(Exception):
    """The stream ended without its `done` line."""


class BadVectorsError(Exception):
    """An embedding is missing, has the wrong size, or has numbers that are not finite."""


ALWAYS_PASSING = (json.JSONDecodeError, BrokenStreamError, BadVectorsError, httpx.TransportError, OSError)


async def persist(url: str, model: str, call: Callable[[], Awaitable[T]]) -> T:
    """Call Ollama, and retry after transient failures; then raise a typed error."""
    now = settings()
    attempts = AsyncRetrying(
        retry=retry_if_exception(passing),
        stop=stop_after_attempt(now.retries + 1) | stop_after_delay(now.first_token_seconds),
        wait=wait_exponential_jitter(
            max=MAX_WAIT_SECONDS, jitter=now.retry_seconds, multiplier=now.retry_seconds
        ),
        reraise=True,
    )

    async def attempt() -> T:  # tenacity awaits only coroutine functions
        return await call()

    try:
        return await attempts(attempt)
    except (ResponseError, ValueError, *ALWAYS_PASSING) as error:
        raise meaning(error, url, model) from error


def passing(error: BaseException) -> bool:
    """Return whether a failure is transient."""
    if isinstance(error, ResponseError):
        return error.status_code in TRANSIENT_STATUSES
    if isinstance(error, ALWAYS_PASSING):
        return True
    said = str(error)  # an empty stream: of langchain-ollama, and of langchain-core
    return isinstance(error, ValueError) and ("No data received" in said or "No generation" in said)


def meaning(error: Exception, url: str, model: str) -> Exception:
    """Return the error for a failure of langchain-ollama, with a hint what the user can do."""
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | ConnectionError):
        return unreachable(url, error)
    if isinstance(error, ResponseError):
        return refusal(error.status_code, error.error, url, model)
    if passing(error):
        is_late = isinstance(error, httpx.ReadTimeout)
        return ModelUnavailable(
            f"Ollama's answers do not arrive whole: {str(error) or type(error).__name__}",
            f"{'Raise MNEME_FIRST_TOKEN_SECONDS, or see' if is_late else 'See'} Ollama's log.",
        )
    return error
