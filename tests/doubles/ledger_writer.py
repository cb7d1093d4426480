"""A process that writes to a ledger and says what was acknowledged, until it is killed."""

import asyncio
import random
import sys

from mneme.models.embedding.absent import BUNDLED
from mneme.models.embedding.embedders import Embedder
from mneme.stores.ledger.ledger import open_ledger
from mneme.stores.ledger.records import Change, Write, make_write
from tests.doubles.embedding import WordEmbedder
from tests.doubles.ledgers import forget

CHANGE = Change(reason="to be killed", actor="writer")
NAMESPACE = ("users", "writer")
SMALL = WordEmbedder(dimension=8)


async def main(location: str, seed: int, forgetting: float, embedder: Embedder = SMALL) -> None:
    """Insert, update, retire and forget at random; print key and version once acknowledged.

    Before a record is forgotten, its key and `?` are printed, and afterwards its key and 0.
    """
    chance = random.Random(seed)
    ledger = await open_ledger(location, embedder)
    versions: dict[str, int] = {}
    print("open", flush=True)
    while True:
        writes = [write(chance, versions) for _ in range(chance.randint(1, 8))]
        for version in await ledger.write(writes):
            versions[version.key] = version.version if version.live else -version.version
            print(version.key, version.version, flush=True)
        if chance.random() < forgetting:
            key, _ = versions.popitem()
            print(key, "?", flush=True)
            await forget(ledger, NAMESPACE, key, reason="to be forgotten", actor="writer")
            print(key, 0, flush=True)


def write(chance: random.Random, versions: dict[str, int]) -> Write:
    """Choose what to do to a record that is not in this batch yet."""
    live = [key for key, version in versions.items() if version > 0]
    if not live or chance.random() < 0.4:
        text = f"record {len(versions)} of words {chance.random()}"
        return make_write(event="insert", namespace=NAMESPACE, value={"t": text}, text=text, change=CHANGE)
    key = chance.choice(live)
    expected = versions.pop(key)
    event = "retire" if chance.random() < 0.2 else "update"
    return Write(
        event=event,
        namespace=NAMESPACE,
        key=key,
        value={"t": "new"} if event == "update" else None,
        text=f"changed {chance.random()}" if event == "update" else None,
        change=CHANGE,
        expected_version=expected,
    )


if __name__ == "__main__":
    known = WordEmbedder(BUNDLED.name, BUNDLED.dimension) if "bundled" in sys.argv else SMALL
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), known))
