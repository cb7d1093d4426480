"""The console beside single memories: filters, several at once, names, what comes in, its first page."""

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from playwright.sync_api import Page, expect

from mneme.api.operation import API_PATH
from tests.console.console import WIDTH, check, notice, opened, turned
from tests.doubles.langgraph_server import Server
from tests.doubles.own_server import own_server

pytestmark = pytest.mark.console

SOURCE = Path(__file__).parents[2] / "clients" / "console"
WIDE = 160
"""Pixels of a field for a name such as an address of mail."""
TOLD = {"Ann lives in Oslo.": ["Ann", "Oslo"], "Rex is Ann's dog.": ["Ann", "Rex"], "Tea is at five.": []}


@pytest.fixture
def user(console_server: Server) -> str:
    """Give a user of whom something is remembered."""
    name = f"eve-{uuid4().hex[:6]}"
    for text, names in TOLD.items():
        add(console_server, name, {"content": text, "entities": names})
    return name


def add(server: Server, user: str, given: dict[str, object], path: str = "memories") -> None:
    httpx.post(f"{server.url}{API_PATH}/{path}", params={"user": user}, json=given).raise_for_status()


def test_a_first_visit_says_how_to_begin(page: Page, console_server: Server) -> None:
    opened(page, console_server, f"new-{uuid4().hex[:6]}")
    expect(page.get_by_role("heading", name="Nothing is remembered yet")).to_be_visible()
    expect(page.get_by_text(f"{console_server.url}/v1")).to_be_visible()
    check(
        page,
        console_server,
        "memories",
        "timeline",
        "inbox",
        "cards",
        "pools",
        "discussions",
        "disputes",
        "metrics",
    )
    turned(page, console_server, "memories")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy mneme connect codex").click()
    assert page.evaluate("navigator.clipboard.readText()") == "mneme connect codex"
    turned(page, console_server, "metrics")
    expect(page.get_by_role("button", name="Copy mneme learn --suite story")).to_be_visible()
    turned(page, console_server, "pools")
    expect(page.get_by_role("button", name="Copy mneme share pool import --shipped")).to_be_visible()
    turned(page, console_server, "memories")
    page.get_by_role("button", name="Write the first memory").click()
    page.get_by_label("What is to be remembered").fill("Ann has a kite.")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("link", name="Ann has a kite.")).to_be_visible()


def test_what_several_parts_of_the_page_show_is_asked_once(
    page: Page, console_server: Server, user: str
) -> None:
    opened(page, console_server, user)
    box = page.get_by_role("textbox", name="User").bounding_box()
    assert box is not None
    assert box["width"] > WIDE, "a name and its domain can be read"
    asked = Counter[str]()
    page.on("request", lambda request: asked.update([request.url.partition("?")[0].rpartition("/v1/")[2]]))
    for path, shared in (("memories", "memories/flagged"), ("recall", "contradictions")):
        turned(page, console_server, path)
        page.wait_for_load_state("networkidle")
        asked.clear()
        page.reload()
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        page.wait_for_load_state("networkidle")
        assert asked[shared] == 1, asked


def test_on_a_server_without_graphs_no_request_fails(page: Page, tmp_path: Path) -> None:
    failed = list[str]()
    page.on("response", lambda answer: None if answer.ok else failed.append(answer.url))
    with own_server(tmp_path / "home") as server:
        turned(page, server, "reviews")
        expect(page.get_by_text("No dispute waits for you. Runs that ask")).to_be_visible()
    assert failed == []


def test_the_list_is_filtered(page: Page, console_server: Server, user: str) -> None:
    add(console_server, user, {"content": "The rent is 900."})
    add(console_server, user, {"content": "The rent is 950."})
    add(console_server, user, {"content": "Ann worked in Graz.", "until": "2020-05-01"})
    opened(page, console_server, user)
    rows = page.get_by_role("list", name="Memories").get_by_role("listitem")
    expect(rows).to_have_count(6)
    page.get_by_text("Filter", exact=True).click()
    page.get_by_label("Standing").select_option(label="may contradict another")
    expect(rows).to_have_count(2)
    expect(page.get_by_text("2 memories of the latest 6")).to_be_visible()
    page.get_by_label("Standing").select_option(label="holds no longer")
    expect(rows).to_have_count(1)
    page.get_by_label("Standing").select_option(label="any")
    page.get_by_label("Kind").select_option(label="an event")
    expect(rows).to_have_count(0)
    page.get_by_role("button", name="Show all again").click()
    expect(rows).to_have_count(6)
    page.get_by_role("button", name="Show them").click()
    expect(rows).to_have_count(2)
    found = page.get_by_role("list", name="Results").get_by_role("listitem")
    page.get_by_label("Search memories").fill("rent or Ann")
    expect(found).to_have_count(2)
    expect(found.locator("mark", has_text="rent")).to_have_count(2)
    page.get_by_role("button", name="Show all again").click()
    expect(found).to_have_count(6)
    page.get_by_label("Search memories").fill("")
    rows.filter(has_text="Rex is").get_by_role("button", name="Only with Ann").click()
    expect(rows).to_have_count(3)
    check(page, console_server, "memories")


def test_several_are_retired_brought_back_and_forgotten(
    page: Page, console_server: Server, user: str
) -> None:
    opened(page, console_server, user)
    rows = page.get_by_role("list", name="Memories").get_by_role("listitem")
    for text in ("Ann lives in Oslo.", "Tea is at five."):
        page.get_by_label(f"Select: {text}").check()
    page.get_by_role("button", name="Retire them").click()
    notice(page, "2 memories retired.")
    expect(rows).to_have_count(1)
    page.get_by_role("button", name="Undo", exact=True).click()
    notice(page, "2 memories brought back.")
    expect(rows).to_have_count(3)
    page.get_by_label("Select all that are listed").check()
    page.get_by_role("button", name="Forget them…").click()
    asked = page.get_by_role("dialog", name="Forget 3 memories?")
    expect(asked).to_be_visible()
    page.keyboard.press("Escape")
    expect(asked).to_be_hidden()
    page.get_by_role("button", name="Forget them…").click()
    asked.get_by_role("button", name="Forget them").click()
    expect(page.get_by_role("heading", name="Nothing is remembered yet")).to_be_visible()


def test_what_a_policy_asks_is_found_and_answered(page: Page, console_server: Server, user: str) -> None:
    add(console_server, user, {"share": "ask", "about": ["piano"]}, "policies/kitchen")
    for which in ("old", "new"):
        add(console_server, user, {"content": f"The {which} piano is out of tune."})
    opened(page, console_server, user)
    rows = page.get_by_role("list", name="Memories").get_by_role("listitem")
    page.get_by_role("button", name="Show them").click()
    expect(rows.get_by_text("may kitchen know it?")).to_have_count(2)
    page.get_by_role("button", name="Actions: The old piano is out of tune.").press("Enter")
    page.get_by_role("menuitem", name="Keep it private").click()
    expect(rows).to_have_count(1)
    page.get_by_role("link", name="The new piano is out of tune.").click()
    page.get_by_role("button", name="Share with kitchen").click()
    notice(page, "Shared with kitchen")
    expect(page.get_by_role("region", name="What was made of it")).to_contain_text("kitchen")
    turned(page, console_server, "memories")
    expect(page.get_by_role("button", name="Show them")).to_have_count(0)


def test_each_row_has_its_own_actions(page: Page, console_server: Server, user: str) -> None:
    add(console_server, user, {"content": "The rent is 900."})
    add(console_server, user, {"content": "The rent is 950."})
    opened(page, console_server, user)
    rows = page.get_by_role("list", name="Memories").get_by_role("listitem")

    def act(text: str, action: str) -> None:
        page.get_by_role("button", name=f"Actions: {text}").press("Enter")
        page.get_by_role("menuitem", name=action).click()

    expect(rows.get_by_text("may contradict another")).to_have_count(2)
    act("The rent is 950.", "It is right")
    notice(page, "Accepted as it stands.")
    expect(rows.get_by_text("may contradict another")).to_have_count(0)
    act("Tea is at five.", "Retire")
    notice(page, "1 memory retired.")
    expect(rows).to_have_count(4)
    page.get_by_role("button", name="Undo", exact=True).click()
    notice(page, "1 memory brought back.")
    expect(rows).to_have_count(5)
    act("Tea is at five.", "Forget…")
    page.get_by_role("dialog", name="Forget 1 memory?").get_by_role("button", name="Forget it").click()
    notice(page, "Forgotten: 1 memory.")
    expect(rows).to_have_count(4)
    act("Ann lives in Oslo.", "Edit")
    page.get_by_label("What is remembered").fill("Ann lives in Bergen.")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Ann lives in Bergen.")


def test_a_memory_says_what_held_before_and_what_is_close_to_it(
    page: Page, console_server: Server, user: str
) -> None:
    lines = httpx.get(f"{console_server.url}{API_PATH}/memories/export", params={"user": user}).json()
    record = json.loads(next(line for line in lines if "Oslo" in line))
    before = {"content": "Ann lives in Graz.", "since": "2025", "until": "2026-01-23"}
    value = record["value"] | {"content": "Ann lives in Oslo by the sea.", "past": [before]}
    source = record["change"]["source"] | {"messages": ["5" * 32]}
    record |= {"key": "a" * 32, "value": value, "change": record["change"] | {"source": source}}
    add(console_server, user, {"lines": [json.dumps(record | {"idempotency_key": None})]}, "memories/import")
    opened(page, console_server, user)
    page.get_by_role("link", name="by the sea").click()
    told = page.get_by_role("region", name="What held before").get_by_role("listitem")
    expect(told).to_have_text("Until 2026-01-23: Ann lives in Graz. from 2025")
    alike = page.get_by_role("region", name="Close to it in meaning")
    expect(alike.get_by_role("link", name="Ann lives in Oslo.")).to_be_visible()
    expect(page.get_by_text("message 55555555")).to_be_visible()
    assert not any(len(word) == 32 for word in page.locator("main").inner_text().split())
    check(page, console_server, f"memories/{'a' * 32}")
    page.get_by_role("link", name="Oslo", exact=True).click()
    expect(page.get_by_role("list", name="Memories").get_by_role("listitem")).to_have_count(2)


def test_what_is_remembered_meanwhile_appears_by_itself(
    page: Page, console_server: Server, user: str
) -> None:
    opened(page, console_server, user)
    expect(page.get_by_role("link", name="Tea is at five.")).to_be_visible()
    add(console_server, user, {"content": "Ann has a boat."})
    expect(page.get_by_role("link", name="Ann has a boat.")).to_be_visible()
    with page.expect_response(lambda answer: "changes?limit=1&" in answer.url):  # what it compares with later
        turned(page, console_server, "timeline")
    expect(page.get_by_role("link", name="Ann has a boat.")).to_be_visible()
    add(console_server, user, {"content": "Ann has a tent."})
    expect(page.get_by_role("link", name="Ann has a tent.")).to_be_visible()


def test_the_graph_of_names_leads_to_their_memories(page: Page, console_server: Server, user: str) -> None:
    opened(page, console_server, user, "names")
    graph = page.get_by_role("group", name="Names that memories have")
    expect(page.get_by_role("region", name="Nothing is chosen")).to_be_visible()
    graph.get_by_text("Rex (1)").click()
    expect(graph.locator(".react-flow__node.far")).to_have_count(2)  # Oslo and Tea: not linked to Rex
    chosen = page.get_by_role("list", name="Memories of the chosen").get_by_role("listitem")
    expect(chosen).to_have_text(["Rex is Ann's dog."])
    graph.get_by_text("Ann (2)").click()
    expect(chosen).to_have_count(2)


def test_on_a_phone_the_menu_opens_and_closes(page: Page, console_server: Server, user: str) -> None:
    opened(page, console_server, user)
    page.set_viewport_size({"width": WIDTH, "height": 800})
    expect(page.get_by_role("navigation", name="Pages of the console")).to_be_hidden()
    page.get_by_role("button", name="Open the menu").click()
    page.get_by_role("link", name="Timeline").click()
    expect(page.get_by_role("heading", name="Timeline")).to_be_visible()
    expect(page.get_by_role("navigation", name="Pages of the console")).to_be_hidden()


def test_keys_are_short_and_times_are_relative(page: Page, console_server: Server, user: str) -> None:
    opened(page, console_server, user)
    for path in ("memories", "timeline", "recall"):
        turned(page, console_server, path)
        assert not any(len(word) == 32 for word in page.locator("main").inner_text().split())
    turned(page, console_server, "memories")
    expect(page.get_by_text("remembered just now").first).to_be_visible()


def test_the_built_page_is_that_of_its_source(tmp_path: Path) -> None:
    if not (SOURCE / "node_modules").exists() or not (SOURCE / "src" / "schema.d.ts").exists():
        pytest.skip("the console's packages are not installed: make console")
    npx = shutil.which("npx")
    assert npx is not None
    command = [npx, "vite", "build", "--outDir", str(tmp_path), "--logLevel", "error"]
    subprocess.run(command, cwd=SOURCE, check=True)
    committed = Path(__file__).parents[2] / "mneme" / "server" / "console"
    for built in (each for each in tmp_path.iterdir() if each.suffix != ".txt"):
        assert built.read_bytes() == (committed / built.name).read_bytes(), f"{built.name}: make console"
