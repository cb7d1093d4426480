"""What tests do with the console, as somebody in front of it does."""

import re
from pathlib import Path
from typing import Literal

from playwright.sync_api import Page, expect

from mneme.api.operation import CONSOLE_PATH
from tests.doubles.langgraph_server import Server
from tests.doubles.own_server import OwnServer

CHECKS = Path(__file__).with_name("checks.js").read_text(encoding="utf-8").partition("\n")[2]
AXE = Path(__file__).parents[2] / "clients" / "console" / "node_modules" / "axe-core" / "axe.min.js"
"""The rules of axe-core are looked at, too, where the console's packages are installed (`make console`)."""
VIOLATIONS = "axe.run(document).then((found) => found.violations.map(({ id, nodes }) => [id, nodes[0].html]))"
WIDTH = 390
"""A phone's, in CSS pixels."""


def opened(page: Page, server: Server, user: str, path: str = "memories") -> None:
    """Open the console as a user."""
    page.goto(f"{server.url}{CONSOLE_PATH}")
    page.get_by_role("textbox", name="User").fill(user)
    page.keyboard.press("Enter")
    turned(page, server, path)


def turned(page: Page, server: Server | OwnServer, path: str) -> None:
    """Go to a page of the console by its address, and wait for what it shows."""
    page.goto(f"{server.url}{CONSOLE_PATH}/#/{path}")
    expect(page.locator("main h1")).to_be_visible()
    expect(page.get_by_text("Loading…")).to_have_count(0)


def notice(page: Page, text: str | re.Pattern[str]) -> None:
    """Wait until the page says this of what was done."""
    expect(page.get_by_role("status")).to_contain_text(text)


def check(page: Page, server: Server, *paths: str) -> None:
    """Look at pages at a phone's width, by day and by night: nothing lacks, is faint, or sticks out."""
    page.set_viewport_size({"width": WIDTH, "height": 800})
    for path in paths:
        turned(page, server, path)
        assert page.evaluate("document.documentElement.scrollWidth") <= WIDTH, path
        for dark in (False, True):
            scheme: Literal["dark", "light"] = "dark" if dark else "light"
            page.emulate_media(color_scheme=scheme)
            expect(page.locator(f"html[data-mantine-color-scheme={scheme}]")).to_have_count(1)
            assert page.evaluate(CHECKS) == {"lacking": [], "faint": []}, (path, dark)
            if AXE.exists():
                page.evaluate(AXE.read_text(encoding="utf-8"))
                assert page.evaluate(VIOLATIONS) == [], (path, dark)
