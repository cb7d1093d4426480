"""A `Memory` whose calls block; a stub, generated from the coroutines, has its types."""

from mneme.client.blocking import Blocking


class BlockingMemory(Blocking):
    """A `Memory` with blocking calls, as `with mneme.open()` returns it."""
