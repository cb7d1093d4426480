"""A team's rubrics: those that it froze itself, and the shipped ones."""

from mneme.library.agents.rubric import RUBRICS, Rubric, load_rubric
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.pools.rubrics import Rubrics, RubricVersion

FrozenRubric = RubricVersion[Rubric]
SHIPPED = {name: load_rubric(name) for name in RUBRICS}


def rubrics_of(ledger: Ledger, team: str) -> Rubrics[Rubric]:
    """Return the rubrics by which a team's pairs are scored."""
    return Rubrics(ledger, team, FrozenRubric, SHIPPED)
