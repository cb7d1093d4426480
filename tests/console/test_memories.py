"""Somebody who knows nothing looks at memories in the browser, and puts a wrong one right."""

from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from playwright.sync_api import Page, expect

from mneme.api.operation import API_PATH, CONSOLE_PATH
from mneme.server.users import add_user
from tests.console.console import check, notice, opened
from tests.console.filled import with_dead_letters, with_memories
from tests.doubles.langgraph_server import Server, serving

pytestmark = pytest.mark.console

TOLD = ("Ann's dog Rex is a poodle.", "Ann lives in Oslo.", "Ann's sister Emily plays the <b>cello</b>.")
WRONG, RIGHT = TOLD[0], "Ann's dog Rex is a Labrador."


@pytest.fixture
def user(console_server: Server) -> str:
    """Give a user of whom something is remembered."""
    name = f"ann-{uuid4().hex[:6]}"
    for text in TOLD:
        given = {"content": text, "entities": ["Ann", *({"Rex", "Emily"} & {*text.split()})]}
        answer = httpx.post(f"{console_server.url}{API_PATH}/memories", params={"user": name}, json=given)
        answer.raise_for_status()
    return name


def test_a_wrong_memory_is_found_corrected_and_the_correction_undone(
    page: Page, console_server: Server, user: str, pictures: Path
) -> None:
    opened(page, console_server, user)
    expect(page.get_by_role("list", name="Memories").get_by_role("listitem")).to_have_count(3)
    page.get_by_label("Search memories").fill("which dog does she have")
    results = page.get_by_role("list", name="Results")
    expect(results.get_by_role("listitem").first).to_contain_text(WRONG)
    notice(page, "results for which dog")
    page.screenshot(path=pictures / "console-search.png")
    results.get_by_role("link", name=WRONG).click()

    page.get_by_role("button", name="Edit").click()
    page.get_by_label("What is remembered").fill(RIGHT)
    page.get_by_label("Why").fill("She told me so.")
    page.get_by_role("button", name="Save").click()
    notice(page, "Saved as version 2.")
    expect(page.get_by_role("heading", level=1)).to_have_text(RIGHT)

    second = page.get_by_role("article", name="Version 2")
    expect(second.locator("del")).to_contain_text("poodle")
    expect(second.locator("ins")).to_contain_text("Labrador")
    expect(second).to_contain_text("by console")
    expect(second).to_contain_text("She told me so.")
    page.screenshot(path=pictures / "console-memory.png")

    page.get_by_role("button", name="Undo the latest change").click()
    notice(page, f"Undone. Version 3 says: {WRONG}")
    expect(page.get_by_role("heading", level=1)).to_have_text(WRONG)
    page.get_by_role("button", name="Roll back to version 2").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(RIGHT)


def test_the_same_with_the_keyboard_alone(page: Page, console_server: Server, user: str) -> None:
    opened(page, console_server, user)
    press = page.keyboard.press
    expect(page.get_by_role("list", name="Memories")).to_be_visible()
    press("/")
    expect(page.get_by_label("Search memories")).to_be_focused()
    page.keyboard.type("dog")
    notice(page, "results for dog")
    press("ArrowDown")
    expect(page.get_by_role("link", name=WRONG)).to_be_focused()
    press("Enter")
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text(WRONG)
    expect(heading).to_be_focused()
    press("Tab")
    expect(page.get_by_role("button", name="Edit")).to_be_focused()
    press("Enter")
    expect(page.get_by_label("What is remembered")).to_be_focused()
    press("Control+A")
    page.keyboard.type(RIGHT)
    press("Control+Enter")
    expect(heading).to_have_text(RIGHT)
    expect(heading).to_be_focused()
    press("Tab")
    press("Tab")
    expect(page.get_by_role("button", name="Undo the latest change")).to_be_focused()
    press("Enter")
    expect(heading).to_have_text(WRONG)
    press("Escape")
    expect(page.get_by_label("Search memories")).to_have_value("dog")
    expect(page.get_by_role("link", name=WRONG)).to_be_focused()


def test_changes_and_names_are_shown(page: Page, console_server: Server, user: str) -> None:
    opened(page, console_server, user, "timeline")
    changes = page.get_by_role("list", name="Changes").get_by_role("listitem")
    expect(changes).to_have_count(3)
    expect(changes.first).to_contain_text(TOLD[2])
    page.get_by_role("link", name="Names").click()
    expect(page.get_by_role("row", name="Rex 1")).to_contain_text("Ann (1)")
    expect(page.get_by_role("group", name="Names that memories have").get_by_text("Emily")).to_be_visible()
    page.get_by_role("link", name="Rex").click()
    expect(page.get_by_role("link", name=WRONG)).to_be_visible()


def test_what_holds_on_a_day_is_listed_and_what_is_written_says_what_it_may_contradict(
    page: Page, console_server: Server, user: str
) -> None:
    opened(page, console_server, user)
    page.get_by_role("button", name="Add a memory").click()
    page.get_by_label("What is to be remembered").fill(TOLD[1])
    page.get_by_role("button", name="Add", exact=True).click()
    notice(page, "It was remembered already")
    kept = f"{console_server.url}{API_PATH}/memories"
    rents = (
        {"content": "Ann's rent is 900.", "until": "2031"},
        {"content": "Ann's rent is 950.", "since": "2031"},
    )
    for given in rents:
        httpx.post(kept, params={"user": user}, json=given).raise_for_status()
    page.get_by_text("Filter", exact=True).click()
    page.get_by_label("What holds on").fill("2032-05-01")
    memories = page.get_by_role("list", name="Memories")
    expect(memories).to_contain_text("950")
    expect(memories).not_to_contain_text("900")
    page.get_by_label("Search memories").fill("rent")
    expect(page.get_by_role("list", name="Results").get_by_role("listitem").first).to_contain_text("950")
    page.get_by_label("What holds on").fill("")
    page.get_by_label("Search memories").fill("")
    expect(memories.get_by_text("may contradict another")).to_have_count(2)
    page.get_by_role("link", name="Ann's rent is 900.").click()
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("What is remembered").fill("Ann's rent is 940.")
    page.get_by_role("button", name="Save").click()
    notice(page, "It may contradict, or repeat in other words: Ann's rent is 950.")


def test_forgetting_asks_says_what_it_reaches_and_erases(
    page: Page, console_server: Server, user: str
) -> None:
    opened(page, console_server, user)
    page.get_by_role("link", name=TOLD[1]).click()
    page.get_by_role("button", name="Retire").click()
    notice(page, "Retired")
    expect(page.get_by_text("Retired: not recalled any more.")).to_be_visible()
    page.get_by_role("button", name="Forget…").click()
    asked = page.get_by_role("dialog", name="Forget this memory?")
    expect(asked).to_contain_text("It cannot be undone.")
    expect(asked).to_contain_text("does not reach backups")
    page.keyboard.press("Escape")
    expect(asked).to_be_hidden()
    page.get_by_role("button", name="Forget…").click()
    asked.get_by_role("button", name="Forget it").click()
    notice(page, "Forgotten: 2 versions")
    page.get_by_text("Filter", exact=True).click()
    page.get_by_label("Also list retired ones").check()
    expect(page.get_by_role("list", name="Memories").get_by_role("listitem")).to_have_count(2)


def test_a_text_is_never_markup_and_a_refusal_comes_with_its_hint(
    page: Page, console_server: Server, user: str
) -> None:
    opened(page, console_server, user)
    expect(page.get_by_role("link", name=TOLD[2])).to_be_visible()
    assert page.locator("main b").count() == 0
    page.get_by_role("link", name=WRONG).click()
    page.get_by_role("button", name="Edit").click()
    record = httpx.get(f"{console_server.url}{API_PATH}/memories", params={"user": user}).json()[0]
    by_another = {"content": "Ann's dog Rex is a pug."}
    changed = f"{console_server.url}{API_PATH}/memories/{record['key']}/update"
    httpx.post(changed, params={"user": user}, json=by_another).raise_for_status()
    page.get_by_label("What is remembered").fill(RIGHT)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("version")
    page.goto(f"{console_server.url}{CONSOLE_PATH}/#/memories/nosuchkey")
    expect(page.get_by_role("alert")).to_contain_text("has no memory nosuchkey. See `mneme memories list`.")


def test_the_page_fits_a_phone_and_is_readable_without_eyes_in_both_colours(
    page: Page, console_server: Server, user: str, pictures: Path
) -> None:
    key = _first_key(console_server, user)
    opened(page, console_server, user)
    check(page, console_server, "memories", "inbox", "timeline", "names", f"memories/{key}")
    page.screenshot(path=pictures / "console-phone.png")


def _first_key(server: Server, user: str) -> str:
    return str(httpx.get(f"{server.url}{API_PATH}/memories", params={"user": user}).json()[0]["key"])


def test_what_was_set_aside_is_dropped_or_tried_again(page: Page, tmp_path: Path) -> None:
    with_dead_letters(tmp_path / "home", "ann", "It is what it is.", "I have a cat.")
    with serving(tmp_path / "home") as server:
        opened(page, server, "ann", "inbox")
        letters = page.get_by_role("list", name="Messages").get_by_role("listitem")
        expect(letters).to_have_count(2)
        expect(letters.first).to_contain_text("no model made sense of it")
        letters.first.get_by_role("button", name="Drop…").click()
        page.get_by_role("button", name="Drop it").click()
        notice(page, "Dropped")
        expect(letters).to_have_count(1)
        letters.first.get_by_role("button", name="Retry").click()
        notice(page, "It waits again.")


def test_a_server_with_users_asks_for_the_key_and_shows_only_that_users(page: Page, tmp_path: Path) -> None:
    users = tmp_path / "users.json"
    ann, bob = (add_user(users, name) for name in ("ann", "bob"))
    with serving(tmp_path / "keyed", MNEME_AUTH=str(users)) as server:
        added = httpx.post(
            f"{server.url}{API_PATH}/memories", headers={"x-api-key": ann}, json={"content": TOLD[0]}
        )
        added.raise_for_status()
        page.goto(f"{server.url}{CONSOLE_PATH}/")
        for key, text in ((bob, "Nothing is remembered yet"), (ann, WRONG)):
            page.get_by_label("Key").fill(key)
            page.get_by_role("button", name="Open").click()
            expect(page.locator("main")).to_contain_text(text)
            expect(page.get_by_label("User")).to_have_count(0)
            assert page.evaluate("[localStorage.length, document.cookie]") == [0, ""]
            page.get_by_role("button", name="Forget the key").click()
        expect(page.get_by_label("Key")).to_be_visible()


def test_ten_thousand_memories_open_and_are_searched(page: Page, tmp_path: Path) -> None:
    """Print how long it takes; what a machine with other work measures is not asserted."""
    with_memories(tmp_path / "home", "many", MANY)
    with serving(tmp_path / "home") as server:
        opened(page, server, "many")
        rows = page.get_by_role("list", name="Memories").get_by_role("listitem")
        expect(rows).to_have_count(50)
        print(f"\nfirst view of {MANY} memories: {sorted(_reloads(page))} ms")
        print(f"results after typing: {sorted(_searches(page))} ms")
        page.get_by_label("Search memories").fill("")
        page.get_by_role("button", name="Next").click()
        expect(page.get_by_text(f"51 to 100 of {MANY:,}")).to_be_visible()


MANY = 10_000


def _reloads(page: Page) -> list[int]:
    """Return milliseconds until the rows are there, each time the page is loaded anew."""
    times = []
    for _ in range(5):
        page.reload(wait_until="commit")
        page.wait_for_selector(".rows a")
        times.append(round(page.evaluate("performance.now()")))
    return times


def _searches(page: Page) -> list[int]:
    """Return milliseconds from a letter that is typed until what is searched for is shown."""
    page.get_by_label("Search memories").fill("novel")
    expect(page.get_by_role("list", name="Results")).to_be_visible()
    return [round(page.evaluate(SEARCH, f"number {number}")) for number in range(4000, 4010)]


SEARCH = """(text) => new Promise((found) => {
    const field = document.getElementById("search"), begun = performance.now();
    const first = () => document.querySelector(".rows a")?.textContent ?? "";
    const look = () => first().includes(text) && found(performance.now() - begun);
    new MutationObserver(look).observe(document.body, {subtree: true, childList: true, characterData: true});
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(field, text);
    field.dispatchEvent(new Event("input", {bubbles: true}));
})"""
