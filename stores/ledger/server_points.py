"""Vectors of points as a Qdrant server gives and takes them."""

from collections.abc import Sequence
from typing import Any

from qdrant_client import models

from mneme.stores.ledger.engine import DENSE, Embedded


def dense_of(records: Sequence[Any]) -> dict[str, Sequence[float]]:
    """Return the dense vectors of those records that have one."""
    return {str(record.id): record.vector[DENSE] for record in records if DENSE in (record.vector or ())}


def embedding_operation(head: Embedded) -> models.UpdateVectorsOperation:
    same = models.FieldCondition(key="n", range=models.Range(gte=head.n, lte=head.n))
    points = [models.PointVectors(id=head.id, vector={DENSE: list(head.dense)})]
    update = models.UpdateVectors(points=points, update_filter=models.Filter(must=[same]))
    return models.UpdateVectorsOperation(update_vectors=update)
