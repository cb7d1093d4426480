"""What the console shows beside memories: how a hit got its place, what waits, by day and by night."""

from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from playwright.sync_api import Page, expect

from mneme.api.operation import API_PATH, CONSOLE_PATH
from mneme.server.users import add_user
from tests.console.console import check, notice, opened, turned
from tests.doubles.langgraph_server import Server, serving

pytestmark = pytest.mark.console

ROLES = "teams: {analysts: {ann: [read, write], rob: [read, review]}}"


@pytest.fixture
def user() -> str:
    return f"amy-{uuid4().hex[:6]}"


def add(server: Server, user: str, *texts: str) -> None:
    for text in texts:
        given, whose = {"content": text}, {"user": user}
        httpx.post(f"{server.url}{API_PATH}/memories", params=whose, json=given).raise_for_status()


def test_a_hit_says_what_its_score_is_made_of(page: Page, console_server: Server, user: str) -> None:
    add(console_server, user, "Rex is a poodle.", "The rent is due on Fridays.")
    opened(page, console_server, user)
    page.get_by_label("Search memories").fill("what kind of poodle is Rex")
    first = page.get_by_role("list", name="Results").get_by_role("listitem").first
    expect(first).to_contain_text("Rex is a poodle.")
    asked = {"user": user, "query": "what kind of poodle is Rex"}
    [best, *_] = httpx.get(f"{console_server.url}{API_PATH}/memories/search", params=asked).json()
    scores = best["scores"]
    parts = ("dense", "words", "names", "dates", "kind", "lent")
    assert scores["total"] == pytest.approx(sum(scores.get(each, 0) for each in parts))
    assert scores["words"] == 0.5 and scores["names"] > 0
    first.get_by_text(f"{scores['total']:.2f}").click()
    for name, part in (
        ("meaning", "dense"),
        ("words in common", "words"),
        ("a name in the question", "names"),
    ):
        row = first.locator("dt", has_text=name).locator("+ dd")
        expect(row).to_have_text(f"{scores[part]:.2f}")
    check(page, console_server, "memories?q=which poodle is Rex", "recall?q=poodle")
    turned(page, console_server, "recall?q=poodle")
    hit = page.get_by_role("list", name="Results").get_by_role("listitem").first
    expect(hit).to_contain_text("= relevance")


def test_the_menu_counts_what_waits(page: Page, console_server: Server, user: str) -> None:
    add(console_server, user, "The rent is 900 euros.")
    opened(page, console_server, user)
    menu = page.get_by_role("navigation", name="Pages of the console")
    recall = menu.get_by_role("link", name="Recall")
    expect(menu.get_by_role("link", name="Memories", exact=True)).to_be_visible()
    page.get_by_role("button", name="Add a memory").click()
    page.get_by_label("What is to be remembered").fill("The rent is 950 euros.")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(menu.get_by_role("link", name="Memories 2 to look at")).to_be_visible()
    expect(recall).to_contain_text("1 that may not hold")
    recall.click()
    page.get_by_role("button", name="Keep the newer").click()
    expect(recall).to_have_text("Recall")


def test_a_theme_is_chosen_kept_and_given_back_to_the_system(
    page: Page, console_server: Server, user: str
) -> None:
    add(console_server, user, "Ann has a dog called Rex.")
    opened(page, console_server, user)
    scheme = page.locator("html")
    expect(scheme).to_have_attribute("data-mantine-color-scheme", "light")
    page.get_by_role("radio", name="As the system").focus()
    page.keyboard.press("ArrowLeft")  # round to the last
    expect(scheme).to_have_attribute("data-mantine-color-scheme", "dark")
    expect(page.locator("body")).to_have_css("background-color", "rgb(36, 36, 36)")
    page.reload()
    expect(page.get_by_role("radio", name="Dark")).to_be_checked()
    expect(scheme).to_have_attribute("data-mantine-color-scheme", "dark")
    turned(page, console_server, "names")
    expect(page.locator(".react-flow.dark")).to_be_visible()
    page.get_by_text("As the system").click(force=True)
    expect(scheme).to_have_attribute("data-mantine-color-scheme", "light")


def test_a_reviewer_decides_on_a_proposed_fact(page: Page, tmp_path: Path) -> None:
    users, roles = tmp_path / "users.json", tmp_path / "roles.yaml"
    ann, rob = (add_user(users, name) for name in ("ann", "rob"))
    roles.write_text(ROLES)
    text = "Reporting uses PostgreSQL."
    with serving(tmp_path / "shared", MNEME_AUTH=str(users), MNEME_ROLES=str(roles)) as server:
        api, hers = f"{server.url}{API_PATH}", {"x-api-key": ann}
        for told in (text, "Reporting is on Mondays."):
            key = httpx.post(f"{api}/memories", headers=hers, json={"content": told}).json()["key"]
            shared = httpx.post(f"{api}/promote/{key}", headers=hers, json={"team": "analysts"})
            assert shared.json()["is_proposed"]
        page.goto(f"{server.url}{CONSOLE_PATH}/")
        page.get_by_label("Key").fill(rob)
        page.get_by_role("button", name="Open").click()
        page.get_by_role("textbox", name="Team").fill("analysts")
        page.keyboard.press("Enter")
        page.get_by_role("link", name="Reviews 2 to decide on").click()
        proposed = page.get_by_role("list", name="Proposed as facts of the team")
        proposed.get_by_role("article", name=text).get_by_role("button", name="Accept").click()
        notice(page, "It is a fact of the team now.")
        other = proposed.get_by_role("article", name="Reporting is on Mondays.")
        other.get_by_role("button", name="Turn down").click()
        expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
        expect(page.get_by_role("link", name="Reviews", exact=True)).to_be_visible()
        seen = httpx.get(f"{api}/recall", headers=hers, params={"query": text, "teams": "analysts"}).json()
        assert [each["text"] for each in seen if each["origin"].startswith("analysts")] == [text]
