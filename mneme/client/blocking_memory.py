"""A `Memory` whose calls block; a stub, generated from the coroutines, has its types."""

from mneme.client.blocking import Blocking


class BlockingMemory(Blocking):
    """A `Memory` whose calls block: what `with mneme.open()` gives."""
