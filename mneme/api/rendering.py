"""Each kind of record as a row of short cells: a line of a table for people, a line of text for a model.

Records are told by the names of their classes, so that no store is imported for one that is not there.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mneme.api.pools import RetrieverState
    from mneme.nodes.sharing.pools import FrozenRubric
    from mneme.stores.cards.card import Card, CardVersion, Retrieved
    from mneme.stores.cards.disputes import Dispute
    from mneme.stores.discussions.discussions import Discussion
    from mneme.stores.ledger.records import Version
    from mneme.stores.pools.memory_pool import Pooled
    from mneme.stores.tuned_models import Attempt
    from mneme.stores.users.memories import MemoryRecord

Cell = str | int | float | None
Row = Mapping[str, Cell]
HOLDING = {"now": "", "later": "not yet", "past": "no longer"}


def row_of(record: Any) -> Row:
    """Return a record's cells by the names of their columns; the first says which record it is."""
    known = (ROWS[each.__name__] for each in type(record).__mro__ if each.__name__ in ROWS)
    if found := next(known, None):
        return found(record)
    fields = record if isinstance(record, Mapping) else dict(record)
    return {name.replace("_", " "): cell_of(value) for name, value in fields.items()}


def cell_of(value: Any) -> Cell:
    """Return any value as a cell."""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {each}" for name, each in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(str, value))
    return value if isinstance(value, str | int | float) or value is None else str(value)


def memory_row(record: "MemoryRecord") -> Row:
    memory = record.memory
    period = [f"from {memory.since}" if memory.since else "", f"until {memory.until}" if memory.until else ""]
    holds = ", ".join(filter(None, period))
    when = " ".join(filter(None, [HOLDING[memory.holding], f"({holds})" if holds else ""]))
    is_listed = record.similarity is None  # a table of what a search found has no room for one more word
    read = "read by rules" if memory.read_by == "rules" and is_listed else ""
    return {
        "key": record.key,
        "v": record.version,
        "memory": memory.content if record.live else f"{memory.content} (retired)",
        "kind": memory.kind,
        "since": (memory.time or record.at.astimezone().isoformat())[:16].replace("T", " "),
        "note": "; ".join(filter(None, [when, memory.attention, read])),
        "similarity": None if record.similarity is None else round(record.similarity, 2),
    }


def version_row(version: "Version") -> Row:
    content, flag = version.value.get("content"), version.value.get("flag")
    doubt = f" ({flag})" if isinstance(flag, str) and flag else ""
    return {
        "v": version.version,
        "event": version.event,
        "memory": content if isinstance(content, str) else str(version.value),
        "when": f"{version.at:%Y-%m-%d %H:%M:%S}",
        "who": " / ".join(filter(None, (version.change.actor, version.change.model))),
        "why": f"{version.change.reason}{doubt}",
    }


def card_row(card: "Card") -> Row:
    return {
        "id": card.id,
        "v": card.version,
        "status": card.status + (" (flagged)" if card.flags else ""),
        "confidence": f"{card.confidence:.2f}",
        "s/f": f"{card.evidence.success_count}/{card.evidence.failure_count}",
        "claim": card.claim,
    }


def found_card_row(found: "Retrieved") -> Row:
    """Return a card with the parts of its score (§4)."""
    parts = ("similarity", "confidence", "standing", "recency", "success")
    scores = {"score": f"{found.score:.3f}", **{each: f"{found.parts.get(each, 0):.3f}" for each in parts}}
    return {"id": found.card.id, "status": found.card.status, "claim": found.card.claim, **scores}


def card_version_row(version: "CardVersion") -> Row:
    card = card_row(version.card)
    return {
        **{name: card[name] for name in ("v", "status", "confidence", "s/f", "claim")},
        "when": f"{version.at:%Y-%m-%d %H:%M:%S}",
        "who": " / ".join(filter(None, (version.actor, version.model))),
        "why": version.reason,
    }


def dispute_row(dispute: "Dispute") -> Row:
    ended = dispute.resolution
    return {
        "id": dispute.id,
        "status": dispute.status,
        "card": dispute.card_id,
        "finding": dispute.new.claim,
        "resolution": f"{ended.decision}: {ended.reason}" if ended else "",
    }


def pair_row(found: "Pooled") -> Row:
    pair = found.pair
    return {
        "key": found.key,
        "agent": pair.agent,
        "score": pair.score,
        "prompt": pair.prompt,
        "answer": pair.answer,
        "similarity": None if found.similarity is None else round(found.similarity, 2),
    }


def pool_row(pool: "RetrieverState") -> Row:
    return {
        "pool": pool.pool,
        "pairs": pool.memories,
        "retriever": pool.serving,
        "versions": len(pool.versions),
        "not learned": pool.waiting,
    }


def rubric_row(found: "FrozenRubric") -> Row:
    return {
        "domain": found.rubric.name,
        "version": found.version,
        "criteria": len(found.rubric.criteria),
        "from": origin_of(found),
        "why": found.reason,
    }


def origin_of(found: "FrozenRubric") -> str:
    """Say where a rubric comes from: shipped, or who drafted it and who approved it."""
    if not found.version:
        return "as shipped"
    return f"drafted by {found.drafted_by}, approved by {found.by}" if found.drafted_by else f"by {found.by}"


def discussion_row(found: "Discussion") -> Row:
    return {
        "id": found.id,
        "team": found.team["name"],
        "ended": found.ended or "not ended",
        "turns": found.turns,
        "task": found.task.strip().splitlines()[0][:60],
    }


def consolidation_row(attempt: "Attempt") -> Row:
    promoted = "rolled back" if attempt.taken_back else "yes" if attempt.promoted else "no"
    return {"tag": attempt.tag, "promoted": promoted, "model": attempt.model, "why": attempt.why}


ROWS: Mapping[str, Callable[[Any], Row]] = {
    "MemoryRecord": memory_row,
    "Version": version_row,
    "Card": card_row,
    "Retrieved": found_card_row,
    "CardVersion": card_version_row,
    "Dispute": dispute_row,
    "Pooled": pair_row,
    "RetrieverState": pool_row,
    "RubricVersion": rubric_row,
    "Discussion": discussion_row,
    "Attempt": consolidation_row,
}
"""How the records of each class are shown; one of another class shows its fields."""
