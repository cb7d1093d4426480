"""Vectors for what was written while the embedder was absent, and is found by its words alone until then."""

import logging
from collections.abc import Mapping

from mneme.models.embedding.absent import Absent
from mneme.models.embedding.embedders import EMBEDDED_AT_ONCE, Embedder, vectors_of
from mneme.stores.ledger.engine import Embedded, Engine, Payload
from mneme.stores.ledger.records import Version

log = logging.getLogger(__name__)


async def embed_what_waits(engine: Engine, embedder: Embedder) -> None:
    """Embed every head that has words and no vector, unless the embedder is absent still."""
    count = 0
    while not isinstance(embedder, Absent) and (heads := await engine.unembedded(EMBEDDED_AT_ONCE)):
        await _embed(engine, embedder, heads)
        count += len(heads)
        log.info("Embedded %d records that were written without an embedder.", count)


async def _embed(engine: Engine, embedder: Embedder, heads: Mapping[str, Payload]) -> None:
    texts = {head: Version.model_validate_json(told["event"]).text for head, told in heads.items()}
    vectors = await vectors_of(embedder, texts.values())
    await engine.embed([Embedded(head, heads[head]["n"], vectors[text]) for head, text in texts.items()])
