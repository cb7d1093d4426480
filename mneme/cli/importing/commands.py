"""`mneme import …`: bring in what other programs know of you."""

from pathlib import Path
from typing import Annotated, Any

import typer

from mneme.cli.groups import group, options_of
from mneme.cli.options import Json, run_command

app = group("Import what other programs know about you; the same command continues an interrupted run.")

Export = Annotated[
    Path, typer.Argument(metavar="FILE", help="The zip file, the folder in it, or a conversations.json.")
]
ThroughAgent = Annotated[
    bool,
    typer.Option(
        "--through-agent",
        help="Let the memory agent compare them with known memories, instead of importing them unchanged.",
    ),
]


@options_of(app, "import chatgpt", how="mneme.cli.importing.importing:How")
def chatgpt(
    export: Export,
    how: dict[str, Any],
    as_json: Json = False,
) -> None:
    """Remember what you told ChatGPT, from its data export (Settings, Data controls, Export)."""
    from mneme.cli.importing import importing as run
    from mneme.importing import chatgpt

    run_command(run.through_agent("ChatGPT", lambda: chatgpt.read(export), how, as_json))


@options_of(app, "import claude", how="mneme.cli.importing.importing:How")
def claude(
    export: Export,
    how: dict[str, Any],
    as_json: Json = False,
) -> None:
    """Remember what you told Claude, from its data export (Settings, Privacy, Export data)."""
    from mneme.cli.importing import importing as run
    from mneme.importing import claude

    run_command(run.through_agent("Claude", lambda: claude.read(export), how, as_json))


@options_of(app, "import markdown", how="mneme.cli.importing.importing:How")
def markdown(
    notes: Annotated[Path, typer.Argument(metavar="FILE|FOLDER", help="A note, or a folder of notes.")],
    how: dict[str, Any],
    as_json: Json = False,
) -> None:
    """Remember what your notes say, e.g. those of Obsidian; a second run reads only what is new."""
    from mneme.cli.importing import importing as run
    from mneme.importing import markdown

    run_command(run.through_agent("Markdown", lambda: markdown.read(notes), how, as_json))


@options_of(app, "import mem0", how="mneme.cli.importing.importing:How")
def mem0(
    how: dict[str, Any],
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FILE|FOLDER", help="What `get_all` returned, as JSON; or the folder of a local store."
        ),
    ] = Path("/tmp/qdrant"),  # noqa: S108  (where Mem0 puts it)
    of: Annotated[
        str, typer.Option("--of", metavar="NAME", help="The user to import, if the source has several.")
    ] = "",
    collection: Annotated[str, typer.Option("--collection", help="The store's collection.")] = "mem0",
    history: Annotated[
        Path | None, typer.Option("--history", help="Mem0's history.db. With a store: the one in ~/.mem0.")
    ] = None,
    through_agent: ThroughAgent = False,
    as_json: Json = False,
) -> None:
    """Import the memories of Mem0, with their times and earlier versions."""
    from mneme.cli.importing import importing as run
    from mneme.importing import mem0

    write = run.through_agent if through_agent else run.directly
    run_command(write("Mem0", lambda: mem0.read(source, of, collection, history), how, as_json))


@options_of(app, "import langmem", how="mneme.cli.importing.importing:How")
def langmem(
    how: dict[str, Any],
    source: Annotated[
        str,
        typer.Argument(metavar="FILE|URL", help="Items as JSON, an SQLite store, or the URL of a Postgres."),
    ],
    namespace: Annotated[
        str,
        typer.Option("--namespace", metavar="PATH", help="Only items below it, e.g. memories/ann."),
    ] = "",
    through_agent: ThroughAgent = False,
    as_json: Json = False,
) -> None:
    """Import the memories of LangMem, or of another LangGraph store, with their times."""
    from mneme.cli.importing import importing as run
    from mneme.importing import langmem

    write = run.through_agent if through_agent else run.directly
    run_command(write("LangMem", lambda: langmem.read(source, namespace), how, as_json))
