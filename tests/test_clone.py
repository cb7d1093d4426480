"""A clone on a system without symbolic links, and what the documentation counts."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_a_clone_without_symbolic_links_says_what_to_do(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "mneme", tmp_path / "mneme", symlinks=True, ignore=ignored)
    for link in filter(Path.is_symlink, (tmp_path / "mneme").iterdir()):
        target = str(link.readlink())
        link.unlink()
        link.write_text(target)  # what git writes instead of a link
    command = [sys.executable, "-c", "import mneme"]
    imported = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert imported.returncode == 1
    assert "git config core.symlinks true" in imported.stderr.splitlines()[-1]


def test_the_documentation_counts_the_graphs() -> None:
    page = (ROOT / "docs/explanation/architecture.md").read_text(encoding="utf-8")
    graphs = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))["graphs"]
    assert re.findall(r"(\d+) LangGraph graphs", page) == [str(len(graphs))]
