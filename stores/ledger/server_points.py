"""Points and updates as a Qdrant server takes them: claims with their intents, heads, vectors."""

from collections.abc import Sequence
from typing import Any

from qdrant_client import models

from mneme.stores.ledger.engine import DENSE, SPARSE, Embedded, Entry, Payload, Point
from mneme.stores.ledger.words import Words


def claim_point(claim: Point, entry: Entry) -> models.PointStruct:
    payload = dict(claim.payload)
    if claim is entry.claims[-1]:
        head = entry.head
        intent: Payload = {
            "head": {"id": head.id, **{k: v for k, v in head.payload.items() if k != "event"}},
            "receipts": [[receipt.id, receipt.payload["version"]] for receipt in entry.receipts],
        }
        if head.dense is not None:
            intent["dense"] = list(head.dense)
        if head.words is not None:
            intent["words"] = list(head.words)
        payload |= {"pending": True, "intent": intent}
    return models.PointStruct(id=claim.id, vector={}, payload=payload)


def head_operation(claim: Payload) -> Any:
    intent = claim["intent"]
    payload = {**intent["head"], "event": claim["event"]}
    words = Words(*intent["words"]) if "words" in intent else None
    head = point_struct(Point(payload.pop("id"), payload, intent.get("dense"), words))
    older = models.FieldCondition(key="n", range=models.Range(lt=payload["n"]))
    points = models.PointsList(points=[head], update_filter=models.Filter(must=[older]))
    return models.UpsertOperation(upsert=points)


def dense_of(records: Sequence[Any]) -> dict[str, Sequence[float]]:
    """Return the dense vectors of those records that have one."""
    return {str(record.id): record.vector[DENSE] for record in records if DENSE in (record.vector or ())}


def embedding_operation(head: Embedded) -> models.UpdateVectorsOperation:
    same = models.FieldCondition(key="n", range=models.Range(gte=head.n, lte=head.n))
    points = [models.PointVectors(id=head.id, vector={DENSE: list(head.dense)})]
    update = models.UpdateVectors(points=points, update_filter=models.Filter(must=[same]))
    return models.UpdateVectorsOperation(update_vectors=update)


def point_struct(point: Point) -> models.PointStruct:
    vectors: dict[str, Any] = {}
    if point.dense is not None:
        vectors[DENSE] = list(point.dense)
    if point.words is not None:
        vectors[SPARSE] = models.SparseVector(indices=point.words.indices, values=point.words.values)
    return models.PointStruct(id=point.id, vector=vectors, payload=point.payload)
