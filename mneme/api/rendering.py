"""Each kind of record as a row of short cells: a line of a table for people, a line of text for a model.

Records are recognized by the names of their classes, so that no unused store is imported.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from textwrap import shorten
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mneme.nodes.sharing.pools import FrozenRubric
    from mneme.stores.cards.disputes import Dispute

Cell = str | int | float | None
Row = Mapping[str, Cell]
SCORE_PARTS = ("similarity", "confidence", "standing", "recency", "success")
VALIDITY_LABELS = {"now": "", "later": "not yet", "past": "no longer"}


def row_of(record: Any) -> Row:
    """Return a record's cells by the names of their columns; the first says which record it is."""
    known = (ROW_RENDERERS[each.__name__] for each in type(record).__mro__ if each.__name__ in ROW_RENDERERS)
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
        sentences = [getattr(each, "text", each.content) for each in value if hasattr(each, "content")]
        return "\n".join(sentences) or ", ".join(map(str, value))
    return value if isinstance(value, str | int | float) or value is None else str(value)


def _memory_row(record: Any) -> Row:
    memory = record.memory
    period = [f"from {memory.since}" if memory.since else "", f"until {memory.until}" if memory.until else ""]
    holds = ", ".join(filter(None, period))
    when = " ".join(filter(None, [VALIDITY_LABELS[memory.holding], f"({holds})" if holds else ""]))
    is_listed = record.similarity is None  # a table of search results has no room for another column
    before = [] if is_listed else [each.text for each in memory.past[:1]]
    told = f"shared with {', '.join(record.shared_with)}" if record.shared_with else ""
    read = "read by rules" if memory.read_by == "rules" and is_listed else ""
    return {
        "key": record.key,
        "v": record.version,
        "memory": memory.content if record.live else f"{memory.content} (retired)",
        "kind": memory.kind,
        "since": (memory.time or record.at.astimezone().isoformat())[:16].replace("T", " "),
        "note": "; ".join(filter(None, [when, *before, memory.attention, told, read])).replace(".; ", "; "),
        "similarity": record.similarity,
    }


def _version_row(version: Any) -> Row:
    content, flag = version.value.get("content"), version.value.get("flag")
    doubt = f" ({flag})" if isinstance(flag, str) and flag else ""
    return {
        "v": version.version,
        "event": version.event,
        "memory": content if isinstance(content, str) else str(version.value),
        **_changed(version.at, version.change.actor, version.change.model, f"{version.change.reason}{doubt}"),
    }


def _changed(at: datetime, actor: str, model: str, why: str) -> Row:
    return {"when": f"{at:%Y-%m-%d %H:%M:%S}", "who": " / ".join(filter(None, (actor, model))), "why": why}


def _card_row(card: Any) -> Row:
    return {
        "id": card.id,
        "v": card.version,
        "status": card.status + (" (flagged)" if card.flags else ""),
        "confidence": f"{card.confidence:.2f}",
        "s/f": f"{card.evidence.success_count}/{card.evidence.failure_count}",
        "claim": card.claim,
    }


def _card_version_row(version: Any) -> Row:
    card = {name: cell for name, cell in _card_row(version.card).items() if name != "id"}
    return {**card, **_changed(version.at, version.actor, version.model, version.reason)}


def dispute_row(dispute: "Dispute") -> Row:
    """Return a dispute, and how it ended."""
    ended = dispute.resolution
    return {
        "id": dispute.id,
        "status": dispute.status,
        "card": dispute.card_id,
        "finding": dispute.new.claim,
        "resolution": f"{ended.decision}: {ended.reason}" if ended else "",
    }


def origin_of(found: "FrozenRubric") -> str:
    """Return the origin of a rubric: shipped, or who drafted it and who approved it."""
    if not found.version:
        return "as shipped"
    return f"drafted by {found.drafted_by}, approved by {found.by}" if found.drafted_by else f"by {found.by}"


def _retriever_row(of: Any) -> Row:
    """Return a version of a retriever; versions of before have no figure of their own kind."""
    before, after = of.before.kind, of.after.kind
    return {
        "v": of.number,
        "trained from": of.parent,
        "trained": of.learning,
        "+/-": f"{of.positives}/{of.negatives}",
        "loss": f"{of.losses[0]:.3f} → {of.losses[-1]:.3f}" if of.losses else "",
        "own kind": "" if before is None or after is None else f"{before:.3f} → {after:.3f}",
        "seconds": of.seconds,
        "device": of.device,
    }


ROW_RENDERERS: Mapping[str, Callable[[Any], Row]] = {
    "MemoryRecord": _memory_row,
    "Version": _version_row,
    "Recalled": lambda found: {
        "key": found.key[:16],
        "kind": found.kind,
        "text": found.text,
        "from": found.origin,
        "score": round(found.score, 2),
        "out of date": found.stale,
    },
    "Contradiction": lambda found: {
        "key": found.key,
        "kind": ", ".join(dict.fromkeys((found.newer.kind, found.older.kind))),
        "newer": found.newer.line,
        "older": found.older.line,
        "why": found.why,
    },
    "Forgotten": lambda gone: {
        "kind": gone.namespace[-1],
        "versions": gone.versions,
        **_changed(gone.at, gone.actor, "", gone.reason),
    },
    "Step": lambda step: {
        "key": step.key[:16] or "·",
        "steps": step.distance or "",
        "kind": step.kind,
        "v": step.version,
        "text": step.text,
        "made by": step.made,
        "said": f"“{step.said}”" if step.said else "",
        "said in": ", ".join(step.said_in),
        "out of date": step.stale,
    },
    "Card": _card_row,
    "Retrieved": lambda found: {  # with the parts of its score (§4)
        **{name: getattr(found.card, name) for name in ("id", "status", "claim")},
        "score": f"{found.score:.3f}",
        **{each: f"{found.parts.get(each, 0):.3f}" for each in SCORE_PARTS},
    },
    "CardVersion": _card_version_row,
    "Dispute": dispute_row,
    "Pooled": lambda found: {
        "key": found.key,
        **{name: getattr(found.pair, name) for name in ("agent", "score", "prompt", "answer")},
        "similarity": found.similarity,
    },
    "Retriever": _retriever_row,
    "RetrieverState": lambda pool: {
        "pool": pool.pool,
        "pairs": pool.memories,
        "retriever": pool.serving,
        "versions": len(pool.versions),
        "not learned": pool.waiting,
    },
    "RubricVersion": lambda found: {
        "domain": found.rubric.name,
        "version": found.version,
        "criteria": len(found.rubric.criteria),
        "from": origin_of(found),
        "why": found.reason,
    },
    "Discussion": lambda found: {
        "id": found.id,
        "team": found.team["name"],
        "ended": found.ended or "not ended",
        "turns": found.turns,
        "out of date": found.stale,
        "task": shorten(found.task.strip().lstrip("# ").partition("\n")[0], 60, placeholder="…"),
    },
    "Attempt": lambda attempt: {
        "tag": attempt.tag,
        "promoted": "rolled back" if attempt.taken_back else "yes" if attempt.promoted else "no",
        "model": attempt.model,
        "why": attempt.why,
    },
}
"""Renderers by class; a record of another class shows its fields."""
