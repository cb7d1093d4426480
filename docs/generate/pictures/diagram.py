"""Draw each `.mmd` file beside this one into docs/pictures, with Mermaid in a headless Chromium.

Mermaid is one file of the package @mermaid-js/tiny: `npm pack @mermaid-js/tiny`, unpack it, and set
MERMAID=package/dist/mermaid.tiny.js. The pictures are kept, so that the site needs neither.
"""

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
  return (await mermaid.render("drawn", source)).svg;
}"""


def main() -> None:
    """Draw them; it needs Chromium (apt-get install chromium)."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        raise SystemExit("It needs Chromium: apt-get install chromium")
    mermaid = os.environ.get("MERMAID", "")
    if not mermaid:
        raise SystemExit("It needs Mermaid: npm pack @mermaid-js/tiny, and MERMAID=…/mermaid.tiny.js")
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium refuses to be root with it
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=sandbox)
        page = browser.new_page()
        page.add_script_tag(path=mermaid)
        for source in sorted(HERE.glob("*.mmd")):
            drawn = page.evaluate(DRAW, source.read_text(encoding="utf-8"))
            white = drawn.replace('style="', 'style="background: white; ', 1)  # read on a dark page, too
            DOCS.joinpath(f"pictures/{source.stem}.svg").write_text(f"{white}\n", encoding="utf-8")
        browser.close()


if __name__ == "__main__":
    main()
