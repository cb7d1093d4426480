"""The command line: the options of all commands, and what becomes of an error.

Nothing heavy is imported at the top: `mneme --help` answers at once. Commands import what they need.
"""

import logging
import os
import sys
from typing import Annotated

import typer

from mneme.cli.commands import add_commands
from mneme.cli.groups import Group
from mneme.core.errors import DISTRIBUTION, MnemeError
from mneme.models.asking.counting import Asked, counting

app = typer.Typer(
    name="mneme",
    cls=Group,
    help="Memory for LLM agents and teams of agents, on your own machine. "
    "Memories are in the folder MNEME_HOME; MNEME_DATA is only for benchmark files.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
add_commands(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"mneme {version(DISTRIBUTION)}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version."),
    ] = False,
    wait: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="Seconds to wait for another process that has the memories open; 0: do not wait. "
            "Default: MNEME_WAIT, or 30.",
        ),
    ] = None,
) -> None:
    """Take the options of all commands."""
    if wait is not None:
        os.environ["MNEME_WAIT"] = str(wait)
    if sys.stderr.isatty():
        from mneme.cli.embedder import install_where_missing

        install_where_missing(context.invoked_subcommand)
    if "--json" in sys.argv:  # whoever reads JSON Lines wants nothing else, and finds an error at the end
        logging.getLogger("mneme.client.waiting").setLevel(logging.ERROR)


def main() -> None:
    """Run the command line; a failure is one line and a hint, with a non-zero exit status."""
    with counting() as asked:
        try:
            app(prog_name="mneme")
        except MnemeError as error:
            _fail(error, asked)
        except OSError as error:
            _fail(MnemeError(f"The operating system reports: {error}.", "See `mneme doctor`."), asked)
        except Exception as bug:  # a user gets one line, never a traceback
            if os.environ.get("MNEME_TRACEBACK"):
                raise
            unexpected = f"Unexpected {type(bug).__name__}: {bug}"
            _fail(MnemeError(unexpected, "Set MNEME_TRACEBACK=1 to see where; please report it."), asked)


def _fail(error: MnemeError, asked: Asked) -> None:
    from mneme.cli.show import json_lines, print_error

    with json_lines("--json" in sys.argv):
        print_error(error, asked)
    sys.exit(1)
