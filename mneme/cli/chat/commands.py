"""`mneme chat`, `mneme remember`, `mneme memories`, `mneme inbox` and `mneme demo`."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from mneme.cli.groups import Calls, group, options_of
from mneme.cli.options import Agents, Json, Reason, User, Yes, run_command

app = typer.Typer()
memories = group("List, search and change memories.")
app.add_typer(memories, name="memories")
inbox = group("Messages that wait to be remembered, and those that failed.")
app.add_typer(inbox, name="inbox")

MessageId = Annotated[str, typer.Argument(metavar="ID", help="A message's id, or its first letters.")]


@options_of(
    app,
    "chat",
    without="similar min_similarity retrieval compose_first window recall debounce reread",
    context="mneme.nodes.chat.context:ChatContext",
)
def chat(
    context: dict[str, Any],
    thread: Annotated[str, typer.Option("--thread", "-t", help="Name of the conversation.")] = "main",
    as_json: Json = False,
) -> None:
    """Chat; a memory agent remembers in the background (/memories /history /forget /undo /quit)."""
    from mneme.cli.chat.chat import chat

    run_command(chat(context.pop("user"), thread, context, as_json))


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


about_memories = partial(Calls, operations="mneme.api.memories:Memories", shows="mneme.cli.chat.memories")
about_memories(app, "")(
    "add",
    "add",
    "print_written",
    "Write a memory word for word, without the memory agent; show what it may contradict.",
)
call = about_memories(memories, "memories")
call("list", "list", "print_listed", "List memories, oldest first.", {"include_retired": "--retired"})
call(
    "search",
    "recall",
    "print_memories",
    "Search by meaning and by words.",
    {"mode": "--search"},
    searching=True,
)
call("update", "update", "print_written", "Replace the text of a memory; the history keeps the old one.")
call("show", "show", "print_memory", "Show a memory with all its fields.")
call(
    "history",
    "history",
    "print_history",
    "Show every version of a memory: what changed, when, why, and who decided.",
)
HISTORY = "mneme memories history {key}"
call("diff", "diff", "print_text", "Show what changed between two versions.", called="diff", versions=HISTORY)
call(
    "rollback",
    "rollback",
    "print_memory_line",
    "Go back to an earlier version; the history keeps both.",
    versions=HISTORY,
)
call("undo", "undo", "print_memory_line", "Take back the last change.")


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


call_inbox = Calls(inbox, "inbox", "mneme.api.inbox:Messages", "mneme.cli.chat.inbox")
call_inbox(
    "list",
    "list",
    "print_letters",
    "List the messages that wait, and those that were set aside after they failed too often.",
)
call_inbox(
    "show",
    "get",
    "print_letter",
    "Show a message, why it could not be remembered, and the model's last reply.",
)
call_inbox(
    "retry",
    "retry",
    "print_waiting",
    "Put a message that was set aside back into the inbox; the memory agent then tries it again.",
)


@inbox.command("drop")
def drop_message(message_id: MessageId, user: User = "local", as_json: Json = False) -> None:
    """Close a message without remembering it."""
    from mneme.cli.chat import inbox as run

    run_command(run.drop(user, message_id, as_json))


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
