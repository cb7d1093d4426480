"""What the tests of models share."""

from collections.abc import Iterator

import pytest

from tests.doubles.ollama import OllamaDouble
from tests.doubles.served import served


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> Iterator[OllamaDouble]:
    """Give an Ollama double that the whole process takes for the real server."""
    with served(monkeypatch) as running:
        yield running
