"""What tests of evaluations share: a double in the place of the settings' Ollama, and a run's raw results."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mneme.core.settings import settings
from mneme.models.asking import asking
from tests.doubles.ollama import Brain, OllamaDouble


@contextmanager
def ollama(brain: Brain) -> Iterator[OllamaDouble]:
    """Let the settings' Ollama be a double."""
    with pytest.MonkeyPatch.context() as patch, OllamaDouble(brain=brain) as double:
        patch.setenv("MNEME_OLLAMA_URL", double.url)
        settings.cache_clear()
        asking.clear_endpoints()
        yield double
    settings.cache_clear()
    asking.clear_endpoints()


def raw_results(folder: Path) -> str:
    (raw,) = folder.glob("*.jsonl")
    return raw.read_text()
