"""Deploy, replay and settle: the adapter in Ollama, both models on the same tasks, and who then serves."""

import asyncio
import re
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.types import Send

from mneme.core.settings import read_settings
from mneme.models.asking.responders import CallOptions, ModelRequest, model_of
from mneme.models.asking.unusable import Unusable
from mneme.models.ollama.creating import create, model_name
from mneme.models.tuning.lora import ADAPTER
from mneme.models.tuning.paired import not_worse
from mneme.models.tuning.pairs import SYSTEM, Pair, with_lessons
from mneme.nodes.learning.consolidation.state import (
    Replaying,
    State,
    TuningRuntime,
    Update,
    because,
    cycle_of,
    folder_of,
    owner_of,
    read_pairs,
)
from mneme.stores.tuned_models import Attempt

WORSE = 0.05
"""The share of a lesson's words that a tuned model must be shown not to lose on replayed tasks."""
REPLY_TOKENS = 160
SEED = 0
WORD = re.compile(r"\w{3,}")


async def deploy(state: State, runtime: TuningRuntime) -> Update:
    """Give Ollama the adapter, as a model of the team's own with a version (§8, step 4)."""
    name = model_name(owner_of(runtime), state["tag"])
    folder = await folder_of(state["tag"], runtime)
    url = (await read_settings()).ollama_url
    await create(url, name, state["served_base"], folder / ADAPTER)
    return {"model": name}


def each_replay(state: State) -> list[Send] | str:
    """Replay the tasks one by one, so that what was answered before a kill is not asked again."""
    numbers = range(state["counts"]["replays"])
    sends = [
        Send(
            "replay",
            Replaying(tag=state["tag"], number=n, served_base=state["served_base"], model=state["model"]),
        )
        for n in numbers
    ]
    return sends or "settle"


async def replay(state: Replaying, runtime: TuningRuntime) -> Update:
    """Ask the base with all cards, the tuned model with none, and it with what is left."""
    pair = await _replayed(state, runtime)
    base, tuned = state["served_base"], state["model"]
    arms = {
        "base_with_cards": (base, with_lessons(pair.asked, pair.shown)),
        "tuned_alone": (tuned, pair.asked),
        "tuned_with_delta": (tuned, with_lessons(pair.asked, pair.delta)),
    }
    row: dict[str, Any] = {"key": pair.key}
    for arm, (model, asked) in arms.items():
        said, prompt_tokens = await _said(model, asked)
        row[arm] = {"score": share_of_words(said, pair.answer), "tokens": prompt_tokens, "said": said}
    return {"replayed": [row]}


async def _replayed(state: Replaying, runtime: TuningRuntime) -> Pair:
    folder = await folder_of(state["tag"], runtime)
    pairs = await asyncio.to_thread(read_pairs, folder)
    return pairs.replays[state["number"]]


async def _said(model: str, asked: str) -> tuple[str, int]:
    """Return what a model says without chance, and the tokens of what it read."""
    request = ModelRequest(SYSTEM, [], [HumanMessage(asked)])
    options = CallOptions(REPLY_TOKENS, 0.0, SEED, free_text=True)
    try:
        reply = await model_of(f"ollama:{model}").say(request, options, "background", {})
    except Unusable as endless:  # it goes round in circles: what it said until then counts
        return endless.raw, 0
    return str(reply.text), reply.usage_metadata["input_tokens"] if reply.usage_metadata else 0


def share_of_words(said: str, lesson: str) -> float:
    """Return the share of a lesson's words of three letters or more that an answer has."""
    wanted = {*WORD.findall(lesson.casefold())}
    return len(wanted & {*WORD.findall(said.casefold())}) / len(wanted) if wanted else 1.0


async def settle(state: State, runtime: TuningRuntime) -> Update:
    """Promote the tuned model where it is not worse, archive what it learned, and keep why."""
    cycle, rows = cycle_of(runtime), sorted(state["replayed"], key=lambda row: row["key"])
    figures, why, promoted = dict(state["figures"]), state["why"], False
    if not why:
        compared = not_worse(_scores(rows, "base_with_cards"), _scores(rows, "tuned_with_delta"), WORSE)
        promoted = compared.not_worse
        figures |= {
            "replayed": compared.model_dump(),
            "tuned_alone": _mean(_scores(rows, "tuned_alone")),
            "prompt_tokens": {arm: _mean(_tokens(rows, arm)) for arm in ARMS},
        }
        verdict = "Promoted: not worse" if promoted else "Not promoted: it may be worse"
        why = f"{verdict} on replayed tasks than the base with its cards, {compared}."
    folder = await folder_of(state["tag"], runtime)
    change = because(why, state["model"])
    if promoted and state["tag"] not in {each.tag for each in await cycle.archives()}:
        await cycle.archive(
            state["tag"],
            change=change,
            model=figures["base"],
            only=(await asyncio.to_thread(read_pairs, folder)).keys,
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


ARMS = ("base_with_cards", "tuned_alone", "tuned_with_delta")


def _scores(rows: Sequence[dict[str, Any]], arm: str) -> list[float]:
    return [row[arm]["score"] for row in rows]


def _tokens(rows: Sequence[dict[str, Any]], arm: str) -> list[float]:
    """Return the tokens of what was read, where Ollama has told them."""
    return [row[arm]["tokens"] for row in rows if row[arm]["tokens"]]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
