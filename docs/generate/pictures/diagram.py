"""Draw `architecture.mmd` into docs/pictures/architecture.svg, with Mermaid in a headless Chromium."""

import os
import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
DOCS = HERE.parents[1]
NAMES = ("chromium", "chromium-browser", "google-chrome")
DRAW = """async source => {
  const plain = {htmlLabels: false, flowchart: {htmlLabels: false}};
  mermaid.initialize({startOnLoad: false, theme: "neutral", ...plain});
  return (await mermaid.render("architecture", source)).svg;
}"""


def main() -> None:
    """Draw it; it needs Chromium (apt-get install chromium)."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        raise SystemExit("It needs Chromium: apt-get install chromium")
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium refuses to be root with it
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=sandbox)
        page = browser.new_page()
        page.add_script_tag(path=DOCS / "vendor/mermaid.tiny.js")
        drawn = page.evaluate(DRAW, HERE.joinpath("architecture.mmd").read_text(encoding="utf-8"))
        browser.close()
    white = drawn.replace('style="', 'style="background: white; ', 1)  # it is read on a dark page, too
    DOCS.joinpath("pictures/architecture.svg").write_text(f"{white}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
