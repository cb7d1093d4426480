"""The options of `mneme share consolidate`."""

from typing import Annotated

import typer

from mneme.cli.options import Json, Reason, run_command
from mneme.cli.tuning_options import (
    Anew,
    Base,
    Batch,
    Epochs,
    Force,
    Generic,
    Longest,
    Ollama,
    Rank,
    Rate,
    Seed,
    Status,
)


def consolidate_pool(
    pool: Annotated[str, typer.Option("--pool", help="The pool: a domain, or single_pool.")],
    base: Base = "",
    ollama: Ollama = "",
    force: Force = False,
    anew: Anew = False,
    status: Status = False,
    rollback: Annotated[
        bool, typer.Option("--rollback", help="The model before the latest answers.")
    ] = False,
    above: Annotated[int, typer.Option("--above", min=0, max=99, help="Pairs that score more.")] = 70,
    epochs: Epochs = 3,
    rank: Rank = 16,
    rate: Rate = 2e-4,
    batch: Batch = 4,
    longest: Longest = 512,
    shots: Annotated[int, typer.Option("--shots", "-k", min=1, max=3, help="Examples of a question.")] = 3,
    seed: Seed = 0,
    generic: Generic = None,
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
