"""`mneme share …`: agents that share their memories."""

from typing import Annotated, Any

import typer

from mneme.commands.options import Json, run_command

app = typer.Typer(no_args_is_help=True, help="Ask agents that share memories; look after their pools.")

Team = Annotated[str, typer.Option("--team", envvar="MNEME_TEAM", help="Whose memories.")]
Pools = Annotated[
    str, typer.Option("--pools", help="A pool for each domain, or one for all: domain, single.")
]
Responder = Annotated[
    str, typer.Option(help="Who does this: auto, rules, ollama:MODEL, …; default: --agents.")
]
Responders = Annotated[
    str,
    typer.Option("--agents", envvar="MNEME_AGENTS", help="Who answers, scores and grades: auto, rules, …"),
]
Shots = Annotated[int, typer.Option("--shots", "-k", min=0, max=3, help="Memories shown as examples.")]
Threshold = Annotated[
    int, typer.Option("--threshold", min=0, max=100, help="A pair is stored where its score is above this.")
]
Learning = Annotated[str, typer.Option("--learning", help="What learns: projection, encoder.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of the training.")]


def _context(agents: str, roles: dict[str, str], **more: Any) -> dict[str, Any]:
    return {role: who or agents for role, who in roles.items()} | more


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="What the agent is to write.")],
    agent: Annotated[str, typer.Option("--agent", help="A shipped agent, or the path of an agent's YAML.")],
    team: Team = "local",
    pools: Pools = "domain",
    shots: Shots = 3,
    threshold: Threshold = 70,
    agents: Responders = "auto",
    answerer: Responder = "",
    scorer: Responder = "",
    grader: Responder = "",
    learning: Learning = "projection",
    seed: Seed = 0,
    thread: Annotated[
        str, typer.Option("--thread", "-t", help="A conversation: its earlier turns belong to the memory.")
    ] = "",
    train: Annotated[bool, typer.Option(help="Let the retriever learn from what is stored.")] = True,
    as_json: Json = False,
) -> None:
    """Ask an agent: it answers after what all remember, and a good answer is remembered."""
    from mneme import share as run

    roles = {"answerer": answerer, "scorer": scorer, "grader": grader}
    context = _context(agents, roles, agent=run.agent_text(agent), team=team, pools=pools, shots=shots)
    context |= {"threshold": threshold, "learning": learning, "seed": seed}
    run_command(run.ask(question, context, thread, train, as_json))
