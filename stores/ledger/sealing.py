"""The seal of a generation: the size and checksum of each of its files, noted when it is closed.

Opening compares what is there with the seal, and puts a mark in its place until the next closing. So damage
to closed files, whatever made it, is noticed before the engine reads them. After a process was killed there
is the mark; then the journal says what must be there.

The mark names the start of the machine. Where that was another one, the power may have failed: the journal is
synced at every write, the engine's files are mapped and are not, so the index cannot be trusted any more.
"""

import json
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from mneme.core.durable import sync_all, write_durably
from mneme.core.errors import Damaged, PowerCut
from mneme.stores.ledger.manifest import MANIFEST, storage_errors
from mneme.stores.ledger.sparse import checksum

SEAL = "mneme.seal"
SEAL_ANEW = "mneme.tmp"
"""Where a seal or a manifest is written before it takes the place of the former one."""
OPEN = "open "
"""What the mark begins with; the machine's start follows."""
START = Path("/proc/sys/kernel/random/boot_id")
NOT_SEALED = (SEAL, MANIFEST, SEAL_ANEW)
AT_ONCE = 4
"""Files whose checksums are computed at the same time."""
Sums = dict[str, tuple[int, int]]


def seal(generation: Path) -> None:
    """Note what the files of a closed generation are; where the disk has no room, it stays without a seal."""
    files = json.dumps(_sums(generation))
    with suppress(OSError):
        sync_all(generation)
        write_durably(generation / SEAL, f"{zlib.crc32(files.encode()):08x} {files}\n")


def open_sealed(generation: Path) -> bool:
    """Compare a generation with its seal, and mark it as open; return whether there was a seal.

    Raises Damaged, and PowerCut where the machine has been started anew since it was opened.
    """
    with storage_errors(f"read {generation}"):
        noted = read_seal(generation)
        if noted is not None and (wrong := differing(generation, noted)):
            raise damaged(generation, f"{', '.join(wrong[:3])}{' and others' if wrong[3:] else ''} changed")
        if is_cut(generation):
            raise power_cut(generation)
        mark_open(generation)
    return noted is not None


def mark_open(generation: Path) -> None:
    """Note that the files of a generation change from now on."""
    write_durably(generation / SEAL, f"{OPEN}{_start()}\n")


def is_cut(generation: Path) -> bool:
    """Say whether the machine stopped while a generation was open."""
    mark = _mark(generation)
    return mark.startswith(OPEN) and mark != f"{OPEN}{_start()}\n"


def read_seal(generation: Path) -> Sums | None:
    """Return what was noted; None where there is no seal, or one that is damaged itself."""
    try:
        check, files = _mark(generation).split(" ", 1)
        if int(check, 16) != zlib.crc32(files.strip().encode()):
            return None
        found: Sums = json.loads(files)
    except ValueError:
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


def power_cut(generation: Path) -> PowerCut:
    """Return the error for a generation that was open when the machine stopped."""
    return PowerCut(
        f"The machine stopped while the ledger in {generation} was open; its index cannot be trusted.",
        "`mneme repair` builds it anew from the journal.",
    )


def _mark(generation: Path) -> str:
    try:
        return (generation / SEAL).read_text(errors="replace")
    except FileNotFoundError:
        return ""


def _start() -> str:
    """Name the machine's start; empty where the system does not tell, which cannot notice a power cut."""
    try:
        return START.read_text().strip()
    except OSError:
        return ""


def _sums(generation: Path) -> Sums:
    names = [
        str(path.relative_to(generation))
        for path in sorted(generation.rglob("*"))
        if path.is_file() and path.name not in NOT_SEALED
    ]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(names, pool.map(lambda name: checksum(generation / name), names), strict=True))
