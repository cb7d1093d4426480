"""Rules that answer the questions of `prompts/learning/compound_learning/`."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import shorten
from typing import Any, Literal

import yaml

from mneme.environments.trial import Trial
from mneme.prompts.learning.compound_learning import challenge, decide, research, task
from mneme.prompts.learning.compound_learning import compile as compiling
from mneme.prompts.learning.compound_learning.challenge import Objection, Objections, Review
from mneme.prompts.learning.compound_learning.compile import Experience, Finding, Findings
from mneme.prompts.learning.compound_learning.decide import Case, Resolution
from mneme.prompts.learning.compound_learning.research import Assignment, Complaint, Draft, File, Patch
from mneme.prompts.learning.compound_learning.task import NONE, about, best, dead_end
from mneme.rules.registry import rule

MAX_CONDITION_CHARS = 500
LADDER: list[list[dict[str, Any]]] = yaml.safe_load(
    Path(__file__).with_name("ladder.yaml").read_text(encoding="utf-8")
)
CLEARLY = 10.0  # speed-up from which a draft passes despite a weakness in its plan: an order of magnitude


@rule(research.draft_solution)
def draft_solution(given: Assignment) -> Draft:
    """Use the most specific card that applies and is no dead end; without one, begin with the first idea."""
    known = [*given.cards, *given.pitfalls]
    fitting = [(best(card.advice, known), number) for number, card in enumerate(given.cards)]
    chosen = best([advice for advice, _ in fitting if advice])
    if chosen is not None:
        used = [number for number, (advice, _) in enumerate(fitting) if advice and advice.text == chosen.text]
        return _draft(f"Card {used[0]} fits: {chosen.condition}.", chosen, used)
    if given.textbook:
        return _draft("No card applies; this is what is best to begin with.", given.textbook[0], [])
    if not given.cards:
        return Draft(rationale="No card fits, and there is nothing to run.", answer="No answer is known.")
    claims = shorten(" ".join(card.claim for card in given.cards), task.MAX_TEXT_CHARS, placeholder=" …")
    return Draft(rationale="The cards say so.", answer=claims, used=list(range(len(given.cards))))


def _draft(why: str, advice: task.Advice, used: list[int]) -> Draft:
    return Draft(
        rationale=why,
        pattern=advice.pattern,
        statements=advice.statements,
        query=advice.query,
        files=[File(path=path, text=text) for path, text in advice.files.items()],
        used=used,
        assumptions=["the data keep the shape that they have now"],
    )


@rule(challenge.challenge_draft)
def challenge_draft(given: Review) -> Objections:
    """Object to a dead end that is tried again, to a verified card ignored, to what plan and trial show."""
    trial, known, found = given.trial, [*given.cards, *given.pitfalls], list[Objection]()
    if fails := dead_end(given.pattern, known):
        evidence = shorten(f"This is known not to help {fails}", MAX_CONDITION_CHARS, placeholder=" …")
        severity: task.Severity = "advisory" if trial and trial.solved else "blocking"
        pitfall = next((n for n, card in enumerate(given.pitfalls) if fails in card.in_vain), NONE)
        card = next((n for n, card in enumerate(given.cards) if fails in card.in_vain), NONE)
        if pitfall != NONE:
            named = Objection(evidence=evidence, kind="known_pitfall", pitfall=pitfall, severity=severity)
        else:
            named = Objection(evidence=evidence, kind="contradiction", card=card, severity=severity)
        found.append(named)
    verified = [(number, card) for number, card in enumerate(given.cards) if card.status == "verified"]
    for number, advice in [(number, best(card.advice, known)) for number, card in verified]:
        if advice and advice.pattern not in (given.pattern, *given.tried):
            found.append(
                Objection(
                    evidence=f"A verified card advises {advice.pattern} here.",
                    kind="contradiction",
                    card=number,
                    remedy=advice.pattern,
                    severity="blocking" if trial and not trial.solved else "advisory",
                )
            )
    if trial is None:
        unproven = "Nothing was run: that the answer holds is assumed."
        assumed = Objection(evidence=unproven, kind="unstated_assumption", severity="advisory")
        return Objections(objections=[*found, assumed])
    remedies = [each for each in given.remedies if dead_end(each, known) is None]
    return Objections(objections=[*found, *_symptoms(given, trial, remedies)])


def _symptoms(given: Review, trial: Trial, remedies: Sequence[str]) -> Iterator[Objection]:
    """Yield the symptoms of a tried draft, worst first; each with the next possible remedy."""
    features = given.features
    untried = [each for each in remedies if each not in (*given.tried, given.pattern)]
    ladder = list[str]()  # the remedies to think of for a query with these features, simplest first
    if trial.over_limit:
        ladder += ["INDEX (join)"]  # the narrowest, where there is a join
        ladder += ["INDEX (range, group) WHERE equality", "COVERING INDEX (range, group) WHERE equality"]
    for group in LADDER:
        ladder += next((each["try"] for each in group if re.search(each["when"], features)), ())
    open_ = [each for each in ladder if each in untried] or untried * (not trial.solved)
    remedy = next(iter(open_), "")
    if trial.problem:
        evidence = f"The trial says: {trial.problem}"
        yield Objection(evidence=evidence, kind="missing_edge_case", remedy=remedy, severity="blocking")
        return
    weakness = _weakness(features, trial)
    if not trial.solved:
        plan = "; ".join(line.strip() for line in trial.evidence.splitlines()[-5:])
        evidence = f"{trial.summary} {weakness or f'The trial shows: {plan}.'}"
        yield Objection(evidence=evidence, kind="missing_edge_case", remedy=remedy, severity="blocking")
    elif weakness:
        # The draft solves its task: its plan's weakness does not block what a card has proven before.
        passes = given.proven or trial.gain >= CLEARLY or not remedy
        severity: task.Severity = "advisory" if passes else "blocking"
        yield Objection(evidence=weakness, kind="unstated_assumption", remedy=remedy, severity=severity)


def _weakness(features: str, trial: Trial) -> str:
    """Return the weakness of a plan; empty if it does all that an index can."""
    lines = [line.strip() for line in trial.evidence.splitlines()]
    scans = [line for line in lines if line.startswith("SCAN") and "COVERING" not in line]
    look_ups = [line for line in lines if line.startswith("SEARCH") and "USING INDEX" in line]
    if scans:
        return f"An index was expected; the plan reads the whole table: {scans[0]}."
    if "USE TEMP B-TREE FOR ORDER BY" in lines and "top-k" in features:
        return "The plan sorts in a temporary B-tree although only the first rows are wanted."
    if look_ups:
        return (
            f"Each row that the index finds is looked up in the table ({look_ups[0]}): that is fast only "
            "while the rows lie in the order of the index."
        )
    return ""


@rule(research.patch_draft)
def patch_draft(given: Complaint) -> Patch:
    """Apply the first remedy that is possible; it closes every objection that names it."""
    chosen = next((each for each in given.advice if each.feasible), None)
    if chosen is None:
        return Patch(**given.draft.model_dump(), closed=[])
    closed = [number for number, each in enumerate(given.advice) if each.pattern == chosen.pattern]
    draft = _draft(f"Patched: {given.objections[closed[0]]}", chosen, given.draft.used)
    return Patch(**draft.model_dump(), closed=closed)


@rule(decide.resolve_task)
def resolve_task(given: Case) -> Resolution:
    """Decide by the measurement; confidence grows with its clearness and with the cards behind the answer."""
    trial, solved = given.trial, given.trial is not None and given.trial.solved
    elsewhere = [number for number, each in enumerate(given.cards) if each.served_before]
    confidence = 0.4 if given.cards else 0.1
    if trial and not solved:
        confidence = 0.2
    elif trial:  # what speaks for the answer: clearly faster, unopposed, proven before, at once
        clear = 0.2 * (1 - trial.wanted / max(trial.gain, trial.wanted))
        tenths = (not given.open_blocking) + bool(elsewhere)
        confidence = round(0.55 + clear + 0.1 * tenths + 0.05 * (given.iterations == 1), 2)
    return Resolution(
        rationale=trial.summary if trial else "Judged by the leader: nothing could be run.",
        answer="" if given.draft.solution.text else given.draft.pattern,
        solved=solved,
        confidence=confidence,
        uncertainties=[*given.unresolved, *given.draft.assumptions],
        fallbacks=["Leave everything as it was."] if trial else [],
        faster_or_novel=trial is not None and trial.gain >= trial.wanted,
        reusable=bool(elsewhere) or bool(given.draft.pattern),
        promote=elsewhere if solved and not given.open_blocking else [],  # a second task confirms them (§7)
    )


@rule(compiling.compile_lessons)
def compile_lessons(given: Experience) -> Findings:
    """Count a success or failure for each used card, and extract what a patch taught."""
    if not given.ended_with:  # words without a pattern: what they teach, rules cannot tell
        return Findings()
    held = given.solved and given.started_with == given.ended_with
    outcomes = [
        Finding(rationale=given.measured, success=held, card=number, event="reinforce")
        for number in range(len(given.used))
    ]
    if held or not given.solved:  # where no card was used and the textbook sufficed, nothing to teach
        if given.in_vain and not held:  # dead ends of such tasks come together in one card
            failed = Finding(
                rationale=given.measured,
                claim=f"{about(given.features, given.noun)}, what was tried without success",
                condition=given.features or given.task[:MAX_CONDITION_CHARS],
                deprecated_approaches=given.in_vain,
                event="dead_end",
            )
            outcomes.append(failed)
        return Findings(findings=outcomes)
    found = []
    for number, card in enumerate(given.used):
        if card.status == "verified":
            found.append(_lesson(given, given.features, "dispute", number))
        elif card.status not in task.DISPUTABLE:  # a disputed one will be tested
            found.append(outcomes[number])
    if not any(card.status in task.DISPUTABLE for card in given.used):
        found.append(_lesson(given, given.features if given.used else given.general, "create"))
    return Findings(findings=found)


def _lesson(
    given: Experience, condition: str, event: Literal["create", "dispute"], card: int = NONE
) -> Finding:
    return Finding(
        rationale="; ".join(given.resolved) or given.measured,
        claim=claim(condition, given.ended_with, given.noun),
        condition=condition or given.task[:MAX_CONDITION_CHARS],
        pattern=given.ended_with,
        card=card,
        event=event,
    )


def claim(condition: str, pattern: str, noun: str) -> str:
    """Return a lesson as one sentence, the same for the same lesson."""
    verb = "build" if "INDEX" in pattern.partition("(")[0] else "the remedy is"
    return f"{about(condition, noun)}, {verb} {pattern}"
