"""`mneme cards consolidate`: tune a model on what the cards have taught, or undo it."""

from typing import Annotated, Any

import typer
from langgraph.types import StreamMode
from pydantic import BaseModel, Field
from rich.markup import escape

from mneme.api.cards import Cards
from mneme.cli.derived import Fields
from mneme.cli.sharing.pools import PoolName
from mneme.cli.show import console, emit, print_rows, print_table
from mneme.client.home import open_operations
from mneme.client.workflows import GraphRun, open_team
from mneme.core.errors import BadInput
from mneme.nodes.learning.consolidation.state import TuningContext

CONSOLIDATION_GRAPH = "consolidation"
FIXED_FIELDS = ("base", "served_base")


class ConsolidationRequest(BaseModel):
    """The requested action: a consolidation of a model, a report, or an undo."""

    base: str = Field("", description="What is tuned: a GGUF file, a folder of safetensors, or smollm2.")
    served_base: str = Field("", description="The same model's name in Ollama.")
    force: bool = Field(False, description="Consolidate although nothing makes it due.")
    fresh: bool = Field(False, description="Begin anew, and give up a consolidation that was begun.")
    status: bool = Field(False, description="Only say what is due and what was.")
    rollback: bool = Field(
        False,
        description="Undo the latest in one step: the model before it serves, archived cards come back.",
    )
    generic: str = Field(
        "", description="Your own generic questions (YAML).", json_schema_extra={"format": "path"}
    )
    reason: str = Field("", description="The reason of a rollback; kept in the history.")


Wish = Annotated[dict[str, Any], Fields(ConsolidationRequest)]


async def consolidate_cards(
    wanted: Wish,
    context: Annotated[dict[str, Any], Fields(TuningContext, without="pool above")],
) -> int:
    """Tune a model on the proven cards; if it is not worse, it serves and the cards are archived."""
    return await _run(wanted, context)


async def consolidate_pool(
    pool: PoolName,
    wanted: Wish,
    context: Annotated[dict[str, Any], Fields(TuningContext, without="pool successes recall")],
    shots: Annotated[int, typer.Option("--shots", "-k", min=1, max=3, help="Examples of a question.")] = 3,
) -> int:
    """Tune a model on a pool's good pairs; it answers where the answerer is auto, if it is not worse."""
    return await _run(wanted, context | {"pool": pool, "recall": shots})


async def _run(wanted: dict[str, Any], context: dict[str, Any]) -> int:
    """Consolidate, tell of consolidations, or undo the latest; return the exit status."""
    fresh, asks, undoes, reason = (wanted.pop(name) for name in ("fresh", "status", "rollback", "reason"))
    if not (asks or undoes):  # the rest of `wanted` is the graph's input
        return await consolidate(wanted, context, fresh=fresh)
    pool = context.get("pool", "")
    async with open_operations(Cards, context["team"], reading=asks) as on:
        if not asks:  # the cards of the latest come back, and the model before it serves
            undone = await on.roll_back_consolidation(pool, reason)
            emit(undone)
            now = undone.before or "no tuned model"
            told = "its pairs never left the pool" if pool else f"{len(undone.ids)} cards are as before"
            console.print(f"{undone.tag} is taken back: {told}; {escape(now)} serves.")
            if undone.serves:
                console.print(f"[dim]Ollama still has {escape(undone.serves.removeprefix('ollama:'))}.[/]")
            return 0
        due, serving = await on.consolidation_due(pool), await on.serving(pool)
        attempts = await on.consolidations(pool)
    emit({"due": [*due], "serving": serving, "attempts": [each.model_dump() for each in attempts]})
    console.print(f"due: {escape('; '.join(due)) or 'no'}")
    console.print(f"serving: {escape(serving) or 'no tuned model'}")
    if attempts:
        print_rows(attempts)
    return 0


async def consolidate(wanted: dict[str, Any], context: dict[str, Any], *, fresh: bool) -> int:
    """Consolidate, or continue a killed run; return 1 if it was due and no model was promoted."""
    if not (wanted["base"] and wanted["served_base"]):
        raise BadInput(
            "Which model is tuned, and where is it served?",
            "Give --base (a GGUF file, a folder, or smollm2) and --served-base (its name in Ollama).",
        )
    async with open_team(Cards, context["team"], CONSOLIDATION_GRAPH) as session:
        config = await session.thread(CONSOLIDATION_GRAPH, context.get("pool", ""))
        left, values = await session.flows.left_at(CONSOLIDATION_GRAPH, config)
        goes_on = bool(left) and "examine" not in left and not fresh  # a refused consolidation starts again
        other = [name for name in FIXED_FIELDS if goes_on and values.get(name) != wanted[name]]
        if other:
            raise BadInput(
                f"A consolidation of {values.get('base')} on {values.get('served_base')} was begun.",
                "Go on with these, or begin anew: --fresh.",
            )
        if goes_on:
            console.print(f"[dim]Going on with {values.get('tag') or 'it'}: {', '.join({*left})}.[/]")
        given = None if goes_on else wanted
        modes: list[StreamMode] = ["updates", "custom"]
        run = GraphRun(session.flows, CONSOLIDATION_GRAPH, given, config, context, modes, "sync")
        async for mode, told in run:
            if mode == "custom":
                loss = f", loss {told['loss']:.3f}" if "loss" in told else ""
                step = told["doing"].replace("_", " ")
                console.print(f"    [dim]{step}: {told['done']} of {told['of']}{loss}[/]")
                continue
            for step in told if "__metadata__" not in told else ():  # else it is left from before a kill
                console.print(f"  [dim]{step.replace('_', ' ')}: done[/]")
        ended = run.values
    emit({name: ended.get(name) for name in ("tag", "promoted", "why", "due", "figures")})
    if due := ended.get("due"):
        console.print(f"due: {escape('; '.join(due))}")
    if rows := figures(ended.get("figures") or {}):
        print_table("", ("figure", "base", "tuned"), rows)
    console.print(escape(str(ended.get("why"))))
    return int(bool(ended.get("tag")) and not ended.get("promoted"))  # without a tag nothing was due


def figures(found: dict[str, Any]) -> list[list[str]]:
    """Return the figures of a consolidation as rows: name, base model, tuned model."""
    rows = [
        [name.replace("_", " "), *(f"{each:.3f}" for each in found[name])]
        for name in ("loss", "held_out", "held_out_with_cards")
        if name in found
    ]
    rows += [
        [f"{name} ({found[name]['count']})", *(f"{found[name][side]:.3f}" for side in ("before", "after"))]
        for name in ("generic", "replayed", "alone")
        if name in found
    ]
    if count := found.get("in_their_world"):
        rows.append(["replayed in their world", "", f"{count} of {found['replayed']['count']}"])
    return [*rows, *_costs(found)]


def _costs(found: dict[str, Any]) -> list[list[str]]:
    """Return the cost of training, and of an answer: of the base with all cards, tuned with those left."""
    rows = []
    if "trained" in found:
        trained = found["trained"]
        losses = [*trained["losses"][:1], *trained["losses"][1:][-1:]]  # of the first epoch and the last
        where = trained["device"] + (", mixed precision" if trained["mixed"] else "")
        rows += [
            ["training", "", f"{trained['steps']} steps, {trained['seconds']:.0f} s on {where}"],
            ["training tokens", "", f"{trained.get('tokens', 0):,}"],
            ["training loss", "", " → ".join(f"{each:.2f}" for each in losses)],
        ]
    if "adapter_bytes" in found:
        rows.append(["adapter", "", f"{found['adapter_bytes'] / 1e6:.1f} MB"])
    for name, digits in (("prompt_tokens", 0), ("answer_tokens", 0), ("answer_seconds", 2)):
        if name in found:
            sides = (found[name][each] for each in ("base_with_cards", "tuned_with_delta"))
            rows.append([name.replace("_", " "), *(f"{each:.{digits}f}" for each in sides)])
    if "answer_seconds" in found:  # the time saved in answers repays the training (§8, cost and benefit)
        answer, seconds = found["answer_seconds"], found["trained"]["seconds"]
        saved = answer["base_with_cards"] - answer["tuned_with_delta"]
        repaid = f"after {seconds / saved:,.0f} answers" if saved > 0 else "never: an answer takes no less"
        rows.append(["training repaid", "", repaid])
    return rows
