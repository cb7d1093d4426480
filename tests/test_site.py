"""The site of the documentation: built strictly, complete, and with nothing from elsewhere.

`make docs` builds it and runs what looks at it; with all tests it is built here.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import typer

from mneme.api.operation import API_PATH
from mneme.cli.main import app
from mneme.core.settings import Settings
from mneme.server.app import app as server

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[1]
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data", "embed": "src"}
LINKED = {
    "stylesheet",
    "icon",
    "preload",
    "prefetch",
    "preconnect",
    "dns-prefetch",
    "modulepreload",
    "manifest",
}
IN_CSS = re.compile(r"""(?:url\(\s*["']?|@import\s+["'])([^"')\s]+)""")


def build(config: Path, site: Path) -> subprocess.CompletedProcess[str]:
    words = [
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--config-file",
        str(config),
        "--site-dir",
        str(site),
    ]
    return subprocess.run(
        [sys.executable, *words],
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the site: the one at MNEME_TEST_SITE, or else one that is built."""
    if built := os.environ.get("MNEME_TEST_SITE"):
        return Path(built)
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT / "mkdocs.yml", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


class Loads(HTMLParser):
    """The addresses that a page loads without being asked."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, given: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in given}
        if tag == "link" and LINKED & set(attributes.get("rel", "").split()):
            self.found.append(attributes.get("href", ""))
        if tag in LOADED:
            self.found.append(attributes.get(LOADED[tag], ""))
        assert "mermaid" not in attributes.get("class", "").split(), (
            "the theme would load its own from elsewhere"
        )


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    loaded = set[str]()
    for page in site.rglob("*.html"):
        reader = Loads()
        reader.feed(page.read_text(encoding="utf-8"))
        loaded |= {*reader.found}
    assert loaded
    for sheet in site.rglob("*.css"):
        loaded |= {*IN_CSS.findall(sheet.read_text(encoding="utf-8"))}
    foreign = {each for each in loaded if urlsplit(each).netloc or urlsplit(each).scheme not in {"", "data"}}
    assert foreign == set()


def test_the_reference_has_every_command_setting_and_route(site: Path) -> None:
    def told(page: str) -> str:
        return (site / f"reference/{page}.html").read_text(encoding="utf-8")

    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    missing = [name for name in commands if f"<code>mneme {name}</code>" not in told("command-line")]
    missing += [name for name in Settings.model_fields if f"MNEME_{name}".upper() not in told("settings")]
    routes = [path for path in server.openapi()["paths"] if path.startswith(API_PATH)]
    graphs = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))["graphs"]
    missing += [name for name in graphs if f'aria-label="The graph {name}"' not in told("graphs")]
    missing += [path for path in routes if f" {path.removeprefix(API_PATH)}<" not in told("rest")]
    assert missing == [] and routes


def test_the_build_is_strict(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    for name in ("langgraph.json", "mneme"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "docs/how-to/unlisted.md").write_text("# Unlisted\n", encoding="utf-8")
    with (tmp_path / "docs/index.md").open("a", encoding="utf-8") as index:
        index.write("\n[Nowhere](how-to/nowhere.md), [nowhere](tutorial.md#nowhere)\n")
    done = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert done.returncode != 0
    for complaint in ("how-to/unlisted.md", "how-to/nowhere.md", "#nowhere", "3 warnings"):
        assert complaint in done.stdout + done.stderr
