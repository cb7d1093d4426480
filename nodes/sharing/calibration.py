"""Calibrate the score above which a domain's pairs are kept, for one grader (§3.1: "a preset threshold").

Good answers (pairs that a person chose or rated up, then shipped ones) and a damaged version of each are
scored as in an exchange. In turn an answer is that to another question of its agent, is cut off after a
third, or says something wrong: its numbers have a digit more, or else its end is another's. The threshold is
the middle of those with the best balanced accuracy; of several such ranges, of the highest. Sensitivity and
specificity are of each answer and its damaged version by a threshold that was found without the two: nothing
is chosen on what it is measured on. Where the interval of 95 % of their mean (Wilson) is not above chance,
nothing is stored.
"""

import asyncio
import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from math import sqrt
from typing import Any

from mneme.core.errors import BadInput
from mneme.core.yaml_files import text_of
from mneme.library import PAIRS
from mneme.library.agents.agent import AGENTS, Agent, load_agent
from mneme.library.agents.rubric import SINGLE_POOL
from mneme.models.asking.asking import resolve
from mneme.nodes.sharing.context import ScoredContext, Scoring
from mneme.nodes.sharing.exchange import Exchange, PairScores, score
from mneme.nodes.sharing.pools import FrozenRubric, agents_in
from mneme.stores.pools.live_scores import Z
from mneme.stores.pools.memory_pool import MemoryPool, Pair
from mneme.stores.pools.thresholds import DEFAULT_THRESHOLD, Threshold, checksum
from mneme.stores.recall import QUESTION_PART_END
from mneme.stores.write_gate import near

MIN_CALIBRATION_ANSWERS = 8
"""Minimum number of good answers for a threshold."""
CHANCE = 0.5


async def calibrate(  # noqa: PLR0913  (what is scored, and how)
    pool: MemoryPool,
    frozen: FrozenRubric,
    who: str,
    *,
    scoring: Scoring,
    wanted: int,
    seed: int,
    agents: str,
) -> Threshold:
    """Return the threshold of a pool's domain for a grader. Raises BadInput if none can be found."""
    grader, known = await resolve(who), {each.name: each for each in map(load_agent, AGENTS)}
    known |= {each.name: each for each in agents_in(agents)}
    found = anchors(await _good(pool, known, wanted), wanted, seed)
    if len(found) < MIN_CALIBRATION_ANSWERS:
        raise BadInput(
            f"{pool.pool} has {len(found)} good answers that can be damaged; "
            f"{MIN_CALIBRATION_ANSWERS} are needed.",
            "`mneme share pool import` brings in pairs chosen by hand, of each agent two at least.",
        )
    context = ScoredContext(scorer=grader, scoring=scoring)
    texts = [(pair, text) for pair, damaged in found for text in (pair.answer, damaged)]
    try:
        async with asyncio.TaskGroup() as group:
            asked = [(Exchange(known[p.agent], p.asks, p.leading), text) for p, text in texts]
            tasks = [group.create_task(score(*each, (), frozen, context, "background")) for each in asked]
    except ExceptionGroup as failed:  # callers handle Mneme's errors, and no groups of them
        raise failed.exceptions[0] from failed
    scored = [each.result() for each in tasks]
    measured = await asyncio.to_thread(_measured, scored, grader, pool.pool)
    told = {"domain": pool.pool, "grader": grader, "scoring": scoring, "seed": seed}
    return Threshold(**told | measured, rubric=checksum(frozen.rubric))


def _measured(scored: Sequence[PairScores], grader: str, domain: str) -> dict[str, Any]:
    """Return the threshold and how well it separates good answers from the damaged one after each.

    Raises BadInput if it does not separate them beyond chance.
    """
    # A pair without a score is never stored: -1 is not above any threshold.
    scores = [-1 if each["score"] is None else each["score"] for each in scored]
    good, bad = scores[::2], scores[1::2]
    kept, refused = held_out(good, bad)
    low, high = interval(kept + refused, len(scores))
    if low <= CHANCE:
        why = next((each["rationale"] for each in scored if each["score"] is None), "")
        raise BadInput(
            f"{grader} does not tell good answers of {domain} from damaged ones: {kept + refused} of "
            f"{len(scores)} are on their side of a threshold (95 %: {low:.0%} to {high:.0%}; chance: 50 %). "
            f"{why}".strip(),
            "Nothing was stored. Take another grader, or more --pairs; else pairs are kept above "
            f"{DEFAULT_THRESHOLD}.",
        )
    lowest, highest = best(good, bad)
    shares = {"sensitivity": kept / len(good), "specificity": refused / len(bad), "low": low, "high": high}
    counts = {"pairs": len(good), "unscored": scores.count(-1), "lowest": lowest, "highest": highest}
    return {"threshold": middle(lowest, highest), **counts, **shares}


async def _good(pool: MemoryPool, known: dict[str, Agent], wanted: int) -> list[Pair]:
    """Return the pairs with a question that a person chose or rated up; if too few, also shipped ones."""
    mine = [each.pair async for each in pool.pairs()]
    found = {
        each.key: each
        for each in mine
        # rated up more than down, or chosen by hand and no more down than up
        if each.asks and each.agent in known and each.ups - each.downs >= (each.scoring != "hand")
    }
    if len(found) < wanted:
        members = (each for each in known.values() if pool.pool in {each.domain, SINGLE_POOL})
        found |= {each.key: each for agent in members for each in shipped(agent)}
    return [*found.values()]


def shipped(agent: Agent) -> list[Pair]:
    """Return the shipped pairs of an agent; there are none of a user's own agents."""
    if agent.name not in AGENTS:
        return []
    rows = map(json.loads, text_of(PAIRS / f"{agent.name}.jsonl").splitlines())
    told: dict[str, Any] = {"agent": agent.name, "domain": agent.domain, "score": 100, "scoring": "hand"}
    return [Pair(prompt=each["question"], answer=each["answer"], **told) for each in rows]


def anchors(pairs: Sequence[Pair], wanted: int, seed: int) -> list[tuple[Pair, str]]:
    """Draw a number of pairs by seed, of each agent in turn, with a damaged version of each answer."""
    drawn = sorted(pairs, key=lambda each: hashlib.sha256(f"{seed}/{each.key}".encode()).digest())
    turns, turn = Counter[str](), dict[str, int]()
    for each in drawn:
        turn[each.key], turns[each.agent] = turns[each.agent], turns[each.agent] + 1
    found = list[tuple[Pair, str]]()
    for each in sorted(drawn, key=lambda each: turn[each.key]):  # the first of each agent, then the second, …
        if len(found) == wanted:
            break
        at = drawn.index(each)
        # The following ones of the same agent in the drawn order, which wraps around.
        of_agent = (other for other in [*drawn[at + 1 :], *drawn[:at]] if other.agent == each.agent)
        other = next((other for other in of_agent if not near(other.answer, each.answer)), None)
        if other:
            found.append((each, _damaged(each.answer, other.answer, len(found))))
    return found


def _damaged(answer: str, other: str, number: int) -> str:
    """Damage an answer in one of three ways, in turn."""
    way = (number + number // 3) % 3  # shifted, or each of three agents in turn would have one way only
    if way == 1:
        return answer[: max(1, len(answer) // 3)]
    if way == 2 and re.search(r"\d", answer):
        return re.sub(r"\d+", r"\g<0>0", answer)
    end, their_end = _end(answer), _end(other)
    return answer.strip().removesuffix(end) + their_end if way == 2 and end != their_end else other


def _end(text: str) -> str:
    """Return the last line of a text; of a single line, its last sentence."""
    lines = text.strip().splitlines()
    return lines[-1] if len(lines) > 1 else [each for each in QUESTION_PART_END.split(lines[0]) if each][-1]


def best(good: Sequence[int], bad: Sequence[int]) -> tuple[int, int]:
    """Return the range of thresholds, 0 to 99, with the best balanced accuracy; of several, the highest."""
    # Balanced accuracy, scaled to whole numbers, so that equal ones compare as equal.
    worth = [
        len(bad) * sum(each > at for each in good) + len(good) * sum(each <= at for each in bad)
        for at in range(100)
    ]
    lowest = highest = max(at for at in range(100) if worth[at] == max(worth))
    while lowest and worth[lowest - 1] == worth[highest]:
        lowest -= 1
    return lowest, highest


def middle(lowest: int, highest: int) -> int:
    """Return the middle threshold of a range."""
    return (lowest + highest + 1) // 2


def held_out(good: Sequence[int], bad: Sequence[int]) -> tuple[int, int]:
    """Return the numbers of good answers kept and damaged ones refused, leaving each pair out in turn."""
    kept = refused = 0
    for at in range(len(good)):
        others = best([*good[:at], *good[at + 1 :]], [*bad[:at], *bad[at + 1 :]])
        kept += good[at] > middle(*others)
        refused += bad[at] <= middle(*others)
    return kept, refused


def interval(right: int, count: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share."""
    share, part = right / count, Z * Z / count
    half = Z * sqrt(share * (1 - share) / count + part / (4 * count))
    return (share + part / 2 - half) / (1 + part), min(1.0, (share + part / 2 + half) / (1 + part))
