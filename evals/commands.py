"""The command line in a process of its own, in a home of its own and without any model."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

NOWHERE = "http://127.0.0.1:9"
"""An address at which nobody answers."""
LONGEST = 600.0
"""Seconds that a command may take."""


def quiet(home: Path, **more: str) -> dict[str, str]:
    """Return an environment with a home of its own and no model anywhere, but for what `more` says."""
    nowhere = {"MNEME_OLLAMA_URL": NOWHERE, "LANGSMITH_TRACING": "false"}
    return {**os.environ, **nowhere, "MNEME_HOME": str(home), **more}


def mneme(
    environment: Mapping[str, str], *words: str, stdin: str = "", seconds: float = LONGEST
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end. Raises subprocess.TimeoutExpired. Blocks."""
    return subprocess.run(  # noqa: S603  (our own program)
        [sys.executable, "-m", "mneme", *words],
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
