"""`mneme chat`, `mneme remember`, `mneme memories`, `mneme inbox` and `mneme demo`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from mneme.cli.options import Json, Limit, Reason, User, Yes, run_command

app = typer.Typer()
memories = typer.Typer(no_args_is_help=True, help="List, search and change memories.")
app.add_typer(memories, name="memories")
inbox = typer.Typer(no_args_is_help=True, help="Messages that wait to be remembered, and those that failed.")
app.add_typer(inbox, name="inbox")

Key = Annotated[str, typer.Argument(help="A memory's key, or its first letters.")]
MessageId = Annotated[str, typer.Argument(metavar="ID", help="A message's id, or its first letters.")]
Chatbot = Annotated[
    str,
    typer.Option(
        "--chatbot", envvar="MNEME_CHATBOT", help="Model that replies: auto, rules, ollama:MODEL, …"
    ),
]
MemoryAgent = Annotated[
    str,
    typer.Option(
        "--memory-agent",
        envvar="MNEME_MEMORY_AGENT",
        help="Model that decides what is remembered: auto, rules, …",
    ),
]
Search = Annotated[
    Literal["blend", "dense", "bm25", "hybrid"],
    typer.Option(
        "--search",
        help="blend: by meaning, words, names, dates and neighbouring messages; dense: by meaning; "
        "bm25: by words; hybrid: by the ranks of both.",
    ),
]


@app.command()
def chat(
    user: User = "local",
    thread: Annotated[str, typer.Option("--thread", "-t", help="Name of the conversation.")] = "main",
    chatbot: Chatbot = "auto",
    memory_agent: MemoryAgent = "auto",
    search: Search = "blend",
    as_json: Json = False,
) -> None:
    """Chat; a memory agent remembers in the background (/memories /history /forget /undo /quit)."""
    from mneme.cli.chat.chat import chat

    context = {"chatbot": chatbot, "memory_agent": memory_agent, "search": search}
    run_command(chat(user, thread, context, as_json))


@app.command()
def remember(
    file: Annotated[Path, typer.Argument(help="A conversation: JSON Lines or plain text; `-` reads stdin.")],
    user: User = "local",
    memory_agent: MemoryAgent = "auto",
    as_json: Json = False,
) -> None:
    """Remember a whole conversation; the same command continues an interrupted run."""
    from mneme.cli.chat.remember import remember

    run_command(remember(file, user, {"memory_agent": memory_agent}, as_json))


@memories.command("list")
def list_memories(
    user: User = "local",
    limit: Limit = 100,
    retired: Annotated[bool, typer.Option("--retired", help="Include retired memories.")] = False,
    as_json: Json = False,
) -> None:
    """List memories, oldest first."""
    from mneme.cli.chat import memories as run

    run_command(run.list_(user, limit, retired, as_json))


@memories.command()
def search(
    query: Annotated[str, typer.Argument(help="Words to search for.")],
    user: User = "local",
    limit: Limit = 10,
    mode: Search = "blend",
    as_json: Json = False,
) -> None:
    """Search by meaning and by words."""
    from mneme.cli.chat import memories as run

    run_command(run.search(user, query, limit, mode, as_json))


@memories.command()
def review(
    user: User = "local",
    accept: Annotated[
        str, typer.Option(metavar="KEY", help="Remove the flag from this memory: it is right.")
    ] = "",
    as_json: Json = False,
) -> None:
    """List the memories that a person should look at, and why."""
    from mneme.cli.chat import memories as run

    run_command(run.review(user, accept, as_json))


@inbox.command("list")
def list_inbox(user: User = "local", as_json: Json = False) -> None:
    """List the messages that wait, and those that were set aside after they failed too often."""
    from mneme.cli.chat import inbox as run

    run_command(run.list_(user, as_json))


@inbox.command("show")
def show_message(message_id: MessageId, user: User = "local", as_json: Json = False) -> None:
    """Show a message, why it could not be remembered, and the model's last reply."""
    from mneme.cli.chat import inbox as run

    run_command(run.show(user, message_id, as_json))


@inbox.command("retry")
def retry_message(message_id: MessageId, user: User = "local", as_json: Json = False) -> None:
    """Put a message that was set aside back into the inbox; the memory agent then tries it again."""
    from mneme.cli.chat import inbox as run

    run_command(run.retry(user, message_id, as_json))


@inbox.command("drop")
def drop_message(message_id: MessageId, user: User = "local", as_json: Json = False) -> None:
    """Close a message without remembering it."""
    from mneme.cli.chat import inbox as run

    run_command(run.drop(user, message_id, as_json))


@memories.command()
def show(key: Key, user: User = "local", as_json: Json = False) -> None:
    """Show a memory with all its fields."""
    from mneme.cli.chat import memories as run

    run_command(run.show(user, key, as_json))


@memories.command()
def history(key: Key, user: User = "local", as_json: Json = False) -> None:
    """Show every version of a memory: what changed, when, why, and who decided."""
    from mneme.cli.chat import memories as run

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
    from mneme.cli.chat import memories as run

    run_command(run.diff(user, key, older, newer, as_json))


@memories.command("as-of")
def as_of(
    time: Annotated[str, typer.Argument(help="A time, e.g. 2026-11-20 or 2026-11-20T09:30:00+01:00.")],
    user: User = "local",
    as_json: Json = False,
) -> None:
    """List what was remembered at a time in the past."""
    from mneme.cli.chat import memories as run

    run_command(run.as_of(user, time, as_json))


@memories.command()
def rollback(
    key: Key,
    version: Annotated[int, typer.Argument(help="The version to go back to.")],
    user: User = "local",
    reason: Reason = "requested on the command line",
    as_json: Json = False,
) -> None:
    """Go back to an earlier version; the history keeps both."""
    from mneme.cli.chat import memories as run

    run_command(run.rollback(user, key, version, reason, as_json))


@memories.command()
def undo(user: User = "local", as_json: Json = False) -> None:
    """Take back the last change."""
    from mneme.cli.chat import memories as run

    run_command(run.undo(user, as_json))


@memories.command()
def forget(
    key: Annotated[str, typer.Argument(help="A memory's key, or its first letters.")] = "",
    everything: Annotated[bool, typer.Option("--all", help="Forget all of this user's memories.")] = False,
    everything_of: Annotated[
        str,
        typer.Option(
            metavar="USER",
            help="Erase everything of this user: memories, inbox, threads. Cards and pools are the team's.",
        ),
    ] = "",
    with_threads: Annotated[
        bool, typer.Option("--with-threads", help="Delete the whole conversations that contain it.")
    ] = False,
    user: User = "local",
    reason: Reason = "requested on the command line",
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Erase a memory for good, with its history, the messages that it came from and the turns that repeat it.

    In conversations, this removes the text of each message that said it, of the reply to that message, and
    of replies that repeat it. It does not reach other messages that say the same in other words, traces sent
    to LangSmith, the model server's logs, exports and backups; backups that may contain it are listed.
    """
    from mneme.cli.chat import memories as run

    if everything_of:
        run_command(run.forget_user(everything_of, reason, yes, as_json))
    run_command(run.forget(user, key, everything, with_threads, reason, yes, as_json))


@memories.command("export")
def export(
    file: Annotated[Path, typer.Argument(help="Where to write; `-` writes to stdout.")] = Path("-"),
    user: User = "local",
    as_json: Json = False,
) -> None:
    """Write all memories with their whole history as JSON Lines."""
    from mneme.cli.chat import memories as run

    run_command(run.export(user, file, as_json))


@memories.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="An exported file; `-` reads stdin.")],
    user: User = "local",
    as_json: Json = False,
) -> None:
    """Import exported memories; those that exist already stay unchanged."""
    from mneme.cli.chat import memories as run

    run_command(run.import_(user, file, as_json))


@memories.command()
def reembed(as_json: Json = False) -> None:
    """Compute every vector again with the embedder of the settings."""
    from mneme.cli.chat import memories as run

    run_command(run.reembed(as_json))


@app.command()
def demo(as_json: Json = False) -> None:
    """Run a conversation over two sessions and show what the memory agent does with it."""
    from mneme.cli.chat.demo import demo

    run_command(demo(as_json))
