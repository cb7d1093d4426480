"""Deploy, replay and settle: the adapter in Ollama, both models on the same tasks, and the decision."""

import asyncio
import re
from collections.abc import Collection, Sequence
from functools import cache
from math import log
from statistics import fmean
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.types import Send

from mneme.core.errors import BadInput, NotFound
from mneme.core.settings import read_settings
from mneme.environments.worlds import Task
from mneme.models.asking.replies import Unusable
from mneme.models.asking.responders import CallOptions, ModelRequest, say
from mneme.models.ollama.creating import create, model_name
from mneme.models.tuning.lora import ADAPTER
from mneme.models.tuning.paired import not_worse
from mneme.models.tuning.pairs import SYSTEM_PROMPT, Pair, Pairs, Progress, with_lessons
from mneme.nodes.learning.consolidation.state import (
    Consolidating,
    Replaying,
    State,
    TuningRuntime,
    Update,
    read_pairs,
)
from mneme.nodes.learning.worlds import advice_of, opened
from mneme.stores.ledger.records import Change
from mneme.stores.tuned_models import Attempt

MAX_LOSS = 0.05
"""Maximum share of a lesson that a tuned model may lose on replayed tasks, as a test must show."""
MAX_REPLY_TOKENS = 160
DEPLOY_ARMS = ("base_with_cards", "tuned_with_delta", "base_alone", "tuned_alone")
"""The arms of the comparison: which model is asked, and with which lessons before the task."""
REPLY_SEED = 0
NANOSECONDS = 1e9
ANSWER_WORD = re.compile(r"\w{3,}")


async def deploy(state: State, runtime: TuningRuntime) -> Update:
    """Create a versioned model for the team in Ollama, with the adapter (§8, step 4)."""
    run = Consolidating(runtime)
    name, folder = model_name(run.owner(), state["tag"]), await run.folder(state["tag"])
    await create((await read_settings()).ollama_url, name, state["served_base"], folder / ADAPTER)
    return {"model": name}


def each_replay(state: State) -> list[Send] | str:
    """Fan out to one step per answer, so that answers given before a kill are not asked again."""
    told = {name: state[name] for name in ("tag", "served_base", "model")}
    numbers = range(state["counts"]["replays"])
    # The models take turns, so that other work on the machine slows both alike.
    return [
        Send("replay", {**told, "number": n, "arm": arm}) for n in numbers for arm in DEPLOY_ARMS
    ] or "settle"


async def replay(state: Replaying, runtime: TuningRuntime) -> Update:
    """Ask the base or the tuned model, with or without lessons before the task."""
    pairs = await asyncio.to_thread(read_pairs, await Consolidating(runtime).folder(state["tag"]))
    pair, arm = pairs.replays[state["number"]], state["arm"]
    model = state["served_base" if arm.startswith("base") else "model"]
    lessons = {"base_with_cards": pair.shown, "tuned_with_delta": pair.delta}.get(arm, [])
    said, cost = await _said(model, with_lessons(pair.asked, lessons))
    return {"replayed": [{"key": pair.key, "arm": arm, "said": said, **cost}]}


async def _said(model: str, asked: str) -> tuple[str, dict[str, float]]:
    """Return a model's answer at temperature 0, with its costs as far as Ollama reports them."""
    request = ModelRequest(SYSTEM_PROMPT, [], [HumanMessage(asked)])
    options = CallOptions(MAX_REPLY_TOKENS, 0.0, REPLY_SEED, free_text=True)
    try:
        reply = await say(f"ollama:{model}", request, options, "background", {})
    except Unusable as endless:  # it repeats itself: the text so far counts
        return endless.raw, {}
    used, told = reply.usage_metadata, reply.response_metadata  # Ollama's durations are in nanoseconds
    computing = sum(told.get(each) or 0 for each in ("prompt_eval_duration", "eval_duration"))
    return str(reply.text), {
        "tokens": used["input_tokens"] if used else 0,
        "answer_tokens": used["output_tokens"] if used else 0,
        "seconds": computing / NANOSECONDS,  # without queueing and loading
    }


async def _scored(rows: Sequence[dict[str, Any]], pairs: Pairs, tell: Progress) -> list[dict[str, Any]]:
    """Score answers: 1 or 0 where the task's world says whether they solve it, else their share of words."""
    lessons = {each.answer for each in (*pairs.train, *pairs.held_out, *pairs.replays)}
    approaches = {each for pair in pairs.replays for each in pair.approaches}
    scored = []
    for done, pair in enumerate(pairs.replays, start=1):
        told = [row for row in rows if row["key"] == pair.key]
        solved = await asyncio.to_thread(solved_by, pair, [row["said"] for row in told], approaches)
        words = [share_of_words(row["said"], pair.answer, lessons) for row in told]
        for row, score in zip(told, map(float, solved or words), strict=True):
            scored.append({**row, "score": score, "is_measured": bool(solved)})
        tell({"done": done, "of": len(pairs.replays)})
    return scored


def solved_by(pair: Pair, said: Sequence[str], approaches: Collection[str] = ()) -> list[bool]:
    """Replay a task in its world: return for each answer whether it names an approach that solves it. Blocks.

    Known are the approaches of the world, of this lesson, and `approaches`. Return an empty list if the task
    cannot be replayed, or the lesson itself does not solve it there.
    """
    if not pair.world:
        return []
    try:
        world = opened(pair.world, Task(given=pair.posed))
        known = sorted({*world.remedies(), *pair.approaches, *approaches}, key=len, reverse=True)
        named = re.compile("|".join(map(re.escape, known)))  # longest first: a name may begin another one

        @cache  # a trial may take seconds, and four arms mostly name the same approaches
        def solves(pattern: str) -> bool:
            advice = advice_of(world, "", pattern)
            return advice.feasible and world.attempt(advice, quick=True).solved

        def is_solved(text: str) -> bool:
            # As many as the lesson has rules: an answer that lists all approaches must not win by that.
            return any(map(solves, [*dict.fromkeys(named.findall(text))][: len(pair.approaches)]))

        return [*map(is_solved, said)] if is_solved(pair.answer) else []
    except (BadInput, NotFound):  # the world, or its data, no longer exists
        return []


def share_of_words(said: str, lesson: str, lessons: Collection[str] = ()) -> float:
    """Return the share of a lesson's words (of three letters or more) that an answer has.

    Words are weighted by their inverse document frequency in `lessons`.
    """
    # An answer that repeats another lesson has the words that all lessons share: these must count little.
    wanted, has = _words(lesson), _words(said)
    known = [_words(each) for each in lessons if each != lesson]
    weight = {each: log((len(known) + 1) / (1 + sum(each in other for other in known))) for each in wanted}
    if not any(weight.values()):  # no word is its own
        weight = dict.fromkeys(wanted, 1.0)
    return sum(weight[each] for each in wanted & has) / sum(weight.values()) if wanted else 1.0


def _words(text: str) -> set[str]:
    return {*ANSWER_WORD.findall(text.casefold())}


async def settle(state: State, runtime: TuningRuntime) -> Update:
    """Promote the tuned model if it is not worse, archive what it learned, and store the reason."""
    run = Consolidating(runtime)
    cycle, pairs = run.cycle, await asyncio.to_thread(read_pairs, await run.folder(state["tag"]))
    figures, why, promoted = state["figures"], state["why"], False
    if not why:  # else the tuned model has forgotten: nothing was deployed or replayed
        rows = await _scored(state["replayed"], pairs, lambda done: run.tell({"doing": "settle", **done}))
        compared, promoted, why = _verdict(rows, set() if runtime.context.pool else {*pairs.keys})
        compared |= {
            "in_their_world": len({row["key"] for row in rows if row["is_measured"]}),
            "prompt_tokens": _means(rows, "tokens"),
            "answer_tokens": _means(rows, "answer_tokens"),
            "answer_seconds": _means(rows, "seconds"),
        }
        figures = figures | compared
    change = Change(reason=why, actor="consolidation", model=state["model"])
    # A replayed step finds its archive: cards must not be archived twice.
    if promoted and state["tag"] not in {each.tag for each in await cycle.archives()}:
        await cycle.archive(
            state["tag"],
            change=change,
            model=figures["base"],
            only=pairs.keys,
            serves=f"ollama:{state['model']}",
        )
    attempt = Attempt(
        tag=state["tag"],
        promoted=promoted,
        why=why,
        base=state["base"],
        model=state["model"],
        due=state["due"],
        figures=figures,
    )
    await cycle.note(attempt, change=change)
    return {"promoted": promoted, "why": why, "figures": figures}


def _verdict(rows: Sequence[dict[str, Any]], archived: Collection[str]) -> tuple[dict[str, Any], bool, str]:
    """Return the comparisons, whether the tuned model is promoted, and why."""
    with_cards = not_worse(_scores(rows, "base_with_cards"), _scores(rows, "tuned_with_delta"), MAX_LOSS)
    trained = [row for row in rows if row["key"] in archived]
    alone = not_worse(_scores(trained, "base_alone"), _scores(trained, "tuned_alone"), 0.0)
    figures = {"replayed": with_cards.model_dump(), "alone": alone.model_dump()}
    against = f"on replayed tasks than the base with its cards, {with_cards}."
    if not with_cards.not_worse:
        return figures, False, f"Not promoted: it may be worse {against}"
    # Cards that leave retrieval must be in the weights: else a model that only repeats the remaining cards
    # could replace a base that hardly uses cards.
    if archived and not alone.not_worse:
        why = f"Not promoted: without cards it may say no more of what it learned than the base, {alone}."
        return figures, False, why
    return figures, True, f"Promoted: not worse {against}"


def _scores(rows: Sequence[dict[str, Any]], arm: str) -> list[float]:
    return [row["score"] for row in rows if row["arm"] == arm]


def _means(rows: Sequence[dict[str, Any]], name: str) -> dict[str, float]:
    """Return the mean of a figure for each arm, over the answers for which Ollama reported it."""
    told = {arm: [row[name] for row in rows if row["arm"] == arm and row.get(name)] for arm in DEPLOY_ARMS}
    return {arm: fmean(values) if values else 0.0 for arm, values in told.items()}
