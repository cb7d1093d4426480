"""A pool's retrievers: each training makes a version; one of the versions that were kept is in use.

What a version learned is in a file named by its content's checksum, which is written under another name and
then renamed; which version serves is one record in the ledger. So when a process is killed while it trains,
the last good version goes on serving, and a rollback is one write. A version that was not kept has no file,
and of those that were kept only the latest FILES have one, so that the disk does not fill up.
"""

import asyncio
import hashlib
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, Field

from mneme.core.durable import write_durably
from mneme.core.errors import BadInput, Conflict, NotFound, StorageFailure
from mneme.core.private import make_private_folder
from mneme.stores.ledger.records import Change
from mneme.stores.pools.memory_pool import MemoryPool
from mneme.stores.shelf import Shelf, kind_of

if TYPE_CHECKING:  # slow to import
    import numpy as np
    from numpy.typing import NDArray

    Weights = dict[str, NDArray[np.float32]]
    """What a training learned: its arrays by name."""

SERVING = "serving"
UNTRAINED = 0
"""The number that stands for the untrained embedder."""
VERSIONS_PER_PAGE = 8
"""Versions read at once where the needed number is not known."""
FILES = 20
"""Number of kept versions with a file, for rollbacks: a projection has 0.05 MB, an encoder 90 MB."""
STALE_SECONDS = 3600.0
"""Age from which a half-written file counts as left by a killed process."""


class Gain(BaseModel, frozen=True):
    """The paired difference between two versions, with its 95 % interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:+.3f} [{self.low:+.3f}, {self.high:+.3f}]"


class Judged(BaseModel, frozen=True):
    """A retriever's scores on the held-out memories of a pool."""

    held_out: int = Field(ge=0, description="Memories that no training looked at.")
    kind: float | None = Field(
        None, description="Share of the first three that are of the asker's kind; versions before had none."
    )
    recall: float = Field(ge=0, le=1, description="Share of their positives among the first k of the pool.")
    told_apart: float = Field(
        ge=0, le=1, description="Share of their positives in the better half of their labelled candidates."
    )
    loss: float = Field(ge=0, description="The loss on what is trained on, in nats.")
    k: int = Field(ge=1)


class Retriever(BaseModel, frozen=True):
    """One version: its training set, its results, and whether it was kept."""

    number: int = Field(ge=1)
    parent: int = Field(ge=0, description="The version it was trained onwards from; 0: the embedder.")
    learning: Literal["projection", "encoder", "reranker"]
    weights: str = Field(description="SHA-256 of its file.")
    embedder: str
    memories: list[str] = Field(description="Keys of the memories that it learned from newly.")
    positives: int = Field(ge=0)
    negatives: int = Field(ge=0)
    losses: list[float]
    before: Judged
    after: Judged
    gains: dict[str, Gain] = Field({}, description="Of the asker's kind, against the others, by their names.")
    kept: bool
    reason: str = Field(description="Why it was kept, or not.")
    seconds: float = Field(ge=0)
    device: str
    seed: int


class Number(BaseModel):
    """The number of a version."""

    number: int = UNTRAINED


class Retrievers(Shelf[Retriever, Retriever]):
    """The versions of one pool's retriever by their numbers, their files, and which of them serves."""

    def __init__(self, pool: MemoryPool, folder: Path) -> None:
        # From the unescaped team name, as before namespaces escaped it, so that older files are found.
        plain = ("teams", pool.team, "pools", pool.pool)
        name = hashlib.sha256("\n".join(plain).encode()).hexdigest()[:16]
        self._pool, self._folder = pool.pool, folder / name
        missing = f"The pool {pool.pool} has no retriever {{key}}."
        hint = "See `mneme share retriever status`."
        kind = kind_of(Retriever, missing=missing, hint=hint)
        super().__init__(pool.ledger, (*pool.below, "retrievers"), kind)
        self._pointer = Shelf(pool.ledger, (*pool.below, "retriever"), kind_of(Number))

    async def serving(self) -> int:
        """Return the number of the serving version; 0 if none has been kept yet."""
        return (await self._pointer.find(SERVING) or Number()).number

    async def learned(self, most: int) -> list[str]:
        """Return the keys of the memories that versions learned most recently, latest first.

        Versions are read in pages until there are enough keys.
        """
        keys, passed = dict[str, None](), 0
        while len(keys) < most and (found := await self.latest(VERSIONS_PER_PAGE, offset=passed)):
            for each in reversed(found):
                keys |= dict.fromkeys(reversed(each.memories))
            passed += len(found)
        return list(keys)[:most]

    async def get(self, key: int | str) -> Retriever:
        """Return a version by its number. Raises NotFound."""
        if (found := await self.find(f"{int(key):06d}")) is None:
            raise NotFound(self.kind.missing.replace("{key}", str(key)), self.kind.hint)
        return found

    async def weights(self, number: int) -> "Weights":
        """Return the weights of a version. Raises NotFound, StorageFailure."""
        return await asyncio.to_thread(self._read, await self.get(number))

    def name_of(self, weights: "Weights") -> str:
        """Return the checksum of weights, by which their file is named."""
        return hashlib.sha256(_packed(weights)).hexdigest()

    def store(self, weights: "Weights") -> str:
        """Write weights to their file; return the checksum. Blocks. Raises StorageFailure."""
        content = _packed(weights)
        name = hashlib.sha256(content).hexdigest()
        try:
            make_private_folder(self._folder)
            write_durably(self._file(name), content)
        except OSError as error:
            raise StorageFailure(
                f"The retriever cannot be written to {self._folder}: {error.strerror}.",
                "Free some space there.",
            ) from error
        return name

    async def prune(self) -> None:
        """Remove files that killed processes left half written, and those of old versions.

        The files of the latest FILES kept versions stay, and that of the serving one.
        """
        serving = await self.serving()
        kept = [each for each in await self.latest(10 * FILES) if each.kept]
        needed = {each.weights for each in kept[-FILES:]}
        needed |= {each.weights for each in kept if each.number == serving}
        # Earlier calls removed what is older than these.
        past = [self._file(each.weights) for each in kept[-2 * FILES : -FILES] if each.weights not in needed]
        await asyncio.to_thread(self._remove, past)

    def _remove(self, files: Sequence[Path]) -> None:
        for file in (*files, *self._folder.glob("*.part"), *self._folder.glob(".*")):
            with suppress(FileNotFoundError):  # another process removed it
                if file in files or time.time() - file.stat().st_mtime > STALE_SECONDS:
                    file.unlink()

    async def record(self, retriever: Retriever, *, change: Change) -> None:
        """Log a version, kept or not. Raises Conflict if another training took its number."""
        number, once = f"{retriever.number:06d}", f"{retriever.number}/{retriever.weights}"
        await self.insert(retriever, change=change, key=number, idempotency_key=once)

    async def serve(self, number: int, *, instead_of: int, change: Change) -> None:
        """Use a version from now on. Raises Conflict if `instead_of` is no longer the serving one."""
        # The write expects the version that stood before this look: a change after it is a Conflict as well.
        write = await self._pointer.put_write(SERVING, Number(number=number), change)
        if await self.serving() != instead_of:
            raise Conflict(
                f"Retriever {instead_of} of {self._pool} is not the one in use any more.", "Try again."
            )
        await self.ledger.write([write])

    async def roll_back(self, number: int | None, *, change: Change) -> int:
        """Let an earlier version serve again: the given one, or the parent of the serving one.

        Raises BadInput if there is none, NotFound, StorageFailure if its file is damaged.
        """
        now = await self.serving()
        if now == UNTRAINED and number is None:
            raise BadInput(
                f"The pool {self._pool} is served by the untrained embedder: nothing was before it."
            )
        then = (await self.get(now)).parent if number is None else number
        if then != UNTRAINED:
            found, of = await self.get(then), f"Retriever {then} of {self._pool}"
            if not found.kept:
                raise BadInput(f"{of} cannot be used. {found.reason}", CHOOSE)
            if found.embedder != (await self.ledger.info()).embedder:
                raise BadInput(f"{of} belongs to {found.embedder}.", CHOOSE)
            if not await asyncio.to_thread(self._file(found.weights).exists):
                raise BadInput(f"{of} has no file any more.", CHOOSE)
            await asyncio.to_thread(self._read, found)  # a damaged file must not serve
        await self.serve(then, instead_of=now, change=change)
        return then

    def _read(self, retriever: Retriever) -> "Weights":
        from safetensors import SafetensorError  # noqa: PLC0415  (NumPy is slow to import)
        from safetensors.numpy import load_file  # noqa: PLC0415

        file, named = self._file(retriever.weights), f"The file of retriever {retriever.number}"
        try:
            if hashlib.sha256(file.read_bytes()).hexdigest() != retriever.weights:
                raise StorageFailure(f"{named} is damaged: {file}.", ROLL_BACK)
            weights: Weights = load_file(file)
        except (OSError, SafetensorError) as error:
            raise StorageFailure(f"{named} cannot be read: {file}.", ROLL_BACK) from error
        return weights

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.safetensors"


def _packed(weights: "Weights") -> bytes:
    from safetensors.numpy import save  # noqa: PLC0415  (NumPy is slow to import)

    return save(weights)


CHOOSE = "See `mneme share retriever status` for one that was kept lately; 0 is the untrained embedder."
ROLL_BACK = "`mneme share retriever rollback` lets an earlier one serve."
