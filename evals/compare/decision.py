"""Group decisions: each of four experts knows some points, some of which are corrected later.

A hidden profile (Stasser and Titus, 1985): the points that all know, and repeat, favour one site; all points
together, most of which one expert says once, favour another. The decision is right only with all corrected
points.
"""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from random import Random

from mneme.evals.compare.memory import UNKNOWN, Course, Event, Family, Outcome, Score, Situation, day, drawing

Points = dict[tuple[str, str], int]
"""Values of the points, by site and aspect."""
EXPERTS = ("engineer", "lawyer", "planner", "treasurer")
SITES = (
    "Harbour", "Meadow", "Quarry", "Station", "Abbey", "Brickyard", "Canal", "Dairy", "Elmfield", "Foundry",
    "Gasworks", "Hilltop", "Island", "Junction", "Kiln", "Lakeside", "Mill", "Northgate", "Orchard", "Priory",
)  # fmt: skip
CANDIDATES, MEASURED, SHARED = 3, 4, 2
"""Sites of a meeting, aspects of each, and aspects that all know."""
ASPECTS = ("roads", "noise", "soil", "taxes", "permits", "flooding", "staff", "power")
CORRECTED_SHARE, CHATTER_SHARE = 0.25, 0.3
TIMES_REPEATED = 2
"""Repetitions of a point that all experts know."""
RANGE = range(-3, 4)
COUNTING = "A point counts once, however many say it; a correction takes the place of what it corrects."
UNKNOWN_IF = f"If no point of it is known: {UNKNOWN}."
POINTS_SENTENCE = re.compile(r"(?:^|\W)The (\w+) of (\w+) counts? ([+-]\d+)")
MEETING_CHATTER = (
    "Can we keep to the agenda?", "I have sent the minutes around.", "The coffee is better today.",
    "Let us not forget that the board meets in May.", "I have to leave at four.", "Who writes the report?",
)  # fmt: skip


def decision(seed: int, size: int) -> Course:
    """Hold a meeting for every four tasks; each ends with a decision for a site."""
    for number in range(max(1, size // 4)):
        yield from _meeting(drawing(f"decision {seed} {number}"), day(7 * number))


def _meeting(chance: Random, today: str) -> Course:
    points, shared = _profile(chance)
    said = [*points, *(each for each in points if each[1] in shared for _ in range(TIMES_REPEATED))]
    chance.shuffle(said)
    # The final value is the right one; an earlier one was said before it.
    corrected = dict(chance.sample([*points.items()], round(CORRECTED_SHARE * len(points))))
    before = {
        each: chance.choice([other for other in RANGE if other != value]) for each, value in corrected.items()
    }
    for each in said:
        yield _told(each, (points | before)[each], chance.choice(EXPERTS) if each[1] in shared else "", today)
        if chance.random() < CHATTER_SHARE:
            yield Event(today, chance.choice(EXPERTS), chance.choice(MEETING_CHATTER))
    for each, value in corrected.items():
        yield _told(each, value, "", today, "I was wrong before. ")
    yield from _decide(points, today)


def _profile(chance: Random) -> tuple[Points, list[str]]:
    """Draw the points, and aspects known to all that by themselves favour another site."""
    while True:
        sites, aspects = chance.sample(SITES, CANDIDATES), chance.sample(ASPECTS, MEASURED)
        points = {(site, aspect): chance.choice(RANGE) for site in sites for aspect in aspects}
        shared = aspects[:SHARED]
        known = {each: value for each, value in points.items() if each[1] in shared}
        # The profile is hidden: what all know misleads.
        if _best(points) and _best(known) and _best(points) != _best(known):
            return points, shared


def _best(points: Points) -> str:
    return _ahead(_sums(points))


def _ahead(sums: Mapping[str, float]) -> str:
    """Return the site that is ahead of all others; none where two are alike, or nothing is known."""
    first, *others = sorted(sums, key=lambda each: -sums[each]) or [""]
    return "" if others and sums[others[0]] == sums[first] else first  # a tie is no decision


def _sums(points: Points) -> dict[str, int]:
    sites = dict.fromkeys(site for site, _ in points)
    return {site: sum(value for (of, _), value in points.items() if of == site) for site in sites}


def _told(about: tuple[str, str], value: int, who: str, today: str, before: str = "") -> Event:
    site, aspect = about
    expert = who or EXPERTS[ASPECTS.index(aspect) % len(EXPERTS)]
    return Event(today, expert, f"{before}The {aspect} of {site} counts {value:+d}.")


def _decide(points: Points, today: str) -> Course:
    """Ask for the sum of each site, and choose the greatest known one; a wrong sum was misleading."""
    sums = _sums(points)
    answers, wrong = dict[str, float](), 0
    for site in sums:
        text = f"In the meeting of {today}, what do the points of {site} add up to? {COUNTING} ({UNKNOWN_IF})"
        answer = yield Situation(text, partial(added, site=site, today=today))
        if number := re.search(r"[+-]?\d+", answer):
            answers[site] = float(number[0])
            wrong += answers[site] != sums[site]  # an old point counted
    is_right = _ahead(answers) == _best(points)
    yield Score(Outcome(f"Choose a site ({today}).", is_right, "", today), len(sums), wrong)


def added(lines: Sequence[str], site: str, today: str) -> str:
    """Add up today's points of a site, for each aspect the latest one."""
    known = dict[str, int]()
    for line in sorted(lines, key=lambda each: "wrong before" in each):
        if today in line:
            known |= {aspect: int(value) for aspect, of, value in POINTS_SENTENCE.findall(line) if of == site}
    return str(sum(known.values())) if known else UNKNOWN


DECISION = Family("decision", decision, EXPERTS)
