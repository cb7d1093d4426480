"""A real Chromium on a real server."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.doubles.langgraph_server import Server, serving

PAGE_SECONDS = 30.0
"""Seconds to wait for what the page is to show: other work may be going on on this machine."""
NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Give a headless Chromium; skip, saying why, where there is none."""
    program = os.environ.get("MNEME_TEST_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("MNEME_TEST_CHROMIUM is unset and no Chromium is installed (apt-get install chromium)")
    expect.set_options(timeout=PAGE_SECONDS * 1000)
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium refuses to be root with it
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=sandbox)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def console_server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Give one server to all tests of the console, each with users and teams of its own."""
    with serving(tmp_path_factory.mktemp("console") / "home") as running:
        yield running
    assert "BlockingError" not in running.log.read_text()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Give a page whose console, exceptions and violations of the policy fail the test."""
    context = browser.new_context(viewport={"width": 1100, "height": 800}, locale="en-GB")
    opened, wrong = context.new_page(), list[str]()
    opened.set_default_timeout(PAGE_SECONDS * 1000)
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
    opened.on("request", lambda asked: wrong.append(asked.url) if "127.0.0.1" not in asked.url else None)
    yield opened
    context.close()
    # A refusal by the server is in the log of the browser, too; the page has to show it.
    assert [each for each in wrong if "Failed to load resource" not in each] == []


@pytest.fixture
def pictures() -> Path:
    """Name the folder of the README's pictures."""
    return Path(__file__).parents[2] / "docs" / "pictures"
