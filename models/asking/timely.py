"""A stream whose waits are bounded: between two items, and in all."""

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TypeVar

from mneme.models.asking.unusable import Endless

T = TypeVar("T")


async def timely(
    stream: AsyncIterator[T], idle: float, longest: float, first: float | None = None
) -> AsyncGenerator[T, None]:
    """Pass a stream on; the first item may take `first` seconds, the next `idle`, and all `longest`.

    Raises `TimeoutError` where an item does not come, `Endless` where the items do not end.
    """
    patience = first
    end = math.inf
    while True:
        async with asyncio.timeout(patience):
            item = await anext(stream, None)
        if item is None:
            return
        now = asyncio.get_running_loop().time()
        end = min(end, now + longest)
        if now >= end:
            raise Endless(f"The reply took longer than {longest:g} seconds (MNEME_REPLY_SECONDS).")
        yield item
        patience = idle
