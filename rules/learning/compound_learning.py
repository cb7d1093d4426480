"""How rules answer the questions of `prompts/learning/compound_learning/`."""

from collections.abc import Sequence
from textwrap import shorten
from typing import Literal

from mneme.prompts.learning.compound_learning import challenge, decide, research
from mneme.prompts.learning.compound_learning import compile as compiling
from mneme.prompts.learning.compound_learning.challenge import Objection, Objections, Review
from mneme.prompts.learning.compound_learning.compile import Experience, Finding, Findings
from mneme.prompts.learning.compound_learning.decide import Case, Resolution
from mneme.prompts.learning.compound_learning.research import Assignment, Complaint, Draft, File, Patch
from mneme.prompts.learning.compound_learning.task import (
    MAX_TEXT_CHARS,
    NONE,
    Advice,
    Severity,
    best,
    best_of,
    dead_end,
)
from mneme.rules.learning import tuning
from mneme.rules.registry import rule

MAX_CONDITION_CHARS = 500


@rule(research.draft_solution)
def draft_solution(given: Assignment) -> Draft:
    """Use the most specific card that applies and is no dead end; without one, begin with the first idea."""
    known = [*given.cards, *given.pitfalls]
    fitting = [(best_of(card, known), number) for number, card in enumerate(given.cards)]
    chosen = best([advice for advice, _ in fitting if advice])
    if chosen is not None:
        used = [number for number, (advice, _) in enumerate(fitting) if advice and advice.text == chosen.text]
        return _draft(f"Card {used[0]} fits: {chosen.condition}.", chosen, used)
    if given.textbook:
        return _draft("No card applies; this is what is best to begin with.", given.textbook[0], [])
    if not given.cards:
        return Draft(rationale="No card fits, and there is nothing to run.", answer="No answer is known.")
    claims = shorten(" ".join(card.claim for card in given.cards), MAX_TEXT_CHARS, placeholder=" …")
    return Draft(rationale="The cards say so.", answer=claims, used=list(range(len(given.cards))))


def _draft(why: str, advice: Advice, used: list[int]) -> Draft:
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
    """Object to what the plan and the trial show, to pitfalls repeated, to verified cards ignored."""
    found = [*_dead_ends(given), *_contradictions(given)]
    if given.trial is None:
        unproven = "Nothing was run: that the answer holds is assumed."
        assumed = Objection(evidence=unproven, kind="unstated_assumption", severity="advisory")
        return Objections(objections=[*found, assumed])
    known = [*given.cards, *given.pitfalls]
    remedies = [each for each in given.remedies if dead_end(each, known) is None]
    seen = (given.features, given.pattern, given.trial, given.tried, remedies, given.proven)
    return Objections(objections=[*found, *tuning.symptoms(*seen)])


def _dead_ends(given: Review) -> list[Objection]:
    """Object to an approach that cards call useless under a condition that holds here."""
    found = dead_end(given.pattern, [*given.cards, *given.pitfalls])
    if found is None:
        return []
    evidence = shorten(f"This is known not to help {found}", MAX_CONDITION_CHARS, placeholder=" …")
    severity: Severity = "advisory" if given.trial and given.trial.solved else "blocking"
    for number, card in enumerate(given.pitfalls):
        if found in card.in_vain:
            return [Objection(evidence=evidence, kind="known_pitfall", pitfall=number, severity=severity)]
    number = next(number for number, card in enumerate(given.cards) if found in card.in_vain)
    return [Objection(evidence=evidence, kind="contradiction", card=number, severity=severity)]


def _contradictions(given: Review) -> list[Objection]:
    """Point out a verified card that advises otherwise; it blocks where the draft did not do."""
    failed = given.trial is not None and not given.trial.solved
    known = [*given.cards, *given.pitfalls]
    advised = [
        (number, best_of(card, known))
        for number, card in enumerate(given.cards)
        if (card.status == "verified")
    ]
    return [
        Objection(
            evidence=f"A verified card advises {advice.pattern} here.",
            kind="contradiction",
            card=number,
            remedy=advice.pattern,
            severity="blocking" if failed else "advisory",
        )
        for number, advice in advised
        if advice and advice.pattern not in (given.pattern, *given.tried)
    ]


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
    return Resolution(
        rationale=trial.summary if trial else "Judged by the leader: nothing could be run.",
        answer="" if given.draft.solution else given.draft.pattern,
        solved=solved,
        confidence=_confidence(given, solved),
        uncertainties=[*given.unresolved, *given.draft.assumptions],
        fallbacks=["Leave everything as it was."] if trial else [],
        faster_or_novel=trial is not None and trial.gain >= trial.wanted,
        reusable=bool(given.elsewhere) or bool(given.draft.pattern),
        promote=given.elsewhere if solved and not given.open_blocking else [],
    )


def _confidence(case: Case, solved: bool) -> float:
    """Add up what speaks for the answer: measured, clearly faster, unopposed, proven before, at once."""
    if case.trial is None:
        return 0.4 if case.cards else 0.1
    if not solved:
        return 0.2
    clear = 0.2 * (1 - case.trial.wanted / max(case.trial.gain, case.trial.wanted))
    unopposed = 0.1 if not case.open_blocking else 0.0
    proven = 0.1 if case.elsewhere else 0.0
    return round(0.55 + clear + unopposed + proven + (0.05 if case.iterations == 1 else 0.0), 2)


@rule(compiling.compile_lessons)
def compile_lessons(given: Experience) -> Findings:
    """Count a success or failure for each used card, and extract what a patch taught."""
    if not given.ended_with:
        return Findings()
    if not given.solved:
        failures = [
            Finding(rationale=given.measured, success=False, card=number, event="reinforce")
            for number in range(len(given.used))
        ]
        return Findings(findings=[*failures, *([_dead_end(given)] if given.in_vain else [])])
    held = given.started_with == given.ended_with
    if given.used:
        return Findings(findings=list(_on_used(given, held)))
    if held:
        return Findings()  # the textbook sufficed: nothing to teach
    return Findings(findings=[_lesson(given, given.general, "create")])


def _on_used(given: Experience, held: bool) -> Sequence[Finding]:
    """Say what the task means for the cards that its first draft rested on."""
    found: list[Finding] = []
    refined = False
    for number, card in enumerate(given.used):
        if held:
            found.append(Finding(rationale=given.measured, success=True, card=number, event="reinforce"))
        elif card.status == "verified":
            found.append(_lesson(given, given.features, "dispute", number))
            refined = True
        elif card.status == "disputed":
            refined = True  # its dispute is open, and will be tested
        else:
            found.append(Finding(rationale=given.measured, success=False, card=number, event="reinforce"))
    if not held and not refined:
        found.append(_lesson(given, given.features, "create"))
    return found


def _dead_end(given: Experience) -> Finding:
    """Keep what was tried without success; dead ends of such tasks come together in one card."""
    condition = given.features or given.task[:MAX_CONDITION_CHARS]
    return Finding(
        rationale=given.measured,
        claim=tuning.in_vain(given.features, given.noun),
        condition=condition,
        deprecated_approaches=given.in_vain,
        event="dead_end",
    )


def _lesson(
    given: Experience, condition: str, event: Literal["create", "dispute"], card: int = NONE
) -> Finding:
    return Finding(
        rationale="; ".join(given.resolved) or given.measured,
        claim=tuning.claim(condition, given.ended_with, given.noun),
        condition=condition or given.task[:MAX_CONDITION_CHARS],
        pattern=given.ended_with,
        card=card,
        event=event,
    )
