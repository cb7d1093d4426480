"""Examine, gather, measure, train and judge: from a team's cards to an adapter and its quality."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import yaml
from langgraph.types import Overwrite
from pydantic import TypeAdapter, ValidationError

from mneme.core.durable import write_durably
from mneme.core.errors import BadInput, Forbidden
from mneme.core.private import make_private_folder
from mneme.core.settings import settings
from mneme.library import EXAMPLES
from mneme.models.asking.responders import check
from mneme.models.tuning.base import Base, find_base, fingerprint
from mneme.models.tuning.judging import Judged, judge
from mneme.models.tuning.lora import ADAPTER, ADAPTER_FILE, Training, TrainingCost, open_tuned
from mneme.models.tuning.paired import not_worse
from mneme.models.tuning.pairs import Progress, Question, Recipe
from mneme.nodes.learning.consolidation.sources import card_pairs, memory_pairs
from mneme.nodes.learning.consolidation.state import (
    Consolidating,
    State,
    TuningRuntime,
    Update,
    read_pairs,
)

MAX_FORGOTTEN = 0.10
"""Maximum share of generic questions that an adapter may lose, as a test must show."""
QUESTION_LIST = TypeAdapter(list[Question])
MIN_TRAINING_PAIRS = 2
"""Minimum pairs for a training."""


async def examine(state: State, runtime: TuningRuntime) -> Update:
    """Return whether a consolidation is due (§8); refuse early what would otherwise fail after hours."""
    if settings().auth:
        raise Forbidden(
            "This server is for several people: it opens no model's files that somebody names.",
            "Consolidate on the machine that holds the ledger: `mneme cards consolidate`.",
        )
    if not (state.get("base") and state.get("served_base")):
        raise BadInput(
            "Which model is tuned, and where is it served?",
            "Name `base` (a GGUF file, a folder, or smollm2) and `served_base`, the same model in Ollama.",
        )
    base = await asyncio.to_thread(find_base, state["base"])
    await check(f"ollama:{state['served_base']}")
    await asyncio.to_thread(read_generic, state.get("generic", ""))
    cycle, mark = Consolidating(runtime).cycle, await asyncio.to_thread(fingerprint, base)
    due = [*await cycle.due(model=mark)]
    goes_on = bool(due) or state.get("force", False)
    return {
        "tag": f"v{len(await cycle.attempts()) + 1}" if goes_on else "",
        "due": due,
        "promoted": False,
        "why": "" if goes_on else "Nothing makes it due; --force consolidates all the same.",
        "figures": {"base": mark},
        "model": "",
        "counts": {},
        "replayed": Overwrite([]),
    }


def is_due(state: State) -> str:
    """Go on to `gather` if the consolidation is due or requested, else end."""
    return "gather" if state["tag"] else "__end__"


async def gather(state: State, runtime: TuningRuntime) -> Update:
    """Make training pairs of the present cards or memories (§8, step 1), and store them for the training."""
    told, run = runtime.context, Consolidating(runtime)
    if run.pool:
        pairs = await memory_pairs(run.pool, told.above, told.recall)
    else:
        pairs = await card_pairs(run.cards, run.limits, told.recall, await run.of_cards.learned())
    if len(pairs.train) < MIN_TRAINING_PAIRS or not pairs.keys:
        if told.pool:
            raise BadInput(
                f"{len(pairs.keys)} memories of {told.pool} can be trained on: scored above {told.above}, "
                "not held out.",
                "Let the pool grow, or ask for less: --above 50.",
            )
        raise BadInput(
            f"{len(pairs.keys)} cards are proven enough to be trained on: verified, confidence over 0.8, "
            f"{told.successes} successes.",
            "Learn from more tasks, or ask for fewer successes: --successes 1.",
        )
    folder = await run.folder(state["tag"])
    await asyncio.to_thread(make_private_folder, folder)
    await asyncio.to_thread(write_durably, folder / "pairs.json", pairs.model_dump_json())
    return {
        "counts": {
            "train": len(pairs.train),
            "held_out": len(pairs.held_out),
            "replays": len(pairs.replays),
            "memories" if told.pool else "cards": len(pairs.keys),
        }
    }


async def measure(state: State, runtime: TuningRuntime) -> Update:
    """Judge the base by the held-out cards and the generic questions, before any training."""
    run = Consolidating(runtime)
    tell, folder = _teller("measure", run), await run.folder(state["tag"])
    return {"before": await asyncio.to_thread(_judged, state, folder, tell, tuned=False)}


async def train(state: State, runtime: TuningRuntime) -> Update:
    """Train the adapter (§8, step 2); a killed training continues from its last saved step."""
    run = Consolidating(runtime)
    tell, folder = _teller("train", run), await run.folder(state["tag"])
    # The context is a Recipe, but its other fields must not count: a changed recipe begins the training anew.
    recipe = Recipe(**runtime.context.model_dump(include={*Recipe.model_fields}))

    def trained() -> TrainingCost:
        training = Training(Base(find_base(state["base"])), folder, recipe)
        return training.run(read_pairs(folder).train, state["figures"]["base"], tell)

    return {"trained": await asyncio.to_thread(trained)}


async def judge_tuned(state: State, runtime: TuningRuntime) -> Update:
    """Judge the tuned model by the same questions, and whether it has forgotten what the base knew."""
    run = Consolidating(runtime)
    tell, folder = _teller("judge_tuned", run), await run.folder(state["tag"])
    after = await asyncio.to_thread(_judged, state, folder, tell, tuned=True)
    before = state["before"]
    kept = not_worse(before.generic, after.generic, MAX_FORGOTTEN)
    why = "" if kept.not_worse else f"Not promoted: it may have forgotten what the base knew, {kept}."
    figures = state["figures"] | {
        "counts": state["counts"],
        "trained": state["trained"],
        "adapter_bytes": (folder / ADAPTER / ADAPTER_FILE).stat().st_size,
        "loss": [before.loss, after.loss],
        "held_out": [before.accuracy("without"), after.accuracy("without")],
        "held_out_with_cards": [before.accuracy("with_cards"), after.accuracy("with_cards")],
        "generic": kept,
    }
    return {"after": after, "figures": figures, "why": why}


def has_forgotten(state: State) -> str:
    """Route a model that has forgotten to `settle`: it never serves."""
    return "settle" if state["why"] else "deploy"


def _teller(step: str, run: Consolidating) -> Progress:
    """Return a function that reports the progress of a long step to the graph's stream."""
    return lambda how_far: run.tell({"doing": step, **how_far})


def _judged(state: State, folder: Path, tell: Progress, *, tuned: bool) -> Judged:
    base, pairs = Base(find_base(state["base"])), read_pairs(folder)
    if tuned:
        open_tuned(base, folder)
    answers = [each.answer for each in (*pairs.held_out, *pairs.train)]
    return judge(base, pairs.held_out, answers, read_generic(state.get("generic", "")), tell)


def read_generic(named: str) -> Sequence[Question]:
    """Read the generic questions: those of a file, or those that come with Mneme. Raises BadInput. Blocks."""
    file = Path(named).expanduser() if named else EXAMPLES / "generic.yaml"
    try:
        return QUESTION_LIST.validate_python(yaml.safe_load(file.read_text(encoding="utf-8")))
    except (OSError, yaml.YAMLError, ValidationError) as error:
        raise BadInput(
            f"The generic questions in {file} cannot be read: {error}",
            "A YAML list of question and right.",
        ) from error
