"""The seal of a generation: the size and checksum of each of its files, noted when it is closed.

Opening compares what is there with the seal, and then takes the seal away until the next closing. So damage
to closed files, whatever made it, is noticed before the engine reads them. After a process was killed there
is no seal; then the journal says what must be there.
"""

import json
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from mneme.core.errors import Damaged
from mneme.stores.ledger.manifest import MANIFEST, storage_errors
from mneme.stores.ledger.sparse import checksum

SEAL = "mneme.seal"
AT_ONCE = 4
"""Files whose checksums are computed at the same time."""
Sums = dict[str, tuple[int, int]]


def seal(generation: Path) -> None:
    """Note what the files of a closed generation are; where the disk has no room, it stays without a seal."""
    files = json.dumps(_sums(generation))
    with suppress(OSError):
        (generation / SEAL).write_text(f"{zlib.crc32(files.encode()):08x} {files}\n")


def open_sealed(generation: Path) -> bool:
    """Compare a generation with its seal, and take it away; return whether there was one. Raises Damaged."""
    with storage_errors(f"read {generation}"):
        noted = read_seal(generation)
        if noted is not None and (wrong := differing(generation, noted)):
            raise damaged(generation, f"{', '.join(wrong[:3])}{' and others' if wrong[3:] else ''} changed")
        (generation / SEAL).unlink(missing_ok=True)
    return noted is not None


def read_seal(generation: Path) -> Sums | None:
    """Return what was noted; None where there is no seal, or one that is damaged itself."""
    try:
        check, files = (generation / SEAL).read_text().split(" ", 1)
        if int(check, 16) != zlib.crc32(files.strip().encode()):
            return None
        found: Sums = json.loads(files)
    except (FileNotFoundError, ValueError):
        return None
    return found


def differing(generation: Path, noted: Sums) -> list[str]:
    """Return the files that are missing, new or not as they were noted."""
    found = _sums(generation)
    return sorted(
        name for name in noted.keys() | found.keys() if tuple(noted.get(name, ())) != found.get(name)
    )


def damaged(generation: Path, how: str) -> Damaged:
    """Return the error for a generation of which something is wrong."""
    return Damaged(
        f"The ledger's files in {generation} are damaged: {how}.",
        "`mneme verify` says what is whole; `mneme repair` builds the ledger anew from that.",
    )


def _sums(generation: Path) -> Sums:
    names = [
        str(path.relative_to(generation))
        for path in sorted(generation.rglob("*"))
        if path.is_file() and path.name not in (SEAL, MANIFEST)
    ]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(names, pool.map(lambda name: checksum(generation / name), names), strict=True))
