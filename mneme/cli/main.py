"""The command line: the options of all commands, and the handling of errors.

Slow imports are not at the top, so that `mneme --help` answers at once; commands import what they need.
"""

import atexit
import errno
import gc
import os
import sys
from typing import Annotated

import typer

from mneme.cli.commands import Group, add_commands
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
) -> None:
    """Take the options of all commands."""
    if sys.stderr.isatty():  # in a pipe or a service nobody sees what is downloaded
        from mneme.cli.embedder import install_where_missing

        install_where_missing(context.invoked_subcommand)


OS_HINTS = {
    **dict.fromkeys(
        (errno.EACCES, errno.EPERM, errno.EROFS),
        "Check who owns the folder and may read and write it; MNEME_HOME names another.",
    ),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "Free some space, or set MNEME_HOME to another disk."),
}


QUICK_START = {"OPENBLAS_NUM_THREADS": "1", "PYDANTIC_DISABLE_PLUGINS": "1"}
"""Variables that a command sets, unless the user did: NumPy starts no threads, which nothing here keeps busy;
Pydantic looks for no plugins among all installed packages."""


def main() -> None:
    """Run the command line; a failure is one line and a hint, with a non-zero exit status."""
    os.environ |= QUICK_START | os.environ  # before anything imports NumPy or Pydantic
    gc.disable()  # it took a fifth of a search and found nothing; what may go on for long enables it
    atexit.register(gc.freeze)  # else Python collects once more at its end, all that was loaded
    with counting() as asked:
        try:
            app(prog_name="mneme")
        except MnemeError as error:
            _fail(error, asked)
        except OSError as error:
            hint = OS_HINTS.get(error.errno or 0, "See `mneme doctor`.")
            _fail(MnemeError(f"The operating system reports: {error}.", hint), asked)
        except Exception as bug:  # a user gets one line, never a traceback
            if os.environ.get("MNEME_TRACEBACK"):
                raise
            unexpected = f"Unexpected {type(bug).__name__}: {bug}"
            _fail(MnemeError(unexpected, "Set MNEME_TRACEBACK=1 to see where; please report it."), asked)


def _fail(error: MnemeError, asked: Asked) -> None:
    from mneme.cli.show import print_error, printing

    with printing("--json" in sys.argv):  # the command itself may have failed before its options were read
        print_error(error, asked)
    sys.exit(1)
