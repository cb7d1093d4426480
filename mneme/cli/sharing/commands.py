"""`mneme share …`: the commands of Memory Sharing."""

from pathlib import Path
from typing import Annotated, Any

import typer

from mneme.cli.groups import Calls, group, options_of
from mneme.cli.options import Agents, Json, Limit, Reason, Team, run_command

app = group("Agents that share one pool of prompt-answer pairs (Memory Sharing).")
pool = group("List, search, show, import, export and remove shared pairs.")
retriever = group("Show, train and roll back a pool's retriever.")
rubric = group("Show, draft, review and freeze the rubrics that score pairs.")
agents_app = group("Make and list agents of your own.")
app.add_typer(agents_app, name="agent")
app.add_typer(pool, name="pool")
app.add_typer(retriever, name="retriever")
app.add_typer(rubric, name="rubric")

PoolName = Annotated[str, typer.Option("--pool", help="The pool: a domain, or single_pool.")]
PairKey = Annotated[str, typer.Argument(help="A pair's key, or its first letters.")]
DomainName = Annotated[str, typer.Argument(help="A domain, or single_pool.")]
Answerer = Annotated[
    list[str],
    typer.Option(
        "--answerer",
        help="Who answers the questions; default: --agents. AGENT=MODEL: for this agent; may be repeated.",
    ),
]
CONTEXTS = "mneme.nodes.sharing.context"
OWN_PARAMETERS = "agent answerer answerers"
POOLS, PRINTING = "mneme.api.pools:Pools", "mneme.cli.sharing.pools"
OF_POOL = {"pool": "--pool"}


@options_of(app, "share ask", without=OWN_PARAMETERS, context=f"{CONTEXTS}:SharingContext")
def ask(
    question: Annotated[str, typer.Argument(help="What the agent should write.")],
    agent: Annotated[
        str, typer.Option("--agent", help="A shipped agent, one of yours, or an agent's YAML file.")
    ],
    context: dict[str, Any],
    agents: Agents = "auto",
    answerer: Answerer = [],  # noqa: B006  (typer makes a new list of it)
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

    context |= {"agent": run.agent_text(agent), **run.answerers_of(answerer, agents)}
    run_command(run.ask(question, context, thread, train, as_json))


@options_of(app, "share grow", without=f"{OWN_PARAMETERS} at_once laps", context=f"{CONTEXTS}:GrowthContext")
def grow(
    domain: Annotated[str, typer.Option("--domain", help="The domain whose agents ask each other.")],
    context: dict[str, Any],
    file: Annotated[
        Path | None,
        typer.Option("--from", help='Standard answers, JSON Lines: {"agent": "sonnet", "answer": "…"}.'),
    ] = None,
    name: Annotated[
        str, typer.Option("--id", help="The run's id; the id of a killed run continues it.")
    ] = "",
    agent: Annotated[
        str,
        typer.Option("--agent", help="One more agent beside the domain's and yours: its name or YAML file."),
    ] = "",
    agents: Agents = "auto",
    answerer: Answerer = [],  # noqa: B006  (typer makes a new list of it)
    as_json: Json = False,
) -> None:
    """Grow a pool: agents write questions to standard answers and answer them."""
    from mneme.cli.sharing import share as run

    context |= {"agent": run.members_text(domain, agent), **run.answerers_of(answerer, agents)}
    run_command(run.grow(domain, file, name, context, as_json))


@options_of(
    app,
    "share consolidate",
    {"served_base": "--ollama"},
    "pool successes recall",
    wanted="mneme.cli.learning.consolidation:Wanted",
    context="mneme.nodes.learning.consolidation.state:TuningContext",
)
def consolidate_pool(
    pool: PoolName,
    wanted: dict[str, Any],
    context: dict[str, Any],
    shots: Annotated[int, typer.Option("--shots", "-k", min=1, max=3, help="Examples of a question.")] = 3,
    as_json: Json = False,
) -> None:
    """Tune a model on a pool's good pairs; it answers where the answerer is auto, if it is not worse."""
    from mneme.cli.learning import consolidation as run

    run_command(run.run(wanted, context | {"pool": pool, "recall": shots}, as_json))


Calls(app, "share", POOLS, PRINTING)(
    "rate",
    "rate",
    "print_rated",
    "Rate a pair; your thumb enters its score.",
    {"up": "--up/--down", **OF_POOL},
)


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


Calls(pool, "share pool", POOLS, PRINTING)(
    "search",
    "search",
    "print_pairs",
    "Show the pairs that would be used to answer a question, the best first.",
    OF_POOL,
    searching=True,
)


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


@options_of(retriever, "share retriever train", without="pools agent", context=f"{CONTEXTS}:PoolContext")
def train_retriever(pool: PoolName, context: dict[str, Any], as_json: Json = False) -> None:
    """Train on the pairs that are new since the last training."""
    from mneme.cli.sharing import retriever as run

    run_command(run.train(pool, context, as_json))


Calls(retriever, "share retriever", POOLS, "mneme.cli.sharing.retriever")(
    "rollback", "rollback", "print_rolled_back", "Go back to an earlier version.", OF_POOL, told="rolled_back"
)


call = Calls(rubric, "share rubric", POOLS, "mneme.cli.sharing.rubric")
call("list", "rubrics", "print_rubrics", "List each domain's current rubric.")
call("show", "rubric", "print_frozen", "Show a domain's rubric.")


@options_of(rubric, "share rubric design", context=f"{CONTEXTS}:DesignContext")
def design_rubric(
    domain: DomainName,
    context: dict[str, Any],
    tasks: Annotated[
        list[str] | None,
        typer.Option(
            "--task", help="For a new domain without agents of yours: what is written in it; repeatable."
        ),
    ] = None,
    wishes: Annotated[
        str, typer.Option("--wishes", help="What the rubric should measure, in your words.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Draft a rubric; it waits for your review."""
    from mneme.cli.sharing import rubric as run

    run_command(run.design(domain, tasks or [], wishes, context, as_json))


@options_of(rubric, "share rubric review", context=f"{CONTEXTS}:DesignContext")
def review_rubric(
    domain: DomainName,
    context: dict[str, Any],
    approve: Annotated[bool, typer.Option("--approve", help="Freeze the draft as the next version.")] = False,
    file: Annotated[Path | None, typer.Option("--file", help="Freeze this YAML rubric instead.")] = None,
    wishes: Annotated[str, typer.Option("--wishes", help="Write a new draft with these wishes.")] = "",
    reject: Annotated[bool, typer.Option("--reject", help="Reject the draft.")] = False,
    reason: Reason = "decided on the command line",
    as_json: Json = False,
) -> None:
    """Approve, change or reject the draft."""
    from mneme.cli.sharing import rubric as run

    decision = run.decision_of(approve, file, wishes, reject, reason)
    run_command(run.review(domain, decision, context, as_json))


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
