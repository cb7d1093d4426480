"""`mneme import …`: bring in what other programs know of you."""

from pathlib import Path
from typing import Annotated

import typer

from mneme.cli.options import Agents, Json, User, run_command

app = typer.Typer(
    no_args_is_help=True,
    help="Import what other programs know about you; the same command continues an interrupted run.",
)

Export = Annotated[
    Path, typer.Argument(metavar="FILE", help="The zip file, the folder in it, or a conversations.json.")
]
Since = Annotated[str, typer.Option("--since", metavar="DATE", help="Import nothing that is older.")]
First = Annotated[
    int | None,
    typer.Option("--limit", "-n", min=1, help="Import at most this many, the oldest first, to try it out."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be imported, and import nothing.")]
ThroughAgent = Annotated[
    bool,
    typer.Option(
        "--through-agent",
        help="Let the memory agent compare them with known memories, instead of importing them unchanged.",
    ),
]


@app.command()
def chatgpt(
    export: Export,
    user: User = "local",
    since: Since = "",
    limit: First = None,
    dry_run: DryRun = False,
    agents: Agents = "auto",
    as_json: Json = False,
) -> None:
    """Remember what you told ChatGPT, from its data export (Settings, Data controls, Export)."""
    from mneme.cli.importing import importing as run
    from mneme.importing import chatgpt

    how = run.How(user, since, limit, dry_run, agents, as_json)
    run_command(run.through_agent("ChatGPT", lambda: chatgpt.read(export), how))


@app.command()
def claude(
    export: Export,
    user: User = "local",
    since: Since = "",
    limit: First = None,
    dry_run: DryRun = False,
    agents: Agents = "auto",
    as_json: Json = False,
) -> None:
    """Remember what you told Claude, from its data export (Settings, Privacy, Export data)."""
    from mneme.cli.importing import importing as run
    from mneme.importing import claude

    how = run.How(user, since, limit, dry_run, agents, as_json)
    run_command(run.through_agent("Claude", lambda: claude.read(export), how))


@app.command()
def markdown(
    notes: Annotated[Path, typer.Argument(metavar="FILE|FOLDER", help="A note, or a folder of notes.")],
    user: User = "local",
    since: Since = "",
    limit: First = None,
    dry_run: DryRun = False,
    agents: Agents = "auto",
    as_json: Json = False,
) -> None:
    """Remember what your notes say, e.g. those of Obsidian; a second run reads only what is new."""
    from mneme.cli.importing import importing as run
    from mneme.importing import markdown

    how = run.How(user, since, limit, dry_run, agents, as_json)
    run_command(run.through_agent("Markdown", lambda: markdown.read(notes), how))


@app.command()
def mem0(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FILE|FOLDER", help="What `get_all` returned, as JSON; or the folder of a local store."
        ),
    ] = Path("/tmp/qdrant"),  # noqa: S108  (where Mem0 puts it)
    user: User = "local",
    of: Annotated[
        str, typer.Option("--of", metavar="NAME", help="The user to import, if the source has several.")
    ] = "",
    collection: Annotated[str, typer.Option("--collection", help="The store's collection.")] = "mem0",
    history: Annotated[
        Path | None, typer.Option("--history", help="Mem0's history.db. With a store: the one in ~/.mem0.")
    ] = None,
    through_agent: ThroughAgent = False,
    since: Since = "",
    limit: First = None,
    dry_run: DryRun = False,
    agents: Agents = "auto",
    as_json: Json = False,
) -> None:
    """Import the memories of Mem0, with their times and earlier versions."""
    from mneme.cli.importing import importing as run
    from mneme.importing import mem0

    how = run.How(user, since, limit, dry_run, agents, as_json)
    write = run.through_agent if through_agent else run.directly
    run_command(write("Mem0", lambda: mem0.read(source, of, collection, history), how))


@app.command()
def langmem(
    source: Annotated[
        str,
        typer.Argument(metavar="FILE|URL", help="Items as JSON, an SQLite store, or the URL of a Postgres."),
    ],
    user: User = "local",
    namespace: Annotated[
        str,
        typer.Option("--namespace", metavar="PATH", help="Only items below it, e.g. memories/ann."),
    ] = "",
    through_agent: ThroughAgent = False,
    since: Since = "",
    limit: First = None,
    dry_run: DryRun = False,
    agents: Agents = "auto",
    as_json: Json = False,
) -> None:
    """Import the memories of LangMem, or of another LangGraph store, with their times."""
    from mneme.cli.importing import importing as run
    from mneme.importing import langmem

    how = run.How(user, since, limit, dry_run, agents, as_json)
    write = run.through_agent if through_agent else run.directly
    run_command(write("LangMem", lambda: langmem.read(source, namespace), how))
