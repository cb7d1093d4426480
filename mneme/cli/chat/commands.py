"""`mneme chat`, `mneme remember`, `mneme memories`, `mneme inbox` and `mneme demo`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from mneme.cli.options import Agents, Json, Limit, Reason, Role, User, Yes, run_command

app = typer.Typer()
memories = typer.Typer(no_args_is_help=True, help="List, search and change memories.")
app.add_typer(memories, name="memories")
inbox = typer.Typer(no_args_is_help=True, help="Messages that wait to be remembered, and those that failed.")
app.add_typer(inbox, name="inbox")

Key = Annotated[str, typer.Argument(help="A memory's key, or its first letters.")]
MessageId = Annotated[str, typer.Argument(metavar="ID", help="A message's id, or its first letters.")]

At = Annotated[str, typer.Option("--at", metavar="DATE", help="What held on this day (valid time).")]
AsOf = Annotated[
    str, typer.Option("--as-of", metavar="TIME", help="What was remembered at this time (recorded time).")
]
Since = Annotated[str, typer.Option(metavar="DATE", help="From when it holds: a day, month or year.")]
Until = Annotated[str, typer.Option(metavar="DATE", help="The last day, month or year in which it holds.")]
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
    agents: Agents = "auto",
    chatbot: Role = "",
    memory_agent: Role = "",
    search: Search = "blend",
    as_json: Json = False,
) -> None:
    """Chat; a memory agent remembers in the background (/memories /history /forget /undo /quit)."""
    from mneme.cli.chat.chat import chat

    roles = {"chatbot": chatbot or agents, "memory_agent": memory_agent or agents}
    run_command(chat(user, thread, {**roles, "search": search}, as_json))


@app.command()
def remember(
    source: Annotated[
        str,
        typer.Argument(
            metavar="TEXT|FILE",
            help="What the user said; or a file with a conversation: JSON Lines or plain text; `-` is stdin.",
        ),
    ],
    user: User = "local",
    agents: Agents = "auto",
    as_json: Json = False,
) -> None:
    """Remember a sentence or a whole conversation; the same command continues an interrupted run."""
    from mneme.cli.chat.remember import remember

    run_command(remember(source, user, {"memory_agent": agents}, as_json))


@app.command()
def add(
    text: Annotated[str, typer.Argument(help="The memory, word for word.")],
    since: Since = "",
    until: Until = "",
    user: User = "local",
    reason: Reason = "",
    as_json: Json = False,
) -> None:
    """Write a memory word for word, without the memory agent; show what it may contradict."""
    from mneme.cli.chat import memories as run

    run_command(run.add(user, text, since, until, reason, as_json))


@memories.command("list")
def list_memories(
    user: User = "local",
    limit: Limit = 100,
    retired: Annotated[bool, typer.Option("--retired", help="Include retired memories.")] = False,
    at: At = "",
    as_of: AsOf = "",
    as_json: Json = False,
) -> None:
    """List memories, oldest first."""
    from mneme.cli.chat import memories as run

    run_command(run.list_(user, limit, retired, at, as_of, as_json))


@memories.command()
def search(
    query: Annotated[str, typer.Argument(help="Words to search for.")],
    user: User = "local",
    limit: Limit = 10,
    mode: Search = "blend",
    at: At = "",
    as_of: AsOf = "",
    as_json: Json = False,
) -> None:
    """Search by meaning and by words."""
    from mneme.cli.chat import memories as run

    run_command(run.search(user, query, limit, mode, at, as_of, as_json))


@memories.command()
def update(
    key: Key,
    text: Annotated[str, typer.Argument(help="The new text, word for word.")],
    since: Annotated[
        str | None, typer.Option(metavar="DATE", help="From when it holds; default: as before.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="DATE", help="Until when it holds; default: as before.")
    ] = None,
    user: User = "local",
    reason: Reason = "",
    as_json: Json = False,
) -> None:
    """Replace the text of a memory; the history keeps the old one."""
    from mneme.cli.chat import memories as run

    run_command(run.update(user, key, text, since, until, reason, as_json))


@memories.command()
def reread(user: User = "local", agents: Agents = "auto", as_json: Json = False) -> None:
    """Let a model read again what was remembered without one; each change is a version with its reason."""
    from mneme.cli.chat import memories as run

    run_command(run.reread(user, agents, as_json))


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
