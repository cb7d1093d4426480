"""The TypeScript client's own tests, against a real server; `make client` builds it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.doubles.own_server import own_server

CLIENT = Path(__file__).parents[2] / "clients" / "typescript"


@pytest.mark.skipif(
    not ((CLIENT / "dist").is_dir() and shutil.which("npm")),
    reason="the TypeScript client is not built: `make client`, which needs Node 20",
)
def test_the_typescript_client_does_what_it_says(tmp_path: Path) -> None:
    with own_server(tmp_path) as server:
        environment = {**os.environ, "MNEME_TEST_SERVER": server.url}
        done = subprocess.run(
            ["npm", "test"], cwd=CLIENT, env=environment, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# fail 0" in done.stdout
