"""The tiny Llama of the evaluations, written once for all tests."""

from pathlib import Path

import pytest

from mneme.evals.doubles.tiny_llama import write_tiny_llama


@pytest.fixture(scope="session")
def tiny_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a Llama of two layers and 100,000 parameters that answers a few facts."""
    folder = tmp_path_factory.mktemp("llama")
    write_tiny_llama(folder)
    return folder
