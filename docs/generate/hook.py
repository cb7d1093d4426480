"""The site's hook: its navigation is the list in `index.md`, and its reference is made of the code."""

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE)]  # the package of this checkout; the modules beside this one

import code_pages  # noqa: E402
import field_pages  # noqa: E402
import graph_pages  # noqa: E402
import route_pages  # noqa: E402

PAGES: Mapping[str, tuple[str, Callable[[], str]]] = {
    "command-line": ("Command line", code_pages.command_line),
    "library": ("Python library", code_pages.library),
    "settings": ("Settings", code_pages.environment),
    "tools": ("Tools for agents", route_pages.tools),
    "rest": ("REST routes", route_pages.routes),
    "graphs": ("Graphs", graph_pages.graphs),
    "prompts": ("Prompts", graph_pages.prompts),
    "teams": ("Fields of a team", field_pages.teams),
    "agents": ("Fields of an agent and a rubric", field_pages.agents),
    "worlds": ("Fields of episodes and tasks", field_pages.worlds),
}
"""The pages of the reference by their names: the title, and what writes them."""
MADE = "<!-- the list of the pages -->"
SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
ENTRY = re.compile(r"^- \[(.+?)\]\((\S+?\.md)\)", re.MULTILINE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Take the navigation from the lists of `index.md`, and add the pages of the reference."""
    index = Path(config.docs_dir, "index.md").read_text(encoding="utf-8")
    _, *parts = SECTION.split(index)
    nav: list[dict[str, Any]] = [{"Mneme": "index.md"}]
    for title, text in zip(parts[::2], parts[1::2], strict=True):
        nav.append({title: [{name: place} for name, place in ENTRY.findall(text)]})
        if title == "Reference":
            nav[-1][title] += [{name: f"reference/{page}.md"} for page, (name, _) in PAGES.items()]
    config.nav = [each for each in nav if next(iter(each.values()))]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the reference."""
    for page, (title, write) in PAGES.items():
        content = f"# {title}\n\n{write()}"
        files.append(File.generated(config, f"reference/{page}.md", content=content))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """List the pages of the reference where they are named."""
    listed = "\n".join(f"- [{title}](reference/{name}.md)" for name, (title, _) in PAGES.items())
    return markdown.replace(MADE, listed) if page.file.src_uri == "reference.md" else markdown
