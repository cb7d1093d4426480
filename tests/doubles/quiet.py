"""The environment of a process with a home of its own and without any model."""

import os
from pathlib import Path

NOWHERE = "http://127.0.0.1:9"
"""An address at which nobody answers."""


def quiet(home: Path, **more: str) -> dict[str, str]:
    """Return an environment with a home of its own and no model anywhere, but for what `more` says."""
    nowhere = {"MNEME_OLLAMA_URL": NOWHERE, "LANGSMITH_TRACING": "false"}
    return {**os.environ, **nowhere, "MNEME_HOME": str(home), **more}
