"""`mneme.json`: what an embedded ledger is made with, read and written so that no power cut tears it."""

import contextlib
import errno
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mneme.core.durable import write_durably
from mneme.core.errors import LedgerMismatch, NotWritable, StorageFailure
from mneme.stores.ledger.engine import FORMAT

MANIFEST = "mneme.json"
NO_WRITING = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Manifest(BaseModel):
    """What the ledger in a folder is made with."""

    model_config = ConfigDict(frozen=True)

    format: int
    embedder: str
    dimension: int
    generation: int
    ordered: int = Field(0, ge=0, description="Points when all were last written side by side; 0: never.")


@contextlib.contextmanager
def storage_errors(what: str) -> Iterator[None]:
    """Turn an operating-system refusal into one line for the user."""
    try:
        yield
    except OSError as refusal:
        reason = refusal.strerror or str(refusal)
        kind = NotWritable if refusal.errno in NO_WRITING else StorageFailure
        hint = "Check the disk's free space and who may write to the folder; MNEME_HOME names another."
        raise kind(f"Cannot {what}: {reason}.", hint) from refusal


def read_manifest(path: Path) -> Manifest | None:
    """Return a manifest; None where it is missing or damaged."""
    try:
        with storage_errors(f"read {path}"):
            return Manifest.model_validate_json(path.read_bytes()) if path.exists() else None
    except ValidationError:
        return None


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Write a manifest durably: it is there as a whole, or the former one is."""
    write_durably(path, manifest.model_dump_json(indent=2) + "\n")


def check_format(location: object, found: int) -> None:
    """Refuse a ledger that a newer version of Mneme wrote; older formats are upgraded."""
    if found > FORMAT:
        raise LedgerMismatch(
            f"{location} has the ledger format {found}; this version reads up to {FORMAT}.",
            "Install the version of Mneme that wrote it, or a newer one.",
        )


def unnamed(path: Path, generations: Sequence[Path]) -> LedgerMismatch:
    """Return the refusal of a ledger without a manifest or a copy of it."""
    if not generations:
        return LedgerMismatch(
            f"{path} is damaged, and the ledger's files are not there; nothing was touched.",
            "Restore the whole folder from a backup.",
        )
    newest = generations[-1]
    return LedgerMismatch(
        f"{path} is missing or damaged; the ledger's files in {newest} were not touched.",
        f"Restore {path.name} from a backup. Or write it anew, with the NAME of the embedder that the ledger "
        f'was made with: {{"format": 1, "embedder": "NAME", "dimension": {_dimension(newest)}, '
        f'"generation": {int(newest.name.rpartition("-")[2])}}}',
    )


def _dimension(generation: Path) -> str:
    """Return how long the vectors are, as the engine's own file says."""
    try:
        config = json.loads((generation / "edge_config.json").read_text())
        return str(config["vectors"]["dense"]["size"])
    except (OSError, ValueError, LookupError, TypeError):
        return "NUMBER"
