"""What stands in for the bundled embedder where it is not installed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from mneme.core.errors import MnemeError

MISSING = ("The bundled embedder is not installed.", "Install it: mneme embedder install")


@dataclass(frozen=True)
class Absent:
    """The bundled embedder where it is not installed: a ledger is made for it, and searched by words.

    What needs vectors all the same fails with the hint how to install it.
    """

    name: str
    dimension: int

    async def embed_documents(self, texts: Sequence[str]) -> NoReturn:
        raise MnemeError(*MISSING)

    async def embed_query(self, text: str) -> NoReturn:
        raise MnemeError(*MISSING)
