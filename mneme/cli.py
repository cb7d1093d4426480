"""The command line. Commands are declared here and live in the modules that they import when run.

Nothing heavy is imported at the top: `mneme --help` answers at once.
"""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from mneme.commands import household as household_commands
from mneme.commands import share
from mneme.commands.discuss import discuss
from mneme.commands.options import Json, Key, Limit, Reason, User, run_command
from mneme.commands.pddl import pddl
from mneme.errors import MnemeError

app = typer.Typer(
    name="mneme",
    help="Memory for teams of language-model agents, on your own machine.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
memories = typer.Typer(no_args_is_help=True, help="Look at, search and change what is remembered.")
evaluate = typer.Typer(no_args_is_help=True, help="Regenerate the result tables.")
users = typer.Typer(no_args_is_help=True, help="Who may use the server, with MNEME_AUTH.")
cards = typer.Typer(no_args_is_help=True, help="Look at, search and change a team's knowledge cards.")
disputes = typer.Typer(no_args_is_help=True, help="Findings against verified cards: test and decide them.")
app.add_typer(memories, name="memories")
app.add_typer(cards, name="cards")
app.add_typer(disputes, name="disputes")
app.add_typer(household_commands.app, name="household")
app.add_typer(pddl, name="pddl")
app.add_typer(discuss, name="discuss")
app.add_typer(share.app, name="share")
app.add_typer(evaluate, name="eval")
app.add_typer(users, name="users")


def main() -> None:
    """Run the command line; a failure is one line and a hint, with a non-zero exit status."""
    try:
        app()
    except MnemeError as error:
        _fail(error)
    except OSError as error:
        _fail(MnemeError(f"The system refused: {error}.", "See `mneme doctor`."))
    except Exception as bug:  # a user gets one line, never a traceback
        if os.environ.get("MNEME_TRACEBACK"):
            raise
        _fail(MnemeError(f"Unexpected {type(bug).__name__}: {bug}", "MNEME_TRACEBACK=1 shows where."))


def _fail(error: MnemeError) -> None:
    from mneme.show import print_error

    print_error(error, as_json="--json" in sys.argv)
    sys.exit(1)


Chatbot = Annotated[
    str, typer.Option("--chatbot", envvar="MNEME_CHATBOT", help="Who replies: auto, rules, ollama:MODEL, …")
]
MemoryAgent = Annotated[
    str, typer.Option("--memory-agent", envvar="MNEME_MEMORY_AGENT", help="Who decides what is remembered.")
]


@app.command()
def chat(
    user: User = "local",
    thread: Annotated[str, typer.Option("--thread", "-t", help="Name of the conversation.")] = "main",
    chatbot: Chatbot = "auto",
    memory_agent: MemoryAgent = "auto",
    as_json: Json = False,
) -> None:
    """Talk; what you say is remembered in the background (/memories /history /forget /undo /quit)."""
    from mneme.chat import chat

    run_command(chat(user, thread, {"chatbot": chatbot, "memory_agent": memory_agent}, as_json))


@app.command()
def remember(
    file: Annotated[Path, typer.Argument(help="A conversation: JSON Lines or plain text; `-` reads stdin.")],
    user: User = "local",
    memory_agent: MemoryAgent = "auto",
    as_json: Json = False,
) -> None:
    """Remember a whole conversation file; run it again to go on where it stopped."""
    from mneme.remember import remember

    run_command(remember(file, user, {"memory_agent": memory_agent}, as_json))


@memories.command("list")
def list_memories(
    user: User = "local",
    limit: Limit = 100,
    retired: Annotated[bool, typer.Option("--retired", help="Include what was retired.")] = False,
    as_json: Json = False,
) -> None:
    """List what is remembered, in the order in which it was learned."""
    from mneme import memories as run

    run_command(run.list_(user, limit, retired, as_json))


@memories.command()
def search(
    query: Annotated[str, typer.Argument(help="Words to search by.")],
    user: User = "local",
    limit: Limit = 10,
    mode: Annotated[str, typer.Option(help="dense or hybrid.")] = "hybrid",
    as_json: Json = False,
) -> None:
    """Search by meaning and by words."""
    from mneme import memories as run

    run_command(run.search(user, query, limit, mode, as_json))


@memories.command()
def show(key: Key, user: User = "local", as_json: Json = False) -> None:
    """Show a memory with all that is known about it."""
    from mneme import memories as run

    run_command(run.show(user, key, as_json))


@memories.command()
def history(key: Key, user: User = "local", as_json: Json = False) -> None:
    """Show every version of a memory: what changed, when, why, and who decided."""
    from mneme import memories as run

    run_command(run.history(user, key, as_json))


@memories.command()
def diff(
    key: Key,
    older: Annotated[int, typer.Argument(help="A version's number.")],
    newer: Annotated[int, typer.Argument(help="A later version's number.")],
    user: User = "local",
    as_json: Json = False,
) -> None:
    """Show what changed between two versions."""
    from mneme import memories as run

    run_command(run.diff(user, key, older, newer, as_json))


@memories.command("as-of")
def as_of(
    time: Annotated[str, typer.Argument(help="A time, e.g. 2026-11-20 or 2026-11-20T09:30:00+01:00.")],
    user: User = "local",
    as_json: Json = False,
) -> None:
    """List what was remembered at a time in the past."""
    from mneme import memories as run

    run_command(run.as_of(user, time, as_json))


@memories.command()
def rollback(
    key: Key,
    version: Annotated[int, typer.Argument(help="The version to go back to.")],
    user: User = "local",
    reason: Reason = "asked for on the command line",
    as_json: Json = False,
) -> None:
    """Go back to an earlier version; the history keeps both."""
    from mneme import memories as run

    run_command(run.rollback(user, key, version, reason, as_json))


@memories.command()
def undo(user: User = "local", as_json: Json = False) -> None:
    """Take back the last change."""
    from mneme import memories as run

    run_command(run.undo(user, as_json))


@memories.command()
def forget(
    key: Annotated[str, typer.Argument(help="A memory's key, or enough of its beginning.")] = "",
    everything: Annotated[bool, typer.Option("--all", help="Forget all of this user's memories.")] = False,
    user: User = "local",
    reason: Reason = "asked for on the command line",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Erase a memory for good, with its history and the messages that it came from."""
    from mneme import memories as run

    run_command(run.forget(user, key, everything, reason, yes, as_json))


@memories.command("export")
def export(
    file: Annotated[Path, typer.Argument(help="Where to write; `-` writes to stdout.")] = Path("-"),
    user: User = "local",
    as_json: Json = False,
) -> None:
    """Write all memories with their whole history as JSON Lines."""
    from mneme import memories as run

    run_command(run.export(user, file, as_json))


@memories.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="An exported file; `-` reads stdin.")],
    user: User = "local",
    as_json: Json = False,
) -> None:
    """Read exported memories; what is there already stays as it is."""
    from mneme import memories as run

    run_command(run.import_(user, file, as_json))


@memories.command()
def reembed(as_json: Json = False) -> None:
    """Compute every vector anew with the embedder that the settings name."""
    from mneme import memories as run

    run_command(run.reembed(as_json))


Team = Annotated[str, typer.Option("--team", envvar="MNEME_TEAM", help="Whose knowledge cards.")]
Agents = Annotated[
    str, typer.Option("--agents", envvar="MNEME_AGENTS", help="Who answers for all agents: auto, rules, …")
]
Agent = Annotated[str, typer.Option(help="Who answers for this agent; default: as --agents.")]
Rows = Annotated[int, typer.Option("--rows", min=100, help="Rows of the query-tuning database.")]


@app.command()
def learn(
    task: Annotated[str, typer.Argument(help="The task in words.")] = "",
    file: Annotated[Path | None, typer.Option("--file", help="A YAML list of tasks.")] = None,
    suite: Annotated[str, typer.Option("--suite", help="Generated tasks: sql_tuning.")] = "",
    count: Annotated[int, typer.Option("--count", help="How many tasks of the suite.")] = 8,
    seed: Annotated[int, typer.Option("--seed", help="Which tasks of the suite.")] = 1,
    query: Annotated[str, typer.Option("--query", help="The slow query, to be run and measured.")] = "",
    schema: Annotated[str, typer.Option("--schema", help="The schema of the query's database.")] = "",
    task_id: Annotated[
        str, typer.Option("--id", help="The task's id; that of a killed run resumes it.")
    ] = "",
    team: Team = "local",
    agents: Agents = "auto",
    researcher: Agent = "",
    devils_advocate: Agent = "",
    leader: Agent = "",
    monitor: Agent = "",
    recall: Annotated[int, typer.Option("--recall", min=0, max=20, help="Cards retrieved; 0: none.")] = 5,
    rows: Rows = 60_000,
    as_json: Json = False,
) -> None:
    """Solve a task as a team that learns: draft, challenge, patch, verify, decide, compile."""
    from mneme import learn as run

    roles = {
        "researcher": researcher,
        "devils_advocate": devils_advocate,
        "leader": leader,
        "monitor": monitor,
    }
    context = {role: who or agents for role, who in roles.items()} | {
        "team": team,
        "recall": recall,
        "rows": rows,
    }
    given = {"query": query, "schema": schema, "id": task_id}
    where = {name: value for name, value in given.items() if value}
    run_command(run.learn(task, file, suite, run.size_of(count, seed), where, context, as_json))


CardId = Annotated[str, typer.Argument(help="A card's id, or enough of its beginning.")]


@cards.command("list")
def list_cards(
    team: Team = "local",
    status: Annotated[str, typer.Option("--status", help="Only cards of this status.")] = "",
    limit: Limit = 100,
    as_json: Json = False,
) -> None:
    """List the cards, in the order in which they were first learned."""
    from mneme import cards as run

    run_command(run.list_(team, status, limit, as_json))


@cards.command("search")
def search_cards(
    task: Annotated[str, typer.Argument(help="A task in words.")],
    team: Team = "local",
    limit: Limit = 5,
    as_json: Json = False,
) -> None:
    """Show which cards a task would be given, and the parts of their scores."""
    from mneme import cards as run

    run_command(run.search(team, task, limit, as_json))


@cards.command("show")
def show_card(card: CardId, team: Team = "local", as_json: Json = False) -> None:
    """Show a card in its YAML form."""
    from mneme import cards as run

    run_command(run.show(team, card, as_json))


@cards.command("history")
def card_history(card: CardId, team: Team = "local", as_json: Json = False) -> None:
    """Show every version of a card: what changed, why, and who decided."""
    from mneme import cards as run

    run_command(run.history(team, card, as_json))


@cards.command("rollback")
def rollback_card(
    card: CardId,
    version: Annotated[int, typer.Argument(help="The version to go back to.")],
    team: Team = "local",
    reason: Reason = "asked for on the command line",
    as_json: Json = False,
) -> None:
    """Go back to an earlier version; the history keeps both."""
    from mneme import cards as run

    run_command(run.rollback(team, card, version, reason, as_json))


@cards.command("deprecate")
def deprecate_card(
    card: CardId, team: Team = "local", reason: Reason = "a person's word", as_json: Json = False
) -> None:
    """Take a card out of retrieval; the devil's advocate still sees it."""
    from mneme import cards as run

    run_command(run.deprecate(team, card, reason, as_json))


@cards.command("restore")
def restore_card(
    card: CardId, team: Team = "local", reason: Reason = "a person's word", as_json: Json = False
) -> None:
    """Bring a deprecated or archived card back."""
    from mneme import cards as run

    run_command(run.restore(team, card, reason, as_json))


@cards.command("promote")
def promote_card(
    card: CardId, team: Team = "local", reason: Reason = "a person's word", as_json: Json = False
) -> None:
    """Approve a provisional card as verified; it still needs its successes."""
    from mneme import cards as run

    run_command(run.promote(team, card, reason, as_json))


@cards.command("export")
def export_cards(
    file: Annotated[Path, typer.Argument(help="Where to write; `-` writes to stdout.")] = Path("-"),
    team: Team = "local",
    versions: Annotated[bool, typer.Option("--history", help="With every version of each card.")] = False,
    as_json: Json = False,
) -> None:
    """Write all cards as YAML."""
    from mneme import cards as run

    run_command(run.export(team, file, versions, as_json))


@cards.command("import")
def import_cards(
    file: Annotated[Path, typer.Argument(help="A YAML file of cards; `-` reads stdin.")],
    team: Team = "local",
    as_json: Json = False,
) -> None:
    """Read cards from YAML; invalid YAML is refused with the field's path, and nothing is stored."""
    from mneme import cards as run

    run_command(run.import_(team, file, as_json))


@cards.command("metrics")
def card_metrics(team: Team = "local", as_json: Json = False) -> None:
    """Compute every metric of the knowledge base; exit with 1 where an alert is critical."""
    from mneme import cards as run

    run_command(run.metrics(team, as_json))


DisputeId = Annotated[str, typer.Argument(help="A dispute's id, or enough of its beginning.")]


@disputes.command("list")
def list_disputes(
    team: Team = "local",
    status: Annotated[str, typer.Option("--status", help="open, escalated or resolved.")] = "",
    as_json: Json = False,
) -> None:
    """List the disputes, oldest first."""
    from mneme import disputes as run

    run_command(run.list_(team, status, as_json))


@disputes.command("show")
def show_dispute(dispute: DisputeId, team: Team = "local", as_json: Json = False) -> None:
    """Show a dispute: both approaches, the trials, the resolution."""
    from mneme import disputes as run

    run_command(run.show(team, dispute, as_json))


@disputes.command("resolve")
def resolve_dispute(
    dispute: DisputeId,
    decision: Annotated[
        str, typer.Option("--decision", help="deprecate_old, keep_old or merge; without one, test it.")
    ] = "",
    reason: Reason = "a person's word",
    team: Team = "local",
    agents: Agents = "auto",
    rows: Rows = 60_000,
    as_json: Json = False,
) -> None:
    """Test both approaches on similar tasks, or decide on a person's word."""
    from mneme import disputes as run

    context = {"team": team, "devils_advocate": agents, "environment": "sql_tuning", "rows": rows}
    run_command(run.resolve(dispute, decision, reason, context, as_json))


@app.command()
def graph(
    name: Annotated[str, typer.Argument(help="A graph of langgraph.json, e.g. memory_agent.")],
    png: Annotated[Path | None, typer.Option("--png", help="Also draw it into this file.")] = None,
    as_json: Json = False,
) -> None:
    """Print a graph as Mermaid."""
    from mneme.draw import draw

    run_command(draw(name, png, as_json))


@app.command()
def doctor(as_json: Json = False) -> None:
    """Check models, embedder, store, checkpoints, disk and tracing; say what mends each problem."""
    from mneme.doctor import doctor

    run_command(doctor(as_json))


@app.command()
def demo(as_json: Json = False) -> None:
    """Run a conversation over two sessions and show what the memory agent does with it."""
    from mneme.demo import demo

    run_command(demo(as_json))


@users.command("add")
def add_user(name: str, as_json: Json = False) -> None:
    """Add a user and print the key, once."""
    from mneme import accounts

    run_command(accounts.add(name, as_json))


@users.command("remove")
def remove_user(name: str, as_json: Json = False) -> None:
    """Remove a user; what is remembered stays in the ledger."""
    from mneme import accounts

    run_command(accounts.remove(name, as_json))


@users.command("list")
def list_users(as_json: Json = False) -> None:
    """List the users."""
    from mneme import accounts

    run_command(accounts.list_(as_json))


Out = Annotated[Path, typer.Option("--out", help="Folder of raw results and plots.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Start anew instead of going on.")]
Data = Annotated[
    Path | None, typer.Option("--data", envvar="MNEME_DATA", help="The benchmark's file or folder.")
]
RUNS = Path("runs")


@evaluate.command()
def msc(
    data: Annotated[
        Path | None, typer.Option("--data", help="A set of labelled messages, JSON Lines.")
    ] = None,
    chatbot: Chatbot = "auto",
    memory_agent: MemoryAgent = "auto",
    versions: Annotated[
        list[int] | None, typer.Option("--version", help="Version of the memory agent: 1, 2, 3; repeatable.")
    ] = None,
    out: Out = RUNS,
    fresh: Fresh = False,
    as_json: Json = False,
) -> None:
    """Run the paper's table 1, and labelled messages upon memories scored per operation."""
    from mneme.evaluations import evaluate as run

    roles = {"chatbot": chatbot, "memory_agent": memory_agent, "versions": versions}
    run_command(run("msc", roles | {"data": data, "out": out, "fresh": fresh}, as_json))


@evaluate.command("compound_learning")
def compound_learning(
    tasks: Annotated[int | None, typer.Option("--tasks", min=1, help="Tasks in each order.")] = None,
    seeds: Annotated[list[int] | None, typer.Option("--seed", help="Order of tasks; repeatable.")] = None,
    rows: Annotated[int | None, typer.Option("--rows", min=100, help="Rows of each database.")] = None,
    agents: Agents = "auto",
    quick: Annotated[bool, typer.Option("--quick", help="A short run: 12 tasks, small databases.")] = False,
    out: Out = RUNS,
    fresh: Fresh = False,
    as_json: Json = False,
) -> None:
    """Measure what a team's memory is worth: query tuning with and without, and the paper's story."""
    from mneme.evaluations import evaluate as run

    sizes = {"tasks": tasks, "seeds": seeds, "rows": rows, "quick": quick, "agents": agents}
    run_command(run("compound_learning", sizes | {"out": out, "fresh": fresh}, as_json))


@evaluate.command("memory_sharing")
def memory_sharing(
    data: Annotated[
        Path | None, typer.Option("--data", help="Your items: a folder of AGENT.jsonl, or one file.")
    ] = None,
    seeds: Annotated[list[int] | None, typer.Option("--seed", help="Seed of a split; repeatable.")] = None,
    agents: Agents = "auto",
    threshold: Annotated[
        int | None, typer.Option("--threshold", min=0, max=99, help="Store pairs that score above this.")
    ] = None,
    learning: Annotated[
        str | None, typer.Option("--learning", help="What the retriever learns: projection, encoder.")
    ] = None,
    encoder: Annotated[
        Path | None, typer.Option("--encoder", help="Folder of BERTScore's encoder; default: the bundled.")
    ] = None,
    layers: Annotated[
        int | None, typer.Option("--layers", min=1, help="Layer of that encoder; default: 5.")
    ] = None,
    at_once: Annotated[
        int | None, typer.Option("--at-once", min=1, max=64, help="Test questions asked at the same time.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A short run: one seed, few items.")] = False,
    out: Out = RUNS,
    fresh: Fresh = False,
    as_json: Json = False,
) -> None:
    """Regenerate tables 1, 2 and figure 4 of Memory Sharing, and measure what its retriever is worth."""
    from mneme.evaluations import evaluate as run

    chosen = {"data": data, "seeds": seeds, "agents": agents, "threshold": threshold, "learning": learning}
    chosen |= {"encoder": encoder, "layers": layers, "at_once": at_once, "quick": quick}
    run_command(run("memory_sharing", chosen | {"out": out, "fresh": fresh}, as_json))


@evaluate.command()
def engine(
    sizes: Annotated[list[int] | None, typer.Option("--size", help="Number of records; repeatable.")] = None,
    out: Out = RUNS,
    fresh: Fresh = False,
    as_json: Json = False,
) -> None:
    """Compare the ledger with the engines under and beside it."""
    from mneme.evaluations import evaluate as run

    run_command(run("engine", {"sizes": sizes, "out": out, "fresh": fresh}, as_json))


@evaluate.command()
def household(
    episodes: Annotated[int | None, typer.Option("--episodes", min=1, help="Of each category.")] = None,
    agents: Annotated[list[int] | None, typer.Option("--agents", min=1, max=4, help="Repeatable.")] = None,
    methods: Annotated[
        list[str] | None, typer.Option("--method", help="MHP, LLM, CoELA, ProAgent, MiTa; repeatable.")
    ] = None,
    models: Annotated[
        list[str] | None, typer.Option("--model", help="Who answers; a second one: figure 3a; repeatable.")
    ] = None,
    manager_model: Annotated[str, typer.Option(help="Who answers for the manager; default: --model.")] = "",
    weak_model: Annotated[str, typer.Option(help="The weaker model of figure 3b.")] = "",
    data: Annotated[Path | None, typer.Option("--data", help="A folder of C-WAH episode files.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="The first episode's seed.")] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, help="Processes; default: one per core.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A short run: 3 episodes of each category.")] = False,
    out: Out = RUNS,
    fresh: Fresh = False,
    as_json: Json = False,
) -> None:
    """Run MiTa's tables 1 and 2 and figure 3: a team in a household, beside CoELA, ProAgent and MHP."""
    from mneme.evaluations import evaluate as run

    who = {"models": models, "manager_model": manager_model, "weak_model": weak_model}
    which = {"episodes": episodes, "agents": agents, "methods": methods, "data": data, "seed": seed}
    how = {"jobs": jobs, "quick": quick, "out": out, "fresh": fresh}
    run_command(run("household", who | which | how, as_json))


@evaluate.command("cards_scale")
def cards_scale(
    sizes: Annotated[list[int] | None, typer.Option("--size", help="Number of cards; repeatable.")] = None,
    out: Out = RUNS,
    fresh: Fresh = False,
    as_json: Json = False,
) -> None:
    """Measure retrieval from very many knowledge cards, flat and by clusters."""
    from mneme.evaluations import evaluate as run

    run_command(run("cards_scale", {"sizes": sizes, "out": out, "fresh": fresh}, as_json))


@evaluate.command("retriever_speed")
def retriever_speed(
    sizes: Annotated[list[int] | None, typer.Option("--size", help="Number of memories; repeatable.")] = None,
    out: Out = RUNS,
    fresh: Fresh = False,
    as_json: Json = False,
) -> None:
    """Measure a training step of the retriever in large pools, and whether answers wait for it."""
    from mneme.evaluations import evaluate as run

    run_command(run("retriever_speed", {"sizes": sizes, "out": out, "fresh": fresh}, as_json))


@evaluate.command()
def locomo(
    data: Data = None, chatbot: Chatbot = "auto", out: Out = RUNS, fresh: Fresh = False, as_json: Json = False
) -> None:
    """Measure evidence recall on LoCoMo, and answers where a language model gives them."""
    from mneme.evaluations import evaluate as run

    run_command(run("locomo", {"data": data, "chatbot": chatbot, "out": out, "fresh": fresh}, as_json))


@evaluate.command()
def latency(
    trials: Annotated[int | None, typer.Option("--trials", help="Chats at each load.")] = None,
    out: Out = RUNS,
    fresh: Fresh = False,
    as_json: Json = False,
) -> None:
    """Measure the time to the first token under background load, against a stand-in for Ollama."""
    from mneme.evaluations import evaluate as run

    run_command(run("latency", {"trials": trials, "out": out, "fresh": fresh}, as_json))


@evaluate.command("pipeline_design")
def pipeline_design(
    runs: Annotated[int | None, typer.Option("--runs", help="Discussions in each arm.")] = None,
    context_tokens: Annotated[
        int | None, typer.Option("--context-tokens", help="Tokens of task, memory and turns.")
    ] = None,
    sizes: Annotated[
        list[int] | None, typer.Option("--size", help="Another size of the context; repeatable.")
    ] = None,
    agents: Agents = "auto",
    judge: Annotated[str, typer.Option("--judge", help="Who judges; default: as --agents.")] = "",
    team: Annotated[str | None, typer.Option("--team", help="A team's name or file.")] = None,
    task: Annotated[Path | None, typer.Option("--task", help="Another task than the case study's.")] = None,
    out: Out = RUNS,
    fresh: Fresh = False,
    quick: Annotated[bool, typer.Option("--quick", help="Two discussions in each arm, one size.")] = False,
    as_json: Json = False,
) -> None:
    """Design a data pipeline with intrinsic memory and without: table 2, figure 3."""
    from mneme.evaluations import evaluate as run

    given = {"runs": runs, "context_tokens": context_tokens, "sizes": sizes, "team": team, "task": task}
    who = {"agents": agents, "judge": judge}
    run_command(run("pipeline_design", given | who | {"out": out, "fresh": fresh, "quick": quick}, as_json))


@evaluate.command("discussion_growth")
def discussion_growth(
    turns: Annotated[int | None, typer.Option("--turns", help="Turns of the discussion.")] = None,
    context_tokens: Annotated[
        int | None, typer.Option("--context-tokens", help="Tokens of context where it is bounded.")
    ] = None,
    agents: Agents = "auto",
    out: Out = RUNS,
    fresh: Fresh = False,
    as_json: Json = False,
) -> None:
    """Measure how context and checkpoints grow over a long discussion."""
    from mneme.evaluations import evaluate as run

    given = {"turns": turns, "context_tokens": context_tokens, "agents": agents}
    run_command(run("discussion_growth", given | {"out": out, "fresh": fresh}, as_json))


@evaluate.command("pddl")
def pddl_tasks(
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Folder of PDDL problems; default: MNEME_DATA's or own."),
    ] = None,
    problems: Annotated[
        int | None, typer.Option("--problems", min=1, help="So many of our own; default: 60.")
    ] = None,
    memories: Annotated[
        list[str] | None, typer.Option("--memory", help="Only these memories; repeatable.")
    ] = None,
    seeds: Annotated[
        list[int] | None, typer.Option("--seed", help="Problems of our own, and their order; repeatable.")
    ] = None,
    agents: Agents = "auto",
    window: Annotated[
        int | None, typer.Option("--window", help="Tokens of a context: 512 or more; default: 4096.")
    ] = None,
    memory_tokens: Annotated[
        int | None,
        typer.Option("--memory-tokens", help="Tokens of a structured memory: 100 or more; default: 700."),
    ] = None,
    tight_window: Annotated[
        int | None,
        typer.Option(
            "--tight-window", help="A second window, for none and intrinsic; default: 2500; 0: none."
        ),
    ] = None,
    tight_memory_tokens: Annotated[
        int | None,
        typer.Option("--tight-memory-tokens", help="As --memory-tokens, in that window; default: 400."),
    ] = None,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Processes at once.")] = None,
    out: Out = RUNS,
    fresh: Fresh = False,
    as_json: Json = False,
) -> None:
    """Compare eight memories of a team on planning tasks: rewards, tokens, token efficiency."""
    from mneme.evaluations import evaluate as run

    chosen = {"data": data, "problems": problems, "memories": memories, "seeds": seeds}
    rooms = {
        "window": window,
        "memory_tokens": memory_tokens,
        "tight_window": tight_window,
        "tight_memory_tokens": tight_memory_tokens,
    }
    how = {"workers": workers, "agents": agents, "out": out, "fresh": fresh}
    run_command(run("pddl", chosen | rooms | how, as_json))
