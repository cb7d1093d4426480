"""`mneme share …`: the commands of Memory Sharing."""

from pathlib import Path
from typing import Annotated, Any

import typer

from mneme.cli.options import Agents, Json, Limit, Reason, Role, run_command
from mneme.cli.sharing.consolidate_command import consolidate_pool

app = typer.Typer(
    no_args_is_help=True, help="Agents that share one pool of prompt-answer pairs (Memory Sharing)."
)
pool = typer.Typer(no_args_is_help=True, help="List, search, show, import, export and remove shared pairs.")
retriever = typer.Typer(no_args_is_help=True, help="Show, train and roll back a pool's retriever.")
rubric = typer.Typer(
    no_args_is_help=True, help="Show, draft, review and freeze the rubrics that score pairs."
)
agents_app = typer.Typer(no_args_is_help=True, help="Make and list agents of your own.")
app.add_typer(agents_app, name="agent")
app.add_typer(pool, name="pool")
app.add_typer(retriever, name="retriever")
app.add_typer(rubric, name="rubric")
app.command("consolidate")(consolidate_pool)

Team = Annotated[str, typer.Option("--team", envvar="MNEME_TEAM", help="The team that owns the pools.")]
Pools = Annotated[str, typer.Option("--pools", help="domain: one pool per domain; single: one pool for all.")]
Shots = Annotated[
    int, typer.Option("--shots", "-k", min=0, max=3, help="Number of pairs that are shown as examples.")
]
Threshold = Annotated[
    int, typer.Option("--threshold", min=0, max=100, help="A pair is stored if its score is above this.")
]
Learning = Annotated[
    str,
    typer.Option(
        "--learning",
        help="What is trained: projection (a matrix on the embedder), encoder (a whole encoder) or reranker.",
    ),
]
PoolName = Annotated[str, typer.Option("--pool", help="The pool: a domain, or single_pool.")]
PairKey = Annotated[str, typer.Argument(help="A pair's key, or its first letters.")]
DomainName = Annotated[str, typer.Argument(help="A domain, or single_pool.")]
Candidates = Annotated[
    int, typer.Option("--candidates", min=2, max=100, help="n: pairs that BM25 proposes for grading.")
]
Labels = Annotated[int, typer.Option("--labels", min=2, max=100, help="v: half useful, half not, at most.")]
Retrieval = Annotated[
    str, typer.Option("--retrieval", help="How examples are found: dense, hybrid (words added) or bm25.")
]
Diversity = Annotated[
    float, typer.Option("--diversity", min=0, max=1, help="How much examples are to differ; 0: not at all.")
]
AnswererOf = Annotated[
    list[str],
    typer.Option("--answerer-of", help="AGENT=MODEL: another model for this agent; may be repeated."),
]
Scoring = Annotated[
    str,
    typer.Option(
        "--scoring", help="criteria (points for each), or printed (one number; rubric and prompt of A.1)."
    ),
]
Stored = Annotated[
    str,
    typer.Option("--stored", help="Kept with an answer: question, or prompt (the whole, with its examples)."),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of the training.")]


def _context(agents: str, roles: dict[str, str], **more: Any) -> dict[str, Any]:
    return {role: who or agents for role, who in roles.items()} | more


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="What the agent should write.")],
    agent: Annotated[
        str, typer.Option("--agent", help="A shipped agent, one of yours, or an agent's YAML file.")
    ],
    team: Team = "local",
    pools: Pools = "domain",
    shots: Shots = 3,
    threshold: Threshold = 70,
    agents: Agents = "auto",
    answerer: Role = "",
    scorer: Role = "",
    grader: Role = "",
    learning: Learning = "projection",
    candidates: Candidates = 12,
    labels: Labels = 6,
    retrieval: Retrieval = "dense",
    diversity: Diversity = 0.0,
    answerer_of: AnswererOf = [],  # noqa: B006 (typer makes a new list of it)
    scoring: Scoring = "criteria",
    stored: Stored = "question",
    seed: Seed = 0,
    thread: Annotated[
        str,
        typer.Option(
            "--thread", "-t", help="Name of a conversation; earlier turns are stored with the pair."
        ),
    ] = "",
    train: Annotated[bool, typer.Option(help="Train the retriever on the stored pair.")] = True,
    as_json: Json = False,
) -> None:
    """Ask an agent: it sees similar pairs as examples; a good answer is added to the pool."""
    from mneme.cli.sharing import share as run

    roles = {"answerer": answerer, "scorer": scorer, "grader": grader}
    context = _context(agents, roles, agent=run.agent_text(agent), team=team, pools=pools, shots=shots)
    context |= {"threshold": threshold, "learning": learning, "seed": seed, "candidates": candidates}
    context |= {"labels": labels, "retrieval": retrieval, "diversity": diversity, "scoring": scoring}
    context |= {"stored": stored, "answerers": ", ".join(answerer_of)}
    run_command(run.ask(question, context, thread, train, as_json))


@app.command()
def grow(
    domain: Annotated[str, typer.Option("--domain", help="The domain whose agents ask each other.")],
    file: Annotated[
        Path | None,
        typer.Option("--from", help='Standard answers, JSON Lines: {"agent": "sonnet", "answer": "…"}.'),
    ] = None,
    budget: Annotated[
        int,
        typer.Option(
            "--budget",
            min=1,
            help="At most this many model calls for asking, answering and scoring (grading is not counted).",
        ),
    ] = 100,
    until: Annotated[
        int, typer.Option("--until", min=0, help="Pairs at which the pool is large enough; 0: no bound.")
    ] = 0,
    asked: Annotated[
        str,
        typer.Option(
            "--asked", help="Who answers a question: own (the agent that asked) or domain (all agents)."
        ),
    ] = "own",
    name: Annotated[
        str, typer.Option("--id", help="The run's id; the id of a killed run continues it.")
    ] = "",
    agent: Annotated[
        str,
        typer.Option("--agent", help="One more agent beside the domain's and yours: its name or YAML file."),
    ] = "",
    team: Team = "local",
    pools: Pools = "domain",
    shots: Shots = 3,
    threshold: Threshold = 70,
    agents: Agents = "auto",
    answerer: Role = "",
    scorer: Role = "",
    grader: Role = "",
    learning: Learning = "projection",
    candidates: Candidates = 12,
    labels: Labels = 6,
    retrieval: Retrieval = "dense",
    diversity: Diversity = 0.0,
    answerer_of: AnswererOf = [],  # noqa: B006 (typer makes a new list of it)
    scoring: Scoring = "criteria",
    stored: Stored = "question",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Grow a pool: agents write questions to standard answers and answer them."""
    from mneme.cli.sharing import share as run

    roles = {"answerer": answerer, "scorer": scorer, "grader": grader}
    members = run.members_text(domain, agent)
    context = _context(agents, roles, agent=members, team=team, pools=pools, shots=shots)
    context |= {"threshold": threshold, "learning": learning, "seed": seed}
    context |= {"budget": budget, "until": until, "asked": asked}
    context |= {"candidates": candidates, "labels": labels, "retrieval": retrieval, "diversity": diversity}
    context |= {"scoring": scoring, "stored": stored, "answerers": ", ".join(answerer_of)}
    run_command(run.grow(domain, file, name, context, as_json))


@app.command()
def rate(
    key: PairKey,
    pool: PoolName,
    up: Annotated[bool, typer.Option("--up/--down", help="Whether the pair is good.")] = True,
    reason: Reason = "rated on the command line",
    team: Team = "local",
    as_json: Json = False,
) -> None:
    """Rate a pair; your thumb enters its score."""
    from mneme.cli.sharing import pools as run

    run_command(run.rate(team, pool, key, up, reason, as_json))


@agents_app.command("new")
def new_agent(
    name: Annotated[str, typer.Argument(help="Its short name: small letters, digits and _.")],
    file: Annotated[Path | None, typer.Option("--file", help="A YAML file that describes it.")] = None,
    does: Annotated[str, typer.Option("--does", help="What it writes, as an instruction to it.")] = "",
    questions: Annotated[str, typer.Option("--questions", help="What its questions look like.")] = "",
    domain: Annotated[str, typer.Option("--domain", help="Whose pool and rubric; default: its own.")] = "",
    title: Annotated[str, typer.Option("--title", help="Its name for people.")] = "",
    language: Annotated[str, typer.Option("--language", help="Of its answers, by ISO 639.")] = "",
    form: Annotated[str, typer.Option("--form", help="A check of form, of a shipped agent.")] = "",
    replace: Annotated[bool, typer.Option("--replace", help="In place of the one of this name.")] = False,
    agents: Agents = "auto",
    team: Team = "local",
    as_json: Json = False,
) -> None:
    """Make an agent of your own; with its name alone, write a file to fill in."""
    from mneme.cli.sharing import agent as run

    fields = {"does": does, "questions": questions, "domain": domain, "title": title, "language": language}
    run_command(run.new(name, file, fields | {"form": form}, replace, team, agents, as_json))


@agents_app.command("list")
def list_agents(as_json: Json = False) -> None:
    """List the shipped agents and yours."""
    from mneme.cli.sharing import agent as run

    run.list_(as_json)


@agents_app.command("fields")
def agent_fields() -> None:
    """Say what an agent's file holds, with an example."""
    from mneme.cli.sharing import agent as run

    run.fields()


@pool.command("list")
def list_pool(
    pool: PoolName = "",
    agent: Annotated[str, typer.Option("--agent", help="Only pairs of this agent.")] = "",
    team: Team = "local",
    limit: Limit = 100,
    as_json: Json = False,
) -> None:
    """List the pools, or the pairs of one."""
    from mneme.cli.sharing import pools as run

    run_command(run.list_(team, pool, agent, limit, as_json))


@pool.command("search")
def search_pool(
    question: Annotated[str, typer.Argument(help="What is to be answered.")],
    pool: PoolName,
    team: Team = "local",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100, help="Show at most this many.")] = 5,
    as_json: Json = False,
) -> None:
    """Show the pairs that would be used to answer a question, the best first."""
    from mneme.cli.sharing import pools as run

    run_command(run.search(team, pool, question, limit, as_json))


@pool.command("show")
def show_pair(key: PairKey, pool: PoolName, team: Team = "local", as_json: Json = False) -> None:
    """Show a pair with its earlier turns and its history."""
    from mneme.cli.sharing import pools as run

    run_command(run.show(team, pool, key, as_json))


@pool.command("export")
def export_pool(
    pool: PoolName,
    file: Annotated[Path, typer.Argument(help="Where to write; `-` writes to stdout.")] = Path("-"),
    team: Team = "local",
    as_json: Json = False,
) -> None:
    """Write a pool as JSON Lines."""
    from mneme.cli.sharing import pools as run

    run_command(run.export(team, pool, file, as_json))


@pool.command("import")
def import_pool(
    file: Annotated[Path | None, typer.Argument(help="JSON Lines; `-` reads stdin.")] = None,
    pool: PoolName = "",
    agent: Annotated[
        str, typer.Option("--agent", help="The agent of lines that name none: its name or YAML file.")
    ] = "",
    shipped: Annotated[
        bool, typer.Option("--shipped", help="Import the pairs that come with Mneme.")
    ] = False,
    team: Team = "local",
    as_json: Json = False,
) -> None:
    """Import pairs; a broken line is reported, and the others are imported."""
    from mneme.cli.sharing import pools as run

    run_command(run.import_(team, pool, file, agent, shipped, as_json))


@pool.command("remove")
def remove_pair(
    key: PairKey,
    pool: PoolName,
    for_good: Annotated[
        bool, typer.Option("--forget", help="Erase it with its history; this cannot be undone.")
    ] = False,
    reason: Reason = "decided on the command line",
    team: Team = "local",
    as_json: Json = False,
) -> None:
    """Remove a pair from retrieval."""
    from mneme.cli.sharing import pools as run

    run_command(run.remove(team, pool, key, reason, for_good, as_json))


@retriever.command("status")
def retriever_status(pool: PoolName = "", team: Team = "local", as_json: Json = False) -> None:
    """Show each version: its training data, loss and recall, and why it was accepted or not."""
    from mneme.cli.sharing import retriever as run

    run_command(run.status(team, pool, as_json))


@retriever.command("train")
def train_retriever(
    pool: PoolName,
    team: Team = "local",
    agents: Agents = "auto",
    grader: Role = "",
    learning: Learning = "projection",
    candidates: Candidates = 12,
    labels: Labels = 6,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Train on the pairs that are new since the last training."""
    from mneme.cli.sharing import retriever as run

    context = _context(agents, {"grader": grader}, team=team, learning=learning, seed=seed)
    context |= {"candidates": candidates, "labels": labels}
    run_command(run.train(pool, context, as_json))


@retriever.command("rollback")
def roll_back_retriever(
    pool: PoolName,
    to: Annotated[
        int | None,
        typer.Option(
            "--to", min=0, help="The version; 0: the untrained embedder. Default: the previous one."
        ),
    ] = None,
    reason: Reason = "decided on the command line",
    team: Team = "local",
    as_json: Json = False,
) -> None:
    """Go back to an earlier version."""
    from mneme.cli.sharing import retriever as run

    run_command(run.rollback(team, pool, to, reason, as_json))


@rubric.command("list")
def list_rubrics(team: Team = "local", as_json: Json = False) -> None:
    """List each domain's current rubric."""
    from mneme.cli.sharing import rubric as run

    run_command(run.list_(team, as_json))


@rubric.command("show")
def show_rubric(
    domain: DomainName,
    version: Annotated[int | None, typer.Option("--version", min=0, help="0: the shipped one.")] = None,
    team: Team = "local",
    as_json: Json = False,
) -> None:
    """Show a domain's rubric."""
    from mneme.cli.sharing import rubric as run

    run_command(run.show(team, domain, version, as_json))


@rubric.command("design")
def design_rubric(
    domain: DomainName,
    tasks: Annotated[
        list[str] | None,
        typer.Option(
            "--task", help="For a new domain without agents of yours: what is written in it; repeatable."
        ),
    ] = None,
    wishes: Annotated[
        str, typer.Option("--wishes", help="What the rubric should measure, in your words.")
    ] = "",
    agents: Agents = "auto",
    team: Team = "local",
    as_json: Json = False,
) -> None:
    """Draft a rubric; it waits for your review."""
    from mneme.cli.sharing import rubric as run

    run_command(run.design(domain, tasks or [], wishes, {"team": team, "designer": agents}, as_json))


@rubric.command("review")
def review_rubric(
    domain: DomainName,
    approve: Annotated[bool, typer.Option("--approve", help="Freeze the draft as the next version.")] = False,
    file: Annotated[Path | None, typer.Option("--file", help="Freeze this YAML rubric instead.")] = None,
    wishes: Annotated[str, typer.Option("--wishes", help="Write a new draft with these wishes.")] = "",
    reject: Annotated[bool, typer.Option("--reject", help="Reject the draft.")] = False,
    reason: Reason = "decided on the command line",
    agents: Agents = "auto",
    team: Team = "local",
    as_json: Json = False,
) -> None:
    """Approve, change or reject the draft."""
    from mneme.cli.sharing import rubric as run

    decision = run.decision_of(approve, file, wishes, reject, reason)
    run_command(run.review(domain, decision, {"team": team, "designer": agents}, as_json))


@rubric.command("freeze")
def freeze_rubric(
    file: Annotated[Path, typer.Argument(help="A rubric in YAML.")],
    reason: Reason = "decided on the command line",
    team: Team = "local",
    as_json: Json = False,
) -> None:
    """Freeze a rubric of your own as the next version."""
    from mneme.cli.sharing import rubric as run

    run_command(run.freeze(team, file, reason, as_json))
