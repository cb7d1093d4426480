"""The command line. Commands are declared here and live in the modules that they import when run.

Nothing heavy is imported at the top: `mneme --help` answers at once.
"""

import asyncio
import os
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer

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
app.add_typer(memories, name="memories")
app.add_typer(evaluate, name="eval")
app.add_typer(users, name="users")

User = Annotated[str, typer.Option("--user", "-u", envvar="MNEME_USER", help="Whose memories.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON Lines instead of text.")]
Key = Annotated[str, typer.Argument(help="A memory's key, or enough of its beginning.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many.")]
Reason = Annotated[str, typer.Option("--reason", help="Why; kept in the history.")]


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


def _run(command: Coroutine[Any, Any, int | None]) -> None:
    """Run a command to its end and leave with its exit status."""
    try:
        status = asyncio.run(command)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    raise typer.Exit(status or 0)


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

    _run(chat(user, thread, {"chatbot": chatbot, "memory_agent": memory_agent}, as_json))


@app.command()
def remember(
    file: Annotated[Path, typer.Argument(help="A conversation: JSON Lines or plain text; `-` reads stdin.")],
    user: User = "local",
    memory_agent: MemoryAgent = "auto",
    as_json: Json = False,
) -> None:
    """Remember a whole conversation file; run it again to go on where it stopped."""
    from mneme.remember import remember

    _run(remember(file, user, {"memory_agent": memory_agent}, as_json))


@memories.command("list")
def list_memories(
    user: User = "local",
    limit: Limit = 100,
    retired: Annotated[bool, typer.Option("--retired", help="Include what was retired.")] = False,
    as_json: Json = False,
) -> None:
    """List what is remembered, in the order in which it was learned."""
    from mneme import memories as run

    _run(run.list_(user, limit, retired, as_json))


@memories.command()
def search(
    query: Annotated[str, typer.Argument(help="Words to search by.")],
    user: User = "local",
    limit: Limit = 10,
    mode: Annotated[str, typer.Option(help="dense, bm25 or hybrid.")] = "hybrid",
    as_json: Json = False,
) -> None:
    """Search by meaning and by words."""
    from mneme import memories as run

    _run(run.search(user, query, limit, mode, as_json))


@memories.command()
def show(key: Key, user: User = "local", as_json: Json = False) -> None:
    """Show a memory with all that is known about it."""
    from mneme import memories as run

    _run(run.show(user, key, as_json))


@memories.command()
def history(key: Key, user: User = "local", as_json: Json = False) -> None:
    """Show every version of a memory: what changed, when, why, and who decided."""
    from mneme import memories as run

    _run(run.history(user, key, as_json))


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

    _run(run.diff(user, key, older, newer, as_json))


@memories.command("as-of")
def as_of(
    time: Annotated[str, typer.Argument(help="A time, e.g. 2026-11-20 or 2026-11-20T09:30:00+01:00.")],
    user: User = "local",
    as_json: Json = False,
) -> None:
    """List what was remembered at a time in the past."""
    from mneme import memories as run

    _run(run.as_of(user, time, as_json))


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

    _run(run.rollback(user, key, version, reason, as_json))


@memories.command()
def undo(user: User = "local", as_json: Json = False) -> None:
    """Take back the last change."""
    from mneme import memories as run

    _run(run.undo(user, as_json))


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

    _run(run.forget(user, key, everything, reason, yes, as_json))


@memories.command("export")
def export(
    file: Annotated[Path, typer.Argument(help="Where to write; `-` writes to stdout.")] = Path("-"),
    user: User = "local",
    as_json: Json = False,
) -> None:
    """Write all memories with their whole history as JSON Lines."""
    from mneme import memories as run

    _run(run.export(user, file, as_json))


@memories.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="An exported file; `-` reads stdin.")],
    user: User = "local",
    as_json: Json = False,
) -> None:
    """Read exported memories; what is there already stays as it is."""
    from mneme import memories as run

    _run(run.import_(user, file, as_json))


@memories.command()
def reembed(as_json: Json = False) -> None:
    """Compute every vector anew with the embedder that the settings name."""
    from mneme import memories as run

    _run(run.reembed(as_json))


@app.command()
def graph(
    name: Annotated[str, typer.Argument(help="A graph of langgraph.json, e.g. memory_agent.")],
    png: Annotated[Path | None, typer.Option("--png", help="Also draw it into this file.")] = None,
    as_json: Json = False,
) -> None:
    """Print a graph as Mermaid."""
    from mneme.draw import draw

    _run(draw(name, png, as_json))


@app.command()
def doctor(as_json: Json = False) -> None:
    """Check models, embedder, store, checkpoints, disk and tracing; say what mends each problem."""
    from mneme.doctor import doctor

    _run(doctor(as_json))


@app.command()
def demo(as_json: Json = False) -> None:
    """Run a conversation over two sessions and show what the memory agent does with it."""
    from mneme.demo import demo

    _run(demo(as_json))


@users.command("add")
def add_user(name: str, as_json: Json = False) -> None:
    """Add a user and print the key, once."""
    from mneme import accounts

    _run(accounts.add(name, as_json))


@users.command("remove")
def remove_user(name: str, as_json: Json = False) -> None:
    """Remove a user; what is remembered stays in the ledger."""
    from mneme import accounts

    _run(accounts.remove(name, as_json))


@users.command("list")
def list_users(as_json: Json = False) -> None:
    """List the users."""
    from mneme import accounts

    _run(accounts.list_(as_json))


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
    _run(run("msc", roles | {"data": data, "out": out, "fresh": fresh}, as_json))


@evaluate.command()
def engine(
    sizes: Annotated[list[int] | None, typer.Option("--size", help="Number of records; repeatable.")] = None,
    out: Out = RUNS,
    fresh: Fresh = False,
    as_json: Json = False,
) -> None:
    """Compare the ledger with the engines under and beside it."""
    from mneme.evaluations import evaluate as run

    _run(run("engine", {"sizes": sizes, "out": out, "fresh": fresh}, as_json))


@evaluate.command("cards_scale")
def cards_scale(
    sizes: Annotated[list[int] | None, typer.Option("--size", help="Number of cards; repeatable.")] = None,
    out: Out = RUNS,
    fresh: Fresh = False,
    as_json: Json = False,
) -> None:
    """Measure retrieval from very many knowledge cards, flat and by clusters."""
    from mneme.evaluations import evaluate as run

    _run(run("cards_scale", {"sizes": sizes, "out": out, "fresh": fresh}, as_json))


@evaluate.command()
def locomo(
    data: Data = None, chatbot: Chatbot = "auto", out: Out = RUNS, fresh: Fresh = False, as_json: Json = False
) -> None:
    """Measure evidence recall on LoCoMo, and answers where a language model gives them."""
    from mneme.evaluations import evaluate as run

    _run(run("locomo", {"data": data, "chatbot": chatbot, "out": out, "fresh": fresh}, as_json))


@evaluate.command()
def latency(
    trials: Annotated[int | None, typer.Option("--trials", help="Chats at each load.")] = None,
    out: Out = RUNS,
    fresh: Fresh = False,
    as_json: Json = False,
) -> None:
    """Measure the time to the first token under background load, against a stand-in for Ollama."""
    from mneme.evaluations import evaluate as run

    _run(run("latency", {"trials": trials, "out": out, "fresh": fresh}, as_json))
