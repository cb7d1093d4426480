"""From a memory to where it was said and back, what a reply was shown, and which programs read what."""

import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from playwright.sync_api import Page, expect

from mneme.api.operation import API_PATH
from tests.console.console import check, opened, turned
from tests.doubles.langgraph_server import Server
from tests.doubles.own_server import own_server

pytestmark = pytest.mark.console

TALK = (
    ("user", "My flat is in Via Roma 12."),
    ("assistant", "Who lives there with you?"),
    ("user", "I live there with my cat Tom."),
)
THREAD = "editor/3f0c"


@pytest.fixture
def user(console_server: Server) -> str:
    """Give a user who said something in an editor."""
    name = f"uma-{uuid4().hex[:6]}"
    messages = [{"role": role, "content": content} for role, content in TALK]
    body = {"messages": messages, "thread": THREAD, "memory_agent": "rules", "seconds": 60}
    ask(console_server, name, "POST", "memories/remember", json=body)
    return name


def ask(server: Server, user: str, method: str, path: str, caller: str = "user", **given: Any) -> Any:
    url, params = f"{server.url}{API_PATH}/{path}", {"user": user} | dict(given.pop("params", {}))
    headers = {"x-mneme-caller": caller}
    answer = httpx.request(method, url, params=params, headers=headers, timeout=60, **given)
    return answer.raise_for_status().json()


def read_by(server: Server, user: str, count: int) -> None:
    """Wait until so many readings are noted: that is done beside the answer."""
    for _ in range(100):
        if len(ask(server, user, "GET", "memories/readings")) >= count:
            return
        time.sleep(0.1)
    raise AssertionError(f"no {count} readings")


def test_a_memory_leads_to_the_message_and_the_message_to_the_memory(
    page: Page, console_server: Server, user: str
) -> None:
    opened(page, console_server, user)
    page.get_by_role("link", name=TALK[2][1]).click()
    said = page.get_by_role("region", name="Where it was said")
    turns = said.get_by_role("list", name="What was said").get_by_role("article")
    expect(turns).to_have_count(3)
    expect(turns.nth(1)).to_contain_text(TALK[1][1])
    expect(said.locator(".here")).to_contain_text(TALK[2][1])
    said.get_by_role("link", name="The whole conversation").click()
    expect(page.locator("main h1")).to_have_text(TALK[0][1])
    expect(page.locator(".here")).to_contain_text(TALK[2][1])
    first = page.get_by_role("article", name=f"The user: {TALK[0][1]}")
    first.get_by_role("link", name=TALK[0][1]).click()
    expect(page.locator("main h1")).to_have_text(TALK[0][1])
    expect(page.locator(".here")).to_contain_text(TALK[0][1])
    turned(page, console_server, "conversations")
    row = page.get_by_role("list", name="Conversations").get_by_role("listitem")
    expect(row).to_contain_text("editor")
    expect(row).to_contain_text("2 messages")
    row.get_by_role("link").click()
    expect(page.get_by_role("list", name="What was said").get_by_role("article")).to_have_count(3)
    check(page, console_server, "conversations", f"conversations/{THREAD.replace('/', '%2F')}")


def test_what_was_forgotten_is_in_no_conversation(page: Page, console_server: Server, user: str) -> None:
    opened(page, console_server, user)
    page.get_by_role("link", name=TALK[2][1]).click()
    page.get_by_role("button", name="Forget…").click()
    page.get_by_role("button", name="Forget it").click()
    page.get_by_role("link", name=TALK[0][1]).click()
    expect(page.get_by_role("heading", name="Versions")).to_be_visible()
    page.get_by_role("link", name="the message").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing is kept of")


def test_a_chat_shows_what_each_reply_was_shown(page: Page, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with own_server(home) as server:
        for said in ("My sister Emily lives in Portland.", "Where does Emily live?"):
            assert server.mneme("chat", stdin=f"{said}\n").returncode == 0
            server.memories()  # once nothing waits
        turned(page, server, "conversations")
        page.get_by_role("list", name="Conversations").get_by_role("link").click()
        asked = page.get_by_role("article", name="The user: Where does Emily live?")
        asked.get_by_text("The reply was shown 1 text of memory").click()
        shown = asked.get_by_role("list", name="What the reply was shown").get_by_role("listitem")
        expect(shown).to_contain_text("memory, 11 tokens")
        shown.get_by_role("link", name="My sister Emily lives in Portland.").click()
        expect(page.get_by_role("region", name="Who was shown it")).to_contain_text("chatbot, 1 time")


def test_the_log_says_which_program_read_and_wrote_what(
    page: Page, console_server: Server, user: str
) -> None:
    text = "The staging server is called heron."
    ask(console_server, user, "POST", "memories", "editor", json={"content": text})
    ask(console_server, user, "GET", "memories/search", "mcp", params={"query": "Which server is staging?"})
    ask(console_server, user, "GET", "recall", "openai", params={"query": "Which server is staging?"})
    read_by(console_server, user, 2)
    opened(page, console_server, user, "access")
    programs = page.get_by_role("group", name="By program")
    expect(programs.get_by_role("row", name="mcp")).to_contain_text("1 time")
    expect(programs.get_by_role("row", name="editor")).to_contain_text("1 version")
    expect(programs.get_by_role("row", name="editor")).to_contain_text("never")
    log = page.get_by_role("list", name="Access log").get_by_role("listitem")
    page.get_by_role("combobox", name="Program").select_option("openai")
    expect(log).to_have_count(1)
    expect(log).to_contain_text(text)
    expect(log).to_contain_text("shown to openai")
    page.get_by_label("What it did").select_option("wrote")
    expect(page.get_by_text("Nothing like that is in the log.")).to_be_visible()
    page.get_by_role("combobox", name="Program").select_option("editor")
    page.get_by_role("link", name=text).click()
    readers = page.get_by_role("region", name="Who was shown it")
    expect(readers).to_contain_text("mcp, 1 time")
    expect(readers).to_contain_text("openai, 1 time")
    page.get_by_role("link", name="Memories").first.click()
    page.get_by_label("Search memories").fill("Which server is staging?")
    expect(page.get_by_role("list", name="Results")).to_be_visible()
    turned(page, console_server, "access")
    expect(programs.get_by_role("row", name="console")).to_have_count(0)
    check(page, console_server, "access")


def test_changes_are_counted_by_day(page: Page, console_server: Server, user: str) -> None:
    kept = ask(console_server, user, "GET", "memories")
    first, second = (each["key"] for each in kept)
    ask(console_server, user, "POST", f"memories/{first}/update", json={"content": "My flat is in Via Po 3."})
    ask(console_server, user, "POST", f"memories/{second}/forget", json={})
    opened(page, console_server, user, "timeline")
    chart = page.get_by_role("img", name="In 30 days")
    expect(chart).to_have_attribute(
        "aria-label", "In 30 days: 1 added, 1 changed, 1 forgotten; 3 on one day at most."
    )
    page.get_by_label("How far back").select_option("a year")
    expect(page.get_by_role("img", name="In 365 days")).to_be_visible()
    check(page, console_server, "timeline")
