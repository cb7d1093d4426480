"""Settling a claimed version on a Qdrant server: what is written after the claim, and what came of it.

A head is never made for a version that follows from another one: it is only updated, and only where it is of
the same record, which its time of creation says. So a writer that read a record before it was forgotten finds
no head, and its claim is erased. A record's first head is made right after its claim was seen, and is noted
as pending; where the record is forgotten between the two, the head is erased as well: by whoever made it, or,
where that process was killed, by the next one that opens the ledger.
"""

from collections.abc import Mapping, Sequence, Set
from typing import Any, NamedTuple

from qdrant_client import models

from mneme.stores.ledger.deciding import last_number
from mneme.stores.ledger.engine import DENSE, SPARSE, Entry, Payload, Point
from mneme.stores.ledger.records import Version, tombstone_id, version_id
from mneme.stores.ledger.words import Words

OPEN = ["intent", "pending"]
"""What a claim has beside its version, and `created` of its record, until it is settled."""
INSERT = models.UpdateMode.INSERT_ONLY


class Settled(NamedTuple):
    """The ids of claims whose heads are there, of those to be erased, and of heads that have lost theirs."""

    done: Set[str]
    void: Set[str]
    lost: Set[str]


def struct(point: Point) -> models.PointStruct:
    """Return a point as the server takes it."""
    vectors: dict[str, Any] = {}
    if point.dense is not None:
        vectors[DENSE] = list(point.dense)
    if point.words is not None:
        vectors[SPARSE] = models.SparseVector(indices=point.words.indices, values=point.words.values)
    return models.PointStruct(id=point.id, vector=vectors, payload=point.payload)


def claim_struct(claim: Point, entry: Entry) -> models.PointStruct:
    """Return a version point; the last of an entry's carries what follows from it."""
    head = entry.head
    payload = {**claim.payload, "created": head.payload["created"]}
    if claim is entry.claims[-1]:
        intent: Payload = {
            "head": {"id": head.id, **{k: v for k, v in head.payload.items() if k != "event"}},
            "receipts": [[receipt.id, receipt.payload["version"]] for receipt in entry.receipts],
            "claims": [each.id for each in entry.claims],
            "fresh": entry.fresh,
        }
        if head.dense is not None:
            intent["dense"] = list(head.dense)
        if head.words is not None:
            intent["words"] = list(head.words)
        payload |= {"pending": True, "intent": intent}
    return models.PointStruct(id=claim.id, vector={}, payload=payload)


def heads_of(claims: Mapping[str, Payload]) -> list[str]:
    """Return the ids of the heads that claims lead to."""
    return [payload["intent"]["head"]["id"] for payload in claims.values()]


def writing(claims: Mapping[str, Payload]) -> list[Any]:
    """Return the operations that write receipts and heads, once all of the claims are known to be there.

    A receipt that is there says that its write was forgotten, or is the same.
    """
    there = models.SetPayload(payload={}, points=list(claims))
    receipts = [
        models.PointStruct(id=receipt, vector={}, payload={"version": version})
        for payload in claims.values()
        for receipt, version in payload["intent"]["receipts"]
    ]
    noted = models.PointsList(points=receipts, update_mode=INSERT)
    return [
        models.SetPayloadOperation(set_payload=there),
        *([models.UpsertOperation(upsert=noted)] if receipts else []),
        *map(_head_operation, claims.values()),
    ]


def settled(claims: Mapping[str, Payload], found: Mapping[str, Payload]) -> Settled:
    """Say what became of claims whose heads have been written, from the points that are found now."""
    done, void, lost = set[str](), set[str](), set[str]()
    for point, payload in claims.items():
        wanted = payload["intent"]["head"]
        head, tombstone = found.get(wanted["id"], {}), found.get(tombstone_id(wanted["id"]))
        used = tombstone is not None and _is_used(payload, last_number(tombstone))
        if point in found:
            reached = head.get("created") == wanted["created"] and head["n"] >= wanted["n"]
            (done if reached and not used else void).add(point)
        if (point not in found or used) and head.get("event") == payload["event"]:
            lost.add(point)
    return Settled(done, void, lost)


def _is_used(claim: Payload, last: int) -> bool:
    """Say whether a new record was given a number that a forgotten one had when that was noted just then."""
    return claim["intent"].get("fresh", True) and Version.model_validate_json(claim["event"]).first <= last


def concluding(claims: Mapping[str, Payload], found: Settled) -> list[Any]:
    """Return the operations that leave of claims nothing but the versions, or nothing at all."""
    operations: list[Any] = []
    if found.done:
        of_done = _all([_claims_of(point, claims[point]) for point in found.done])
        operations.append(_without([*OPEN, "created"], of_done))
        operations.append(_without(["pending"], _all([_head_of(claims[point]) for point in found.done])))
    doomed = [_claims_of(point, claims[point]) for point in found.void]
    doomed += [_receipts_of(claims[point]) for point in found.void if claims[point]["intent"]["receipts"]]
    doomed += [_head_of(claims[point]) for point in found.lost]
    if doomed:
        selected = models.FilterSelector(filter=_all(doomed))
        operations.append(models.DeleteOperation(delete=selected))
    return operations


def erased(points: Sequence[str], created: Mapping[str, int]) -> models.DeleteOperation:
    """Return the operation that deletes points; of heads only those of the records that were created then."""
    heads = [_filter([head], _is("created", moment)) for head, moment in created.items()]
    others = [point for point in points if point not in created]
    doomed = [*heads, *([_filter(others)] if others else [])]
    return models.DeleteOperation(delete=models.FilterSelector(filter=_all(doomed)))


def lone_heads(heads: Mapping[str, Payload], versions: Mapping[str, Payload]) -> list[Any]:
    """Return the operations that erase those pending heads that have no version, and let the others stay."""
    lone = {head for head, payload in heads.items() if version_id(head, payload["n"]) not in versions}
    doomed = [_same_head(head, heads[head]) for head in lone]
    stay = [_same_head(head, payload) for head, payload in heads.items() if head not in lone]
    erased = [models.DeleteOperation(delete=models.FilterSelector(filter=_all(doomed)))] if doomed else []
    return [*erased, *([_without(["pending"], _all(stay))] if stay else [])]


def _without(fields: Sequence[str], points: models.Filter) -> models.DeletePayloadOperation:
    return models.DeletePayloadOperation(delete_payload=models.DeletePayload(keys=[*fields], filter=points))


def _head_operation(claim: Payload) -> Any:
    intent = claim["intent"]
    fresh = intent.get("fresh", True)
    payload = {**intent["head"], "event": claim["event"], **({"pending": True} if fresh else {})}
    words = Words(*intent["words"]) if "words" in intent else None
    head = struct(Point(payload.pop("id"), payload, intent.get("dense"), words))
    older = models.FieldCondition(key="n", range=models.Range(lt=payload["n"]))
    same = models.Filter(must=[older, _is("created", payload["created"])])
    mode = models.UpdateMode.UPSERT if fresh else models.UpdateMode.UPDATE_ONLY
    points = models.PointsList(points=[head], update_filter=same, update_mode=mode)
    return models.UpsertOperation(upsert=points)


def _claims_of(point: str, claim: Payload) -> models.Filter:
    """Select the points of a write; not those that another write has put in their places since.

    The claims of earlier versions of Mneme do not say where they belong.
    """
    if "created" not in claim:
        return _filter([point])
    intent = claim["intent"]
    return _filter(intent["claims"], _is("created", claim["created"]))


def _receipts_of(claim: Payload) -> models.Filter:
    intent = claim["intent"]
    return _filter([receipt for receipt, _ in intent["receipts"]], _is("version", intent["head"]["n"]))


def _head_of(claim: Payload) -> models.Filter:
    head = claim["intent"]["head"]
    return _same_head(head["id"], head)


def _same_head(point: str, head: Payload) -> models.Filter:
    return _filter([point], _is("created", head["created"]), _is("n", head["n"]))


def _filter(ids: Sequence[str], *conditions: Any) -> models.Filter:
    return models.Filter(must=[models.HasIdCondition(has_id=list(ids)), *conditions])


def _is(field: str, number: int) -> models.FieldCondition:
    return models.FieldCondition(key=field, range=models.Range(gte=number, lte=number))


def _all(filters: Sequence[models.Filter]) -> models.Filter:
    return models.Filter(should=[*filters])
