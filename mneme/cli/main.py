"""The command line, assembled from the commands of each workflow.

Nothing heavy is imported at the top: `mneme --help` answers at once. Commands import what they need.
"""

import os
import sys
from typing import Annotated

import typer

from mneme.cli import commands, embedder
from mneme.cli.chat import commands as chat
from mneme.cli.discussion.commands import discuss
from mneme.cli.evaluations import commands as evaluations
from mneme.cli.groups import Group
from mneme.cli.household import commands as household
from mneme.cli.importing import commands as importing
from mneme.cli.learning import commands as learning
from mneme.cli.pddl.commands import pddl
from mneme.cli.prompts.commands import prompts
from mneme.cli.sharing import commands as share
from mneme.cli.threads.commands import threads
from mneme.cli.users.commands import users
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
app.add_typer(chat.app)
app.add_typer(threads, name="threads")
app.add_typer(importing.app, name="import")
app.add_typer(learning.app)
app.add_typer(household.app, name="household")
app.add_typer(pddl, name="pddl")
app.add_typer(discuss, name="discuss")
app.add_typer(share.app, name="share")
app.add_typer(embedder.app, name="embedder")
app.add_typer(evaluations.app, name="eval")
app.add_typer(users, name="users")
app.add_typer(prompts, name="prompts")
app.add_typer(commands.app)


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
) -> None:
    """Take the options of all commands."""
    embedder.install_where_missing(context.invoked_subcommand)


def main() -> None:
    """Run the command line; a failure is one line and a hint, with a non-zero exit status."""
    with counting() as asked:
        try:
            app()
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
    from mneme.cli.show import print_error

    print_error(error, "--json" in sys.argv, asked)
    sys.exit(1)
