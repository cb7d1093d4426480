"""Test on the same questions whether a model is no worse than another."""

from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

FLIPS = 20_000
SIGNIFICANCE_LEVEL = 0.05


class PairedTest(BaseModel):
    """Two mean scores on the same questions, and the test that the second is no worse by a margin."""

    model_config = ConfigDict(frozen=True)

    count: int = Field(ge=0)
    before: float
    after: float
    margin: float = Field(ge=0)
    p: float = Field(ge=0, le=1, description="Of the hypothesis that it is worse by the margin or more.")

    @property
    def not_worse(self) -> bool:
        return self.p < SIGNIFICANCE_LEVEL

    def __str__(self) -> str:
        return (
            f"{self.before:.3f} → {self.after:.3f} on {self.count} "
            f"(worse by {self.margin:.2f} or more: p = {self.p:.3f})"
        )


def not_worse(before: Sequence[float], after: Sequence[float], margin: float, seed: int = 0) -> PairedTest:
    """Test by random sign flips whether paired scores are not worse by a margin or more."""
    # The hypothesis to refute is the harm: to find no difference would prove nothing, since few questions
    # never show one.
    old, new = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
    if not len(old):
        return PairedTest(count=0, before=0.0, after=0.0, margin=margin, p=1.0)
    moved = new - old + margin
    signs = np.random.default_rng(seed).choice((-1.0, 1.0), size=(FLIPS, len(moved)))
    at_least = np.sum(signs @ np.abs(moved) >= moved.sum() - 1e-12)  # 1e-12: rounding of equal sums
    return PairedTest(
        count=len(old),
        before=float(old.mean()),
        after=float(new.mean()),
        margin=margin,
        p=float((at_least + 1) / (FLIPS + 1)),  # the observed signs are one of the flips, so p is never 0
    )
