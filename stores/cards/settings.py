"""The thresholds of a team's cards."""

from datetime import timedelta

from pydantic import BaseModel, ConfigDict, Field


class CardSettings(BaseModel):
    """The thresholds of a team's cards; the defaults are the paper's where it names one.

    Where the paper leaves a choice, the choice is a setting. §6's drawing says that three successes verify
    a card, §7's run promotes on the second. The default is two: §7 alone carries the rules out with
    numbers, and two successes are no promotion by themselves, since rubric, objections and the leader's
    approval are required as well.

    A change of `proven_successes`, `proven_rate` or `saturation` holds for a card from its next version on.
    """

    model_config = ConfigDict(frozen=True)

    successes_to_verify: int = Field(2, ge=1)
    rubric_to_verify: int = Field(3, ge=1, le=4)
    inactive_tasks: int = Field(100, ge=1)
    failing_below: float = Field(0.30, ge=0, le=1)
    proven_successes: int = Field(10, ge=1)
    proven_rate: float = Field(0.8, ge=0, le=1)
    saturation: float = Field(3.0, gt=0)
    half_life_days: float = Field(90.0, gt=0, description="Age at which the recency part has halved.")
    candidates: int = Field(128, ge=1, description="Most similar cards that the weights then rank.")
    dispute_rounds: int = Field(2, ge=1)
    clustered_over: int = Field(20_000, ge=0, description="Cards in use over which clusters are made (§10).")
    probed: int = Field(16, ge=1, description="Clusters that a retrieval looks into.")


class Consolidation(BaseModel):
    """§8's trigger conditions, and which verified cards are good enough to train on."""

    model_config = ConfigDict(frozen=True)

    most_verified: int = 10_000
    of_tasks: int = Field(20, ge=1, description="Tasks that a p95 or a share says something of.")
    slowest_ms: float = 500
    precision: float = 0.70
    every: timedelta = timedelta(days=91)
    confidence_over: float = 0.8
    successes: int = Field(3, ge=1)
