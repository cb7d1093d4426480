"""Rules that answer the questions of `prompts/learning/dispute_resolution.py`."""

from collections import Counter, defaultdict

from mneme.prompts.learning import dispute_resolution as questions
from mneme.prompts.learning.compound_learning.research import Draft
from mneme.prompts.learning.compound_learning.task import about
from mneme.prompts.learning.dispute_resolution import ConditionalRule, Recommendation
from mneme.rules.learning.compound_learning import claim
from mneme.rules.registry import rule

WINNING_SHARE = 0.6  # of the trials; in the paper's example (§7) the new approach wins 4 of 5


@rule(questions.resolve_dispute)
def resolve_dispute(given: questions.Contest) -> Recommendation:
    """Count the trials: a clear majority decides; a narrower condition merges, an equal one replaces."""
    won, count = Counter(match.winner for match in given.matches), len(given.matches)
    said = f"old: {won['old']}, new: {won['new']}, neither: {won['neither']} of {count}"
    if not count:
        return Recommendation(rationale="Nothing could be tried.", recommendation="escalate")
    if won["new"] >= WINNING_SHARE * count:
        if given.conflict_type == "contradiction" or given.old_tasks == 0:
            return Recommendation(
                rationale=f"The new approach is better wherever the old one applies ({said}).",
                claim=claim(given.new.condition, given.new.pattern, given.noun),
                rules=[ConditionalRule(**dict(given.new))],
                recommendation="deprecate_old",
            )
        # Where only the old approach won, it stays the rule of just that case.
        sides = defaultdict[str, set[str]](set)
        for match in given.matches:
            sides[match.features].add(match.winner)
        ruled = (given.old.condition, given.new.condition)
        only_old = [each for each, winners in sides.items() if winners == {"old"} and each not in ruled]
        exceptions = [questions.Guideline(condition=each, pattern=given.old.pattern) for each in only_old]
        return Recommendation(
            rationale=f"The new approach is better under its narrower condition ({said}).",
            claim=f"{about(given.old.condition, given.noun)}, choose the remedy by what else the query does",
            rules=[ConditionalRule(**dict(each)) for each in (given.old, given.new, *exceptions)],
            recommendation="merge",
        )
    if won["old"] >= WINNING_SHARE * count:
        return Recommendation(rationale=f"The old approach holds ({said}).", recommendation="keep_old")
    return Recommendation(rationale=f"The trials do not decide ({said}).", recommendation="escalate")


@rule(questions.carry_out)
def carry_out(given: questions.CarriedApproach) -> Draft:
    """Carry nothing out: an approach in words needs an agent that reads."""
    return Draft(rationale="An approach in words needs a model.")
