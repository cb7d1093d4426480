"""The options of `mneme share consolidate`."""

from pathlib import Path
from typing import Annotated

import typer

from mneme.cli.options import Json, Reason, run_command


def consolidate_pool(
    pool: Annotated[str, typer.Option("--pool", help="The pool: a domain, or single_pool.")],
    base: Annotated[
        str,
        typer.Option("--base", help="The model to tune: a GGUF file, a folder of safetensors, or smollm2."),
    ] = "",
    ollama: Annotated[str, typer.Option("--ollama", help="The same model's name in Ollama.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Though nothing makes it due.")] = False,
    anew: Annotated[bool, typer.Option("--anew", help="Give up one that was begun.")] = False,
    status: Annotated[bool, typer.Option("--status", help="Only say what is due and what was.")] = False,
    rollback: Annotated[
        bool, typer.Option("--rollback", help="The model before the latest answers.")
    ] = False,
    above: Annotated[int, typer.Option("--above", min=0, max=99, help="Pairs that score more.")] = 70,
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="Rounds through the pairs.")] = 3,
    rank: Annotated[int, typer.Option("--rank", min=1, help="Of the adapter's matrices.")] = 16,
    rate: Annotated[float, typer.Option("--rate", help="Learning rate.")] = 2e-4,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Pairs in one step.")] = 4,
    longest: Annotated[int, typer.Option("--longest", min=32, help="Tokens of a pair; more are cut.")] = 512,
    shots: Annotated[int, typer.Option("--shots", "-k", min=1, max=3, help="Examples of a question.")] = 3,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the training.")] = 0,
    generic: Annotated[
        Path | None, typer.Option("--generic", help="Your own generic questions (YAML).")
    ] = None,
    reason: Reason = "decided on the command line",
    team: Annotated[
        str, typer.Option("--team", envvar="MNEME_TEAM", help="The team that owns the pools.")
    ] = "local",
    as_json: Json = False,
) -> None:
    """Tune a model on a pool's good pairs; it answers where the answerer is auto, if it is not worse."""
    from mneme.cli.learning import consolidation as run

    if status:
        run_command(run.status(team, as_json, pool))
        return
    if rollback:
        run_command(run.rollback(team, reason, as_json, pool))
        return
    wanted = {"base": base, "served_base": ollama, "force": force, "generic": str(generic or "")}
    context = {
        "team": team,
        "pool": pool,
        "above": above,
        "recall": shots,
        "epochs": epochs,
        "rank": rank,
        "rate": rate,
        "batch": batch,
        "longest": longest,
        "seed": seed,
    }
    run_command(run.consolidate(wanted, context, anew=anew, as_json=as_json))
