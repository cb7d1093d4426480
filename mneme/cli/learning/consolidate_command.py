"""The options of `mneme cards consolidate`."""

from typing import Annotated

import typer

from mneme.cli.learning.card_commands import Team
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


def consolidate_cards(
    base: Base = "",
    ollama: Ollama = "",
    force: Force = False,
    anew: Anew = False,
    status: Status = False,
    rollback: Annotated[
        bool, typer.Option("--rollback", help="Undo the latest: the model and the archive, in one step.")
    ] = False,
    successes: Annotated[int, typer.Option("--successes", min=1, help="Of a card to be trained on.")] = 3,
    epochs: Epochs = 3,
    rank: Rank = 16,
    rate: Rate = 2e-4,
    batch: Batch = 4,
    longest: Longest = 512,
    recall: Annotated[int, typer.Option("--recall", min=1, help="Cards that a task is shown.")] = 5,
    seed: Seed = 0,
    generic: Generic = None,
    reason: Reason = "decided on the command line",
    team: Team = "local",
    as_json: Json = False,
) -> None:
    """Tune a model on the proven cards; it serves, and they are archived, where it is not worse."""
    from mneme.cli.learning import consolidation as run

    if status:
        run_command(run.status(team, as_json))
        return
    if rollback:
        run_command(run.rollback(team, reason, as_json))
        return
    wanted = {"base": base, "served_base": ollama, "force": force, "generic": str(generic or "")}
    context = {
        "team": team,
        "recall": recall,
        "successes": successes,
        "epochs": epochs,
        "rank": rank,
        "rate": rate,
        "batch": batch,
        "longest": longest,
        "seed": seed,
    }
    run_command(run.consolidate(wanted, context, anew=anew, as_json=as_json))
