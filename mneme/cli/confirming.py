"""Ask before something is erased."""

import sys

from rich.prompt import Confirm

from mneme.cli.show import console, errors, prints_json
from mneme.core.errors import BadInput


def confirmed(yes: bool) -> bool:
    """Ask for confirmation, unless `yes` was given. Raises BadInput without a terminal."""
    if not yes and not sys.stdin.isatty():
        raise BadInput("There is no terminal to ask for confirmation.", "Add --yes to erase without asking.")
    return yes or Confirm.ask(
        "Erase it? This cannot be undone.", console=errors if prints_json() else console
    )
