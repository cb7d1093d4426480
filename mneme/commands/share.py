"""`mneme share …`: agents that share their memories."""

from pathlib import Path
from typing import Annotated, Any

import typer

from mneme.commands.options import Json, Limit, Reason, run_command

app = typer.Typer(no_args_is_help=True, help="Ask agents that share memories; look after their pools.")
pool = typer.Typer(no_args_is_help=True, help="Look at what all remember; bring memories in, take them out.")
retriever = typer.Typer(no_args_is_help=True, help="What a pool's retriever has learned.")
rubric = typer.Typer(no_args_is_help=True, help="What pairs are scored by.")
app.add_typer(pool, name="pool")
app.add_typer(retriever, name="retriever")
app.add_typer(rubric, name="rubric")

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
PoolName = Annotated[str, typer.Option("--pool", help="Which pool: a domain, or single_pool.")]
PairKey = Annotated[str, typer.Argument(help="A pair's key, or enough of its beginning.")]
DomainName = Annotated[str, typer.Argument(help="A domain, or single_pool.")]
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


@app.command()
def grow(
    domain: Annotated[str, typer.Option("--domain", help="Whose agents learn from one another.")],
    file: Annotated[
        Path | None,
        typer.Option("--from", help='Standard answers, JSON Lines: {"agent": "sonnet", "answer": "…"}.'),
    ] = None,
    budget: Annotated[
        int,
        typer.Option(
            "--budget",
            min=1,
            help="Calls to models that ask, answer and score; the training's grading is not in it.",
        ),
    ] = 100,
    asked: Annotated[str, typer.Option("--asked", help="Who gets a question: own agent, or domain.")] = "own",
    name: Annotated[str, typer.Option("--id", help="The growth's name; that of a killed one goes on.")] = "",
    agent: Annotated[str, typer.Option("--agent", help="YAML of another agent that takes part.")] = "",
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
    as_json: Json = False,
) -> None:
    """Let a pool grow: agents ask and answer one another from standard answers."""
    from mneme import share as run

    roles = {"answerer": answerer, "scorer": scorer, "grader": grader}
    context = _context(agents, roles, agent=run.agent_text(agent), team=team, pools=pools, shots=shots)
    context |= {"threshold": threshold, "learning": learning, "seed": seed, "budget": budget, "asked": asked}
    run_command(run.grow(domain, file, name, context, as_json))


@pool.command("list")
def list_pool(
    pool: PoolName = "",
    agent: Annotated[str, typer.Option("--agent", help="Only this agent's pairs.")] = "",
    team: Team = "local",
    limit: Limit = 100,
    as_json: Json = False,
) -> None:
    """List the pools, or the pairs of one."""
    from mneme import share_pools as run

    run_command(run.list_(team, pool, agent, limit, as_json))


@pool.command("show")
def show_pair(key: PairKey, pool: PoolName, team: Team = "local", as_json: Json = False) -> None:
    """Show a pair with its turns, and why it is there."""
    from mneme import share_pools as run

    run_command(run.show(team, pool, key, as_json))


@pool.command("export")
def export_pool(
    pool: PoolName,
    file: Annotated[Path, typer.Argument(help="Where to write; `-` writes to stdout.")] = Path("-"),
    team: Team = "local",
    as_json: Json = False,
) -> None:
    """Write a pool as JSON Lines."""
    from mneme import share_pools as run

    run_command(run.export(team, pool, file, as_json))


@pool.command("import")
def import_pool(
    file: Annotated[Path | None, typer.Argument(help="JSON Lines; `-` reads stdin.")] = None,
    pool: PoolName = "",
    agent: Annotated[
        str, typer.Option("--agent", help="Whose pairs: for lines of question and answer alone.")
    ] = "",
    shipped: Annotated[bool, typer.Option("--shipped", help="The pairs that come with Mneme.")] = False,
    team: Team = "local",
    as_json: Json = False,
) -> None:
    """Bring pairs in; a broken line is named, and the rest goes in."""
    from mneme import share_pools as run

    run_command(run.import_(team, pool, file, agent, shipped, as_json))


@pool.command("remove")
def remove_pair(
    key: PairKey,
    pool: PoolName,
    for_good: Annotated[bool, typer.Option("--forget", help="Erase it for good, with its history.")] = False,
    reason: Reason = "a person's word",
    team: Team = "local",
    as_json: Json = False,
) -> None:
    """Take a pair out of every retrieval."""
    from mneme import share_pools as run

    run_command(run.remove(team, pool, key, reason, for_good, as_json))


@retriever.command("status")
def retriever_status(pool: PoolName = "", team: Team = "local", as_json: Json = False) -> None:
    """Show each version: what it was trained on, how it went, why it was kept or kept out."""
    from mneme import share_retriever as run

    run_command(run.status(team, pool, as_json))


@retriever.command("train")
def train_retriever(
    pool: PoolName,
    team: Team = "local",
    agents: Responders = "auto",
    grader: Responder = "",
    learning: Learning = "projection",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Train on all that waits to be learned."""
    from mneme import share_retriever as run

    context = _context(agents, {"grader": grader}, team=team, learning=learning, seed=seed)
    run_command(run.train(pool, context, as_json))


@retriever.command("rollback")
def roll_back_retriever(
    pool: PoolName,
    to: Annotated[
        int | None, typer.Option("--to", min=0, help="Which version; 0: none. Default: before.")
    ] = None,
    reason: Reason = "a person's word",
    team: Team = "local",
    as_json: Json = False,
) -> None:
    """Let an earlier version serve again."""
    from mneme import share_retriever as run

    run_command(run.rollback(team, pool, to, reason, as_json))


@rubric.command("list")
def list_rubrics(team: Team = "local", as_json: Json = False) -> None:
    """List what each domain is scored by."""
    from mneme import share_rubric as run

    run_command(run.list_(team, as_json))


@rubric.command("show")
def show_rubric(
    domain: DomainName,
    version: Annotated[int | None, typer.Option("--version", min=0, help="0: the shipped one.")] = None,
    team: Team = "local",
    as_json: Json = False,
) -> None:
    """Show a domain's rubric."""
    from mneme import share_rubric as run

    run_command(run.show(team, domain, version, as_json))


@rubric.command("design")
def design_rubric(
    domain: DomainName,
    tasks: Annotated[
        list[str] | None, typer.Option("--task", help="What its agents write; repeatable. For a new domain.")
    ] = None,
    wishes: Annotated[str, typer.Option("--wishes", help="What the rubric shall look at.")] = "",
    designer: Annotated[
        str, typer.Option("--designer", help="Who drafts: auto, rules, ollama:MODEL, …")
    ] = "auto",
    team: Team = "local",
    as_json: Json = False,
) -> None:
    """Draft a rubric; it waits for your review."""
    from mneme import share_rubric as run

    run_command(run.design(domain, tasks or [], wishes, {"team": team, "designer": designer}, as_json))


@rubric.command("review")
def review_rubric(
    domain: DomainName,
    approve: Annotated[bool, typer.Option("--approve", help="Freeze the draft.")] = False,
    file: Annotated[Path | None, typer.Option("--file", help="Freeze this YAML rubric instead.")] = None,
    wishes: Annotated[str, typer.Option("--wishes", help="Draft anew, with these wishes.")] = "",
    reject: Annotated[bool, typer.Option("--reject", help="Freeze nothing.")] = False,
    reason: Reason = "a person's word",
    designer: Annotated[str, typer.Option("--designer", help="Who drafts anew.")] = "auto",
    team: Team = "local",
    as_json: Json = False,
) -> None:
    """Say your word on the draft that waits."""
    from mneme import share_rubric as run

    said = run.word_of(approve, file, wishes, reject, reason)
    run_command(run.review(domain, said, {"team": team, "designer": designer}, as_json))


@rubric.command("freeze")
def freeze_rubric(
    file: Annotated[Path, typer.Argument(help="A rubric in YAML.")],
    reason: Reason = "a person's word",
    team: Team = "local",
    as_json: Json = False,
) -> None:
    """Freeze a rubric of your own as the next version."""
    from mneme import share_rubric as run

    run_command(run.freeze(team, file, reason, as_json))
