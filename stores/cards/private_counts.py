"""Counts of successes and failures under differential privacy, and the account of what was spent on them.

What is protected is one task: whether it is in a team's log or not changes the odds of any published counts
by e^ε at most. So that this holds for all cards of an export together, a task counts for `A_TASK` cards at
most, chosen by a digest of the task and the card alone. The noise is OpenDP's discrete Laplace, exact and
drawn from the system's entropy. What follows from the published counts (their sum is the reuse, their share
the confidence) costs nothing more. Exports add up: each one's ε is added to the team's account before its
counts are given out, and one that would pass the budget is refused.
"""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict

from mneme.core.errors import BadInput, needs
from mneme.stores.cards.card import CardVersion
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.namespaces import team_namespace
from mneme.stores.ledger.records import Change, Version
from mneme.stores.ledger.retrying import retry_on_conflict

A_TASK = 1
"""Cards that one task counts for."""
BUDGET = 5.0
"""What ε may come to over all exports of a team, where nobody says otherwise."""
SPENT = "spent"
Outcomes = Mapping[str, bool]
"""Tasks by id, and whether the card served in them."""
Counts = tuple[int, int]
"""Successes and failures."""


def outcomes_of(history: Sequence[CardVersion]) -> dict[str, bool]:
    """Return how each task went that the card rests on now, as far as its history says.

    A version knows the outcomes of its last ten tasks, so that all versions know all of them.
    """
    counted = {*history[-1].card.evidence.task_ids}
    seen = [outcome for each in history for outcome in each.card.evidence.recent]
    return {outcome.task: outcome.success for outcome in seen if outcome.task in counted}


def bounded(outcomes: Mapping[str, Outcomes]) -> dict[str, Counts]:
    """Return each card's counts, where no task counts for more than `A_TASK` of the cards."""
    touched: dict[str, list[str]] = {}
    for card, tasks in outcomes.items():
        for task in tasks:
            touched.setdefault(task, []).append(card)
    kept = {
        task: sorted(cards, key=lambda card: _lot(task, card))[:A_TASK] for task, cards in touched.items()
    }
    return {card: _counted(card, tasks, kept) for card, tasks in outcomes.items()}


def _counted(card: str, tasks: Outcomes, kept: Mapping[str, Sequence[str]]) -> Counts:
    mine = [success for task, success in tasks.items() if card in kept[task]]
    return sum(mine), len(mine) - sum(mine)


def _lot(task: str, card: str) -> bytes:
    return hashlib.sha256(f"{task}\x1f{card}".encode()).digest()


def noisy(counts: Mapping[str, Counts], epsilon: float) -> dict[str, Counts]:
    """Return counts with noise, none below 0. Raises BadInput for an ε that is not above 0, MnemeError
    where the extra `private` is missing.
    """
    if not 0 < epsilon < float("inf"):
        raise BadInput(f"ε is {epsilon:g}.", "Give a number above 0: the smaller, the more private.")
    with needs("Differential privacy", "private"):
        import opendp.prelude as dp  # noqa: PLC0415
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    mechanism = dp.m.make_laplace(*space, scale=A_TASK / epsilon)
    spread: list[int] = mechanism([each for pair in counts.values() for each in pair])
    above = [max(each, 0) for each in spread]
    return dict(zip(counts, zip(above[::2], above[1::2], strict=True), strict=True))


class Spending(BaseModel):
    """What a team has given out so far: the sum of ε over its exports, and how many there were."""

    model_config = ConfigDict(frozen=True)

    epsilon: float = 0.0
    exports: int = 0
    at: datetime | None = None


class PrivacyAccount:
    """The account of one team's exports, a record of its ledger with a version for each."""

    def __init__(self, ledger: Ledger, team: str) -> None:
        self._ledger, self._namespace = ledger, team_namespace(team, "privacy")

    async def spent(self) -> Spending:
        """Return what was spent so far."""
        return _spent(await self._ledger.get(self._namespace, SPENT))

    @retry_on_conflict
    async def spend(self, epsilon: float, budget: float, *, change: Change) -> Spending:
        """Add an export to the account, before anything of it is given out.

        Raises BadInput where the sum would pass the budget; then nothing is spent.
        """
        head = await self._ledger.get(self._namespace, SPENT)
        before = _spent(head)
        after = Spending(epsilon=before.epsilon + epsilon, exports=before.exports + 1, at=datetime.now(UTC))
        if after.epsilon > budget * (1 + 1e-9):
            raise BadInput(
                f"With this export ε would be {after.epsilon:g} in all, over the budget of {budget:g}; "
                f"{before.exports} exports have spent {before.epsilon:g}.",
                "Give a smaller ε, share without counts, or raise the budget knowingly.",
            )
        value = after.model_dump(mode="json")
        if head is None:
            await self._ledger.insert(self._namespace, value, text="", change=change, key=SPENT)
        else:
            await self._ledger.update(
                self._namespace, SPENT, value, text="", change=change, expected_version=head.version
            )
        return after


def _spent(head: Version | None) -> Spending:
    return Spending.model_validate(head.value) if head else Spending()
