"""Each kind of record as a row of short cells: a line of a table for people, a line of text for a model.

Records are recognized by the names of their classes, so that no unused store is imported.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from textwrap import shorten
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mneme.api.erased import Erased
    from mneme.api.memories import Written
    from mneme.nodes.sharing.pools import FrozenRubric
    from mneme.stores.cards.card import Card
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


def count_of(number: int, noun: str) -> str:
    """Return a count with its noun: `1 message`, `2,000 memories`."""
    several = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else several}"


def written_lines(written: "Written") -> list[str]:
    """Return the lines printed with a written memory's row: whether it is new, and whether it waits."""
    known = "" if written.is_new else "It was remembered already, word for word: nothing was written."
    waits = "It is proposed: it waits until a reviewer of the team accepts it." if written.is_proposed else ""
    return [*filter(None, [known, waits])]


def erased_lines(erased: "Erased") -> list[str]:
    """Return what was erased, and a line for each thing that may still hold it."""
    what = ", ".join(count_of(number, noun) for noun, number in erased.kinds.items()) or "nothing"
    return [
        f"forgotten: {what}; messages: {erased.turns}, threads: {len(erased.threads)}",
        *(f"- not erased: {each}" for each in erased.left),
        *(
            f"- stopped: {each}; the command that began it goes on, without what was forgotten"
            for each in erased.stopped
        ),
        *(f"- a backup may hold it: {each}" for each in erased.backups),
    ]


def card_lines(card: "Card") -> list[str]:
    """Return a card's content besides its claim: its evidence, why and when it holds, and where it fails."""
    seen, rated = card.evidence, sum(each.good for each in card.ratings)
    served = f"; {rated} of {len(card.ratings)} people served" if card.ratings else ""
    tried = f"{seen.success_count} successes, {seen.failure_count} failures"
    parts = {
        "Evidence": [f"{tried}; confidence {card.confidence:.2f}{served}."],
        "Flag": card.flags,
        "Rationale": [card.rationale],
        "Scope": [card.scope],
        "Rule": [f"when {each.condition}: {each.pattern}" for each in card.rules],
        "Fails": [_joined(each.condition, each.impact, each.mitigation) for each in card.failure_modes],
        "Avoid": [_joined(each.approach, each.reason) for each in card.deprecated_approaches],
    }
    return [f"{name}: {each}" for name, texts in parts.items() for each in texts if each]


def _joined(*texts: str) -> str:
    return "; ".join(filter(None, texts))


def _memory_row(record: Any) -> Row:
    memory = record.memory
    period = [f"from {memory.since}" if memory.since else "", f"until {memory.until}" if memory.until else ""]
    holds = ", ".join(filter(None, period))
    when = " ".join(filter(None, [VALIDITY_LABELS[memory.holding], f"({holds})" if holds else ""]))
    is_listed = record.similarity is None  # search results have no room for that column
    before = [] if is_listed else [each.text for each in memory.past[:1]]
    told = f"shared with {', '.join(record.shared_with)}" if record.shared_with else ""
    read = "read by rules" if memory.read_by == "rules" and is_listed else ""
    parts = [when, *before, memory.attention, told, read]  # some are sentences
    return {
        "key": record.key,
        "v": record.version,
        "memory": memory.content if record.live else f"{memory.content} (retired)",
        "kind": memory.kind,
        "since": (memory.time or record.at.astimezone().isoformat())[:16].replace("T", " "),
        "note": "; ".join(filter(None, parts)).replace(".; ", "; "),
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
    """Return a version of a retriever; older versions have no value for `own kind`."""
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
    "CardVersion": lambda of: {
        **{name: cell for name, cell in _card_row(of.card).items() if name != "id"},
        **_changed(of.at, of.actor, of.model, of.reason),
    },
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
