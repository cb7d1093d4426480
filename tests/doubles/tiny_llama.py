"""The tiny Llama of the evaluations, written once for all tests."""

import fcntl
import os
from pathlib import Path

import pytest

from mneme.evals.learning.tiny_llama import write_tiny_llama


@pytest.fixture(scope="session")
def tiny_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a Llama of two layers and 100,000 parameters that answers a few facts: one for all processes."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "llama"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            part = folder.with_suffix(".part")
            part.mkdir()
            write_tiny_llama(part)
            part.rename(folder)
    return folder
