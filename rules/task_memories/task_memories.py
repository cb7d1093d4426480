"""How rules answer the questions of `prompts/task_memories/task_memories.py`."""

import re
from textwrap import shorten

from mneme.environments.turns import read_turns
from mneme.prompts.task_memories import task_memories as questions
from mneme.prompts.task_memories.task_memories import (
    LONGEST_RULE,
    Alike,
    Comparison,
    Course,
    FailReason,
    KeySteps,
    Merged,
    Operation,
    Phase,
    PhaseSummary,
    Projected,
    Projecting,
    Relevance,
    Revision,
    Rulebook,
    Summary,
)
from mneme.rules.registry import rule
from mneme.rules.task_memories import insight_rules
from mneme.rules.task_memories.insight_rules import key_turns

NAMED = 5


LISTED = 12


ROOM = 700
"""Characters of either list of actions in a summary."""


@rule(questions.summarise_trial)
def summarise_trial(given: Course) -> Summary:
    """Name the goal, the result, the actions that led on in their order, and what had no effect."""
    turns = read_turns(given.steps)
    led_on = [insight_rules.brief(turns[place].output) for place in key_turns(turns)]
    failed = list(dict.fromkeys(insight_rules.brief(turn.output) for turn in turns if turn.failed))
    said = [f"{_one_sentence(insight_rules.brief(given.goal))}.", f"It {_one_sentence(given.result)}."]
    said += [f"What led on was {_one_sentence(_shortened(led_on[:LISTED]))}."] if led_on else []
    said += [f"Without effect: {_one_sentence(_shortened(failed[:NAMED]))}."] if failed else []
    return Summary(summary=" ".join(said))


def _shortened(actions: list[str]) -> str:
    return shorten(", ".join(actions), ROOM, placeholder=" …")


def _one_sentence(text: str) -> str:
    return re.sub(r"[.!?]+(?=\s|$)", ",", text.strip()).rstrip(", ")


@rule(questions.rate_relevance)
def rate_relevance(given: Comparison) -> Relevance:
    """Compare the goals' words, names of things apart from their numbers; a short course is worth more."""
    shared = insight_rules.likeness(given.goal, given.other_goal)
    longest = insight_rules.LONG_COURSE
    brevity = 1 - min(len(given.steps), longest) / longest
    score = 1 + round(8 * shared + brevity)
    return Relevance(reason=f"The goals share {shared:.0%} of their words.", score=score)


@rule(questions.summarise_phase)
def summarise_phase(given: Phase) -> PhaseSummary:
    """Go on with the earlier summary: what was done in order, what had no effect, what was seen last."""
    return PhaseSummary(summary=insight_rules.phase(given.before, read_turns(given.steps), given.limit))


@rule(questions.extract_key_steps)
def extract_key_steps(given: Course) -> KeySteps:
    """Leave out what had no effect, and every way back to what had been seen before."""
    turns = read_turns(given.steps)
    return KeySteps(reason="Steps without effect and ways back are left out.", steps=key_turns(turns))


@rule(questions.explain_failure)
def explain_failure(given: Course) -> FailReason:
    """Name what was repeated most: an action without effect, else one that was done and undone."""
    return FailReason(reason=insight_rules.failure(read_turns(given.steps)))


@rule(questions.revise_insights)
def revise_insights(given: Rulebook) -> Revision:
    """Hold the order of actions in each success, and what failures repeated, against the rules."""
    changes = insight_rules.revised(given.rules, given.succeeded, given.failed, given.most)
    return Revision(operations=[Operation.model_validate(each._asdict()) for each in changes])


@rule(questions.project_insights)
def project_insights(given: Projecting) -> Projected:
    """Word nothing anew: rules cannot tell what an insight means for a role."""
    kept = [shorten(each, LONGEST_RULE, placeholder=" …") for each in given.insights]
    return Projected(reason="Rules leave the insights as they are.", insights=kept)


@rule(questions.merge_insights)
def merge_insights(given: Alike) -> Merged:
    """Leave out a rule whose words another one has."""
    kept = [shorten(each, LONGEST_RULE, placeholder=" …") for each in insight_rules.merged(given.rules)]
    return Merged(reason="What another rule says already is left out.", rules=kept)
