"""How rules answer the questions of `prompts/sharing/contradiction.py`."""

from mneme.prompts.sharing import contradiction as questions
from mneme.prompts.sharing.contradiction import Leads
from mneme.prompts.sharing.memory_sharing import Comparison
from mneme.rules.registry import rule
from mneme.rules.sharing.memory_sharing import grade_contradiction


@rule(questions.contradicts)
def contradicts(given: Comparison) -> Leads:
    """Hold it for more probable than not, by the graded question."""
    return Leads(contradicts=grade_contradiction(given).percent > 50)
