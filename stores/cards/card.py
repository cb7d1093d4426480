"""Knowledge cards: what a team has learned, in the schema of the paper's §6.

Beyond the paper's fields a card has `scope` (the domain or environment it was learned in; with the claim
it makes the card's identity), `rules` (§7, task 3), the outcomes of its last tasks, the status it returns
to from a dispute, an archive or a deprecation, and warnings against showing it to agents (`flags`).

A team's cards are records of the ledger (`CardRecords`), changed one version at a time. Retrieved cards are
ranked by §4's weights (`ranking`) of numbers that are stored beside a card (`ranking_numbers`).
"""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field, field_validator

from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.query import Ranking, section_name
from mneme.stores.ledger.records import Change, Value, Version, Write, team_namespace
from mneme.stores.shelf import RecordKind, Shelf
from mneme.stores.write_gate import CARD_GATE

Status = Literal["provisional", "verified", "deprecated", "disputed", "archived"]
Standing = Literal["provisional", "verified"]
ShelfName = Literal["active", "pitfall", "aside"]

SUCCESS_WINDOW = 10
"""Number of latest tasks over which a card's success rate is computed (§5: 30 % over 10 tasks)."""
QUARANTINE = 0.5
"""Confidence below which cards are excluded from retrieval (§5)."""
SHARER = "another organisation"
"""Who made a card that was shared without names."""
DERIVED_FIELDS = ("success", "standing", "proven", "renewed", "expires")
"""Numbers that retrieval reads, kept beside a card in its record; they follow from the card."""


class Frozen(BaseModel, frozen=True):
    """An immutable model."""


class Part(Frozen, extra="forbid"):
    """A part of a card, strict about its fields: one that YAML misspells is refused."""


class Rule(Part):
    """A condition, and what to do where it holds."""

    condition: str = Field(min_length=1)
    pattern: str = Field(min_length=1)


class DeprecatedApproach(Part):
    """A dead end: an approach that failed, the reason, and the condition in which it failed."""

    approach: str = Field(min_length=1)
    reason: str = ""
    failed_in: list[str] = []
    condition: str = Field("", description="Of which tasks it is known; nothing: of the card's own.")
    gained: float | None = Field(
        None,
        description="How many times as good it became, where it helped but fell short of what was wanted.",
    )


class FailureMode(Part):
    """When the lesson fails, what then happens, and what helps."""

    condition: str = Field(min_length=1)
    impact: str = ""
    mitigation: str = ""


class TaskOutcome(Part):
    """The outcome of one task that used a card, with the leader's confidence in its solution."""

    task: str = Field(min_length=1)
    success: bool
    confidence: float = Field(1.0, ge=0, le=1)
    features: str = Field("", description="What mattered in the task, where its world can tell.")


class Evidence(Part):
    """The tasks that a card rests on: their numbers, and the outcomes of the latest."""

    task_ids: list[str] = []
    success_count: int = Field(0, ge=0)
    failure_count: int = Field(0, ge=0)
    recent: list[TaskOutcome] = Field([], max_length=SUCCESS_WINDOW)

    @property
    def count(self) -> int:
        return self.success_count + self.failure_count

    @property
    def success_rate(self) -> float:
        return self.success_count / self.count if self.count else 0.0

    @property
    def recent_rate(self) -> float | None:
        """Return the success rate of the whole window; None while it is not full."""
        if len(self.recent) < SUCCESS_WINDOW:  # §5 says "over 10 tasks": two failures deprecate no card
            return None
        return sum(outcome.success for outcome in self.recent) / SUCCESS_WINDOW


def _with_a_zone(at: datetime) -> datetime:
    if at.tzinfo is None:
        raise ValueError("a time needs its zone, e.g. 2026-01-31T12:00:00Z")
    return at.astimezone(UTC)


Moment = Annotated[datetime, AfterValidator(_with_a_zone)]


class Provenance(Part):
    """Who made the card, when, and with which model."""

    created_by: str = ""
    created_at: Moment
    model_version: str = ""


class Rating(Part):
    """A person's rating of a card: whether it served them, in which task, and when."""

    by: str = Field(min_length=1)
    good: bool
    task: str = ""
    comment: str = ""
    at: Moment


class Lesson(Part):
    """A lesson from a task, before it is a card."""

    claim: str = Field(min_length=1)
    rationale: str = ""
    rules: list[Rule] = []
    deprecated_approaches: list[DeprecatedApproach] = []
    failure_modes: list[FailureMode] = []
    example: str = Field("", description="A solution that worked, whole, where it is short enough.")
    tags: list[str] = []
    scope: str = ""

    @field_validator("claim")
    @classmethod
    def _says_something(cls, claim: str) -> str:
        if not claim.strip():
            raise ValueError("a claim must say something")
        return claim

    @property
    def card_id(self) -> str:
        """Return the id of the card that this lesson makes: the same for the same claim and scope."""
        said = f"{normalised(self.scope)}\x1f{normalised(self.claim)}"  # \x1f: normalising removes it
        return f"card_{hashlib.sha256(said.encode()).hexdigest()[:16]}"

    @property
    def text(self) -> str:
        """Return the text for search: claim, conditions and tags (patterns are code, the rest is long)."""
        lines = [self.claim, *(rule.condition for rule in self.rules), " ".join(self.tags)]
        return "\n".join(line for line in lines if line.strip())


def flags_of(lesson: Lesson) -> list[str]:
    """Return the doubts about the texts that an agent may read, as "field: doubt: the words"."""
    said = lesson.model_dump(include={*Lesson.model_fields, "deprecated_because"})
    return [f"{where}: {doubt}" for where, text in _texts("", said) for doubt in CARD_GATE.doubts(text)]


def _texts(path: str, value: object) -> Iterator[tuple[str, str]]:
    """Yield every text with the path of its field."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict | list):
        for name, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts(f"{path}.{name}".removeprefix("."), item)


class Card(Lesson):
    """A knowledge card: a lesson with its scope, evidence and status.

    >>> import mneme
    >>> with mneme.open() as memory:
    ...     proposed = memory.cards.propose("Build an index before a large join.", tags=["sql"])
    ...     card = memory.cards.get(proposed.card.id)
    >>> card.status, card.tags, card.evidence.count
    ('provisional', ['sql'], 0)
    """

    id: str = Field(min_length=1)
    version: int = Field(1, ge=1, description="Counts the card's changes; it travels with the card.")
    status: Status = "provisional"
    evidence: Evidence = Evidence()
    provenance: Provenance
    confidence: float = Field(ge=0, le=1)
    renewed_at: datetime | None = Field(None, description="When the lesson was last rewritten, by a merge.")
    returns_to: Standing = Field("provisional", description="The standing that a restored card has.")
    superseded_by: str = ""
    deprecated_because: str = ""
    flags: list[str] = Field([], description="What reads like an instruction to agents, not yet cleared.")
    cleared: list[str] = Field([], description="Flags that a person has cleared.")
    owner: str = Field("", description="Who looks after the card.")
    expires_at: Moment | None = Field(None, description="From when on it is not retrieved any more.")
    valid_for: str = Field("", description="For which version of what it holds, such as sqlite>=3.40.")
    ratings: list[Rating] = Field([], description="What people said of it, each person's last word.")

    @property
    def shelf(self) -> ShelfName:
        """Return the card's shelf: found by everyone, by the devil's advocate alone, or by no search."""
        # Flags first: what may be an injection is no warning to the devil's advocate either.
        if self.flags or self.status == "archived":
            return "aside"
        if self.status == "deprecated":
            return "pitfall"
        return "active" if self.confidence >= QUARANTINE else "aside"

    @property
    def disputed(self) -> bool:
        return self.status == "disputed"

    @property
    def is_dead_end(self) -> bool:
        """Return whether the card was stored as an approach to avoid and was never in service."""
        return self.status == "deprecated" and not self.rules and bool(self.deprecated_approaches)

    @property
    def satisfaction(self) -> float | None:
        """Return the share of people whom the card served (§5); None without ratings."""
        return sum(each.good for each in self.ratings) / len(self.ratings) if self.ratings else None

    def expired(self, at: datetime) -> bool:
        """Return whether the card's expiry date has passed."""
        return self.expires_at is not None and self.expires_at <= at

    @classmethod
    def of(cls, version: Version) -> "Card":
        """Read a card back from its record."""
        return cls.model_validate({**without_derived(version.value), "id": version.key})


def without_derived(value: Value) -> Value:
    """Return a card's fields without the numbers that are kept beside them."""
    return {name: item for name, item in value.items() if name not in DERIVED_FIELDS}


class CardVersion(Frozen):
    """One version of a card: its content, the reason for it, who decided it and when."""

    card: Card
    at: datetime
    reason: str
    actor: str
    model: str = ""
    tasks: list[str] = []

    @classmethod
    def of(cls, version: Version) -> "CardVersion":
        said = version.change.model_dump(include={"reason", "actor", "model"})
        return cls(card=Card.of(version), at=version.at, tasks=version.change.source.tasks, **said)


class Retrieved(Frozen):
    """A retrieved card; the parts sum to its score."""

    card: Card
    score: float
    parts: dict[str, float]

    @property
    def disputed(self) -> bool:
        return self.card.disputed


def normalised(text: str) -> str:
    """Return a text without what does not change its meaning: case, spacing, quotes, a final stop."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    plain = re.sub(r"[\"'`´‘’“”]", "", plain)
    return " ".join(plain.split()).rstrip(".!;: ")


class CardSettings(Frozen):
    """The thresholds of a team's cards; the defaults are the paper's where it names one.

    A change of `proven_successes`, `proven_rate` or `saturation` holds for a card from its next version on.
    """

    # §6's drawing says that three successes verify a card, §7's run promotes on the second. Two: §7 alone has
    # numbers, and rubric, objections and the leader's approval are required as well.
    successes_to_verify: int = Field(2, ge=1)
    rubric_to_verify: int = Field(3, ge=1, le=4)  # §5: "must score 3/4"
    inactive_tasks: int = Field(100, ge=1)  # §5: "not retrieved in 100+ consecutive tasks"
    failing_below: float = Field(0.30, ge=0, le=1)  # §5: "drops below 30% over 10 tasks"
    proven_successes: int = Field(10, ge=1)
    proven_rate: float = Field(0.8, ge=0, le=1)
    saturation: float = Field(3.0, gt=0)
    half_life_days: float = Field(90.0, gt=0, description="Age at which the recency part has halved.")
    candidates: int = Field(128, ge=1, description="Most similar cards that the weights then rank.")
    dispute_rounds: int = Field(2, ge=1)  # §5: "maximum 2 resolution rounds"


class Consolidation(Frozen):
    """§8's trigger conditions, and which verified cards are good enough to train on."""

    most_verified: int = 10_000
    of_tasks: int = Field(20, ge=1, description="Tasks that a p95 or a share says something of.")
    slowest_ms: float = 500
    precision: float = 0.70
    every: timedelta = timedelta(days=91)
    confidence_over: float = 0.8
    successes: int = Field(3, ge=1)


SECONDS_A_DAY = 86_400
SIMILARITY = 0.40
"""The weight of the cosine with the task."""
STATUS_WEIGHTS = {"verified": 1.0, "disputed": 0.5}
"""Weight of a card's status in ranking; 0 for a provisional card or one out of use."""
Decision = tuple[Card, str] | None
"""What a card becomes and why; None where it stays as it is."""
Decide = Callable[[Card], Decision]
"""Decides on a card's next version from its state at the moment of writing."""


def ranking(settings: CardSettings) -> Ranking:
    """The four-factor retrieval of §4: similarity 0.40, confidence 0.25, recency 0.15, success 0.20."""
    return Ranking(
        similarity=SIMILARITY,
        # Of §4's 25 % for confidence, 10 % are for a card's standing ("verified > provisional"): of two cards
        # that are alike otherwise the verified one is first; a disputed one stands between.
        fields={"confidence": 0.15, "standing": 0.10, "success": 0.20},
        recency=0.15,
        half_life_days=settings.half_life_days,
        aged_from="renewed",  # the day when the lesson was learned or last rewritten
        ageless="proven",
        candidates=settings.candidates,
    )


def ranking_numbers(card: Card, settings: CardSettings) -> Value:
    """Return the numbers that the formula and upkeep read; `renewed` and `expires` in days since 1970."""
    evidence, rate = card.evidence, card.evidence.success_rate
    successes = evidence.success_count
    # §4: newer cards are preferred "unless long-proven"; proven ones do not age.
    is_proven = successes >= settings.proven_successes and rate >= settings.proven_rate
    ends = {"expires": card.expires_at.timestamp() / SECONDS_A_DAY} if card.expires_at else {}
    return {
        **ends,
        "standing": STATUS_WEIGHTS.get(card.status, 0.0),
        # The first successes say more than the hundredth: 3 of 3 tasks count 0.5, 23 of 25 count 0.81.
        "success": rate * successes / (successes + settings.saturation),
        "proven": 1.0 if card.status == "verified" and is_proven else 0.0,
        "renewed": (card.renewed_at or card.provenance.created_at).timestamp() / SECONDS_A_DAY,
    }


class CardRecords(Shelf[Card, Card]):
    """One team's cards; it reaches no other team's."""

    def __init__(self, ledger: Ledger, team: str, settings: CardSettings) -> None:
        kind = RecordKind[Card, Card](
            Card.of,
            text=lambda card: card.text,
            part=lambda card: f"{card.shelf}/{section_name(card.scope)}",
            beside=lambda card: ranking_numbers(card, settings),
            outside=frozenset({"id"}),
            missing=f"The team {team} has no card {{key}}.",
            hint="See `mneme cards list`.",
        )
        super().__init__(ledger, team_namespace(team, "cards"), kind)
        self.team, self.settings = team, settings

    async def flagged(self) -> Sequence[Card]:
        """Return the cards that read like instructions to agents and that nobody has cleared."""
        return [card for card in await self.all(shelf="aside") if card.flags]

    async def list(
        self, status: Status | None = None, *, limit: int | None = None, offset: int = 0
    ) -> Sequence[Card]:
        """Return cards in the order in which they were first learned; all of them without a limit."""
        return await self.all(limit, filter={"status": status} if status else None, offset=offset)

    async def history(self, card_id: str) -> Sequence[CardVersion]:
        """Return every version of a card, oldest first, with its reason. Raises NotFound."""
        await self.head(card_id)
        return [CardVersion.of(each) for each in await self.ledger.history(self.namespace, card_id)]

    def decided(self, head: Version, decide: Decide, change: Change) -> Write | None:
        """Return the write of a card's next version, with its number; None if the card does not change."""

        def numbered(card: Card) -> Decision:
            decision = decide(card)
            return decision and (decision[0].model_copy(update={"version": card.version + 1}), decision[1])

        return super().decided(head, numbered, change)

    def write(
        self,
        key: str | None,
        value: Card,
        change: Change,
        expected_version: int | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> Write:
        """Return the write of a card, flagged with the doubts about its texts that no person has cleared."""
        # At each write, whoever makes it: a change can bring in what an earlier version did not say.
        flags = [flag for flag in flags_of(value) if flag not in value.cleared]
        checked = value.model_copy(update={"flags": flags})
        return super().write(key, checked, change, expected_version, idempotency_key=idempotency_key)
