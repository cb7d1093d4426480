"""Rules that answer the questions of `prompts/task_memories/task_memories.py`.

They list what was done and seen, word nothing anew, and generalise nothing but the order of the actions in a
success.
"""

import re
from collections import Counter
from collections.abc import Sequence
from textwrap import shorten

from mneme.environments.turns import Turn, read_turns
from mneme.prompts.task_memories import task_memories as questions
from mneme.prompts.task_memories.task_memories import MAX_RULE_CHARS, Operation
from mneme.rules.registry import rule

BRIEF, MAX_CHARS = 160, 700
"""Maximum characters of an action, and of a list of actions."""
SUMMARY_FIFTHS = {"Done, in order": 2, "Without effect": 1, "Open": 1, "Seen": 1}
"""The parts of a phase's summary, and how many fifths of its room each has."""
LONG_COURSE = 30
ALIKE = 0.8
MAX_OPERATIONS = 8
STOP_WORDS = {"a", "an", "and", "are", "be", "by", "following", "for", "conditions", "goal"}
STOP_WORDS |= {"in", "is", "it", "of", "on", "or", "satisfy", "the", "to", "with"}
NOT_AGAIN = "Do not repeat an action that had no effect: find out which of its conditions is missing."


@rule(questions.summarise_trial)
def summarise_trial(given: questions.Course) -> questions.Summary:
    """Name the goal, the result, the actions that led on in their order, and what had no effect."""
    turns = read_turns(given.steps)
    failed = dict.fromkeys(brief(turn.output) for turn in turns if turn.failed)
    said = {
        "": [brief(given.goal)],
        "It": [given.result],
        "What led on was": [brief(turns[place].output) for place in key_turns(turns)],
        "Without effect:": [*failed],
    }
    ends = re.compile(r"[.!?]+(?=\s|$)")  # one sentence of each
    listed = {begun: ends.sub(",", ", ".join(each)) for begun, each in said.items() if each}
    told = [f"{begun} {shorten(e, MAX_CHARS, placeholder=' …').rstrip(', ')}." for begun, e in listed.items()]
    return questions.Summary(summary=" ".join(told).strip())


@rule(questions.rate_relevance)
def rate_relevance(given: questions.Comparison) -> questions.Relevance:
    """Compare the goals' words, without the numbers in them; a short course is worth more."""
    one, other = kinds(given.goal), kinds(given.other_goal)
    shared = len(one & other) / max(1, len(one | other))
    brevity = 1 - min(len(given.steps), LONG_COURSE) / LONG_COURSE
    reason = f"The goals share {shared:.0%} of their words."
    return questions.Relevance(reason=reason, score=1 + round(8 * shared + brevity))


@rule(questions.summarise_phase)
def summarise_phase(given: questions.Phase) -> questions.PhaseSummary:
    """List actions, those without effect, thoughts and observations, after those of the earlier summary."""
    turns = read_turns(given.steps)
    new = {
        "Done, in order": [brief(turn.output) for turn in turns if turn.worked],
        "Without effect": [brief(turn.output) for turn in turns if turn.failed],
        "Open": [brief(turn.thought) for turn in turns if turn.thought],
        "Seen": [brief(turn.outcome).replace(";", ",") for turn in turns if turn.worked and turn.outcome],
    }
    before = dict(line.split(": ", 1) for line in given.before.splitlines() if ": " in line)
    lines = []
    for name, share in SUMMARY_FIFTHS.items():
        listed = [*filter(None, before.get(name, "").split("; ")), *new[name]]
        room = given.limit * share // 5 - len(name) - 3  # less its name, `: ` and the line's end
        while listed and sum(map(len, listed)) + 2 * len(listed) > room:
            listed = listed[1:]  # the oldest goes first
        if listed:
            lines.append(f"{name}: {'; '.join(listed)}")
    return questions.PhaseSummary(summary="\n".join(lines) or "Nothing was done yet.")


@rule(questions.extract_key_steps)
def extract_key_steps(given: questions.Course) -> questions.KeySteps:
    """Leave out what had no effect, and every way back to what had been seen before."""
    turns = read_turns(given.steps)
    return questions.KeySteps(
        reason="Steps without effect and ways back are left out.", steps=key_turns(turns)
    )


def key_turns(turns: Sequence[Turn]) -> list[int]:
    """Return the places of the turns that led on; a way back ends where the same was seen as before it."""
    kept: list[int] = []
    for place, turn in enumerate(turns):
        if turn.worked:
            # A sentence or two may be seen twice on the way; only a whole scene says that a state is back.
            is_scene = len(turn.outcome.split(". ")) > 3
            seen = [
                at for at, before in enumerate(kept) if is_scene and turns[before].outcome == turn.outcome
            ]
            kept = kept[: seen[-1] + 1] if seen else [*kept, place]
    return kept


@rule(questions.explain_failure)
def explain_failure(given: questions.Course) -> questions.FailReason:
    """Name the action that was tried most often without effect."""
    tried = Counter(brief(turn.output) for turn in read_turns(given.steps) if turn.failed).most_common(1)
    if not tried:
        return questions.FailReason(reason=f"It ended after {len(given.steps)} steps; rules cannot tell why.")
    (action, count), *_ = tried
    return questions.FailReason(reason=f"'{action}' was tried {count} times, though it had no effect.")


@rule(questions.revise_insights)
def revise_insights(given: questions.Rulebook) -> questions.Revision:
    """Add the order of actions in each success, and after failures a warning; agree to what stands."""
    wanted = [*filter(None, map(_order, given.succeeded)), *([NOT_AGAIN] if given.failed else [])]
    added = [text for text in dict.fromkeys(wanted) if text not in given.rules]
    agreed = [given.rules.index(text) for text in dict.fromkeys(wanted) if text in given.rules]
    operations = [Operation(reason="These trials bear it out.", kind="AGREE", rule=n) for n in agreed]
    for text in added[: max(0, given.most - len(given.rules))]:
        operations.append(Operation(reason="No rule says this yet.", kind="ADD", text=text))
    return questions.Revision(operations=operations[:MAX_OPERATIONS])


def _order(trial: str) -> str:
    """Describe the order of the actions in a success."""
    told = dict(line.split(": ", 1) for line in trial.splitlines() if ": " in line)
    steps = [step.split() for step in told.get("Key steps", "").split(";") if step.strip()]
    verbs = ", then ".join(dict.fromkeys(step[0] for step in steps))
    goal = re.sub(r"\d+", "", told.get("Goal", ""))
    return shorten(f"For goals such as '{brief(goal)}': {verbs}.", MAX_RULE_CHARS) if steps else ""


@rule(questions.merge_insights)
def merge_insights(given: questions.Alike) -> questions.Merged:
    """Leave out a rule whose words a longer one has."""
    kept: list[str] = []
    for each in sorted(given.rules, key=len, reverse=True):  # a shorter one may be part of a longer one
        said = kinds(each)
        if not any(len(said & kinds(other)) >= ALIKE * len(said) for other in kept):
            kept.append(each)
    rules = [shorten(each, MAX_RULE_CHARS, placeholder=" …") for each in given.rules if each in kept]
    return questions.Merged(reason="What another rule says already is left out.", rules=rules)


def kinds(text: str) -> set[str]:
    """Return the words of a text that distinguish tasks, without the numbers in names."""
    return set(re.findall(r"[a-z][a-z-]*", text.lower())) - STOP_WORDS


def brief(text: str) -> str:
    """Return a text, or where it is long its beginning, on one line."""
    return shorten(text, BRIEF, placeholder=" …")
