"""Somebody looks at what a team learned, discussed and shared, and decides."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from mneme.api.operation import API_PATH
from tests.console.console import check, notice, opened, turned
from tests.console.filled import with_a_team
from tests.doubles.command_line import run_mneme
from tests.doubles.langgraph_server import Server, serving
from tests.doubles.quiet import quiet

pytestmark = pytest.mark.console


@pytest.fixture(scope="module")
def team_server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Give a server with what a team made."""
    home = tmp_path_factory.mktemp("team") / "home"
    with_a_team(home, "local")
    run_mneme(("household", "run", "--agents", "rules", "--members", "2", "--id", "tea"), quiet(home))
    with serving(home) as running:
        yield running


def test_a_card_is_found_and_promoted_and_taken_back(page: Page, team_server: Server, pictures: Path) -> None:
    opened(page, team_server, "ann", "cards")
    cards = page.get_by_role("list", name="Cards").get_by_role("listitem")
    expect(cards).to_have_count(2)
    page.get_by_label("Status").select_option("disputed")
    expect(cards).to_have_count(1)
    page.get_by_label("Search for a task").fill("hash index for a lookup")
    page.get_by_role("list", name="Results").get_by_role("link", name="Use a hash index").click()
    expect(page.get_by_role("cell", name="t0")).to_be_visible()

    page.get_by_role("button", name="Promote…").click()
    page.get_by_label("Who approves").fill("Ann")
    page.get_by_role("button", name="Promote", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("cannot be promoted")
    for label in (
        "It solved the task",
        "It is faster, or new",
        "It brings no new failures",
        "It can be used",
    ):
        page.get_by_label(label).check()
    page.get_by_role("button", name="Promote", exact=True).click()
    notice(page, "Promoted: it is verified.")

    page.get_by_label("Reason for what you do").fill("It is outdated.")
    page.get_by_role("button", name="Deprecate").click()
    notice(page, "Deprecated")
    latest = page.get_by_role("region", name="Versions").get_by_role("article").first
    expect(latest.locator("ins")).to_contain_text("deprecated")
    expect(latest).to_contain_text("It is outdated.")
    page.screenshot(path=pictures / "console-card.png")
    page.get_by_role("button", name="Roll back to version 1").click()
    notice(page, "is as version 1 was")
    expect(page.get_by_role("button", name="Deprecate")).to_be_visible()


def test_a_dispute_shows_both_sides_and_is_decided(page: Page, team_server: Server) -> None:
    opened(page, team_server, "ann", "disputes")
    page.get_by_role("link", name="Use no index for small tables").click()
    expect(page.get_by_role("region", name="The card")).to_contain_text("Use a covering index for lookups.")
    expect(page.get_by_role("region", name="The finding")).to_contain_text("small table -> scan")
    check(page, team_server, page.url.partition("#/")[2])
    page.get_by_label("Both are right").check()
    page.get_by_label("Why").fill("It depends on the size.")
    page.get_by_label("Who decides").fill("Ann")
    page.get_by_label("What the card then claims").fill("Use an index where the table is large.")
    page.get_by_label("When the finding holds").fill("a small table")
    page.get_by_label("What to do then").fill("scan it")
    page.get_by_role("button", name="Decide").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Dispute: resolved")
    page.get_by_role("main").get_by_role("link", name="Use a covering index").click()
    expect(page.get_by_text("When a small table: scan it").first).to_be_visible()


def test_a_discussion_shows_what_changed_in_a_memory_by_turn(page: Page, team_server: Server) -> None:
    opened(page, team_server, "ann", "discussions")
    page.get_by_role("link", name="Plan a pipeline.").click()
    expect(page.get_by_role("article", name="Turn 1")).to_contain_text("We want a fast pipeline.")
    memories = page.get_by_role("region", name="Memories by turn")
    expect(memories.locator("ins")).to_contain_text("cheap")
    page.get_by_label("After turn").select_option(label="1")
    expect(memories.locator("ins")).to_contain_text("fast")
    expect(memories.locator("del")).to_contain_text("unknown")


def test_a_discussion_says_why_it_is_out_of_date_and_gets_an_agreement_back(
    page: Page, team_server: Server
) -> None:
    opened(page, team_server, "ann", "discussions")
    why = "out of date What it was made from was corrected: it was cut"
    rows = page.get_by_role("list", name="Discussions").get_by_role("listitem")
    expect(rows.filter(has_text="Plan a feast.")).to_contain_text(why)
    expect(rows.filter(has_text="Plan a pipeline.")).not_to_contain_text("out of date")
    page.get_by_role("link", name="Plan a feast.").click()
    expect(page.get_by_role("main")).to_contain_text(why)

    taken_back = page.get_by_role("region", name="Taken back")
    soup = taken_back.get_by_role("article", name="Food: There is soup.")
    expect(soup).to_contain_text("by test, version 2: too hot")
    check(page, team_server, "discussions/d2")
    taken_back.get_by_label("Why it holds").fill("It is winter.")
    soup.get_by_role("button", name="Bring it back").click()
    notice(page, "It holds again, since version 3.")
    expect(taken_back).to_be_hidden()
    expect(page.get_by_role("main")).to_contain_text(why)
    page.get_by_role("link", name="Look at its sources, and settle it").click()
    expect(page.get_by_role("region", name="What it was made from")).to_contain_text("The budget is 500.")
    page.get_by_role("button", name="It still holds").click()
    notice(page, "It holds all the same.")
    turned(page, team_server, "discussions/d2")
    expect(page.get_by_text("out of date")).to_be_hidden()


def test_a_retriever_is_rolled_back(page: Page, team_server: Server) -> None:
    opened(page, team_server, "ann", "pools")
    page.get_by_role("link", name="limericks").click()
    expect(page.get_by_role("article", name="Pair")).to_contain_text("A young man.")
    page.get_by_role("button", name="Use the untrained embedder").click()
    notice(page, "In use: the untrained embedder.")
    page.get_by_role("button", name="Use version 1").click()
    notice(page, "In use: version 1.")


def test_a_run_that_asked_a_person_goes_on_with_the_answer(page: Page, team_server: Server) -> None:
    opened(page, team_server, "ann", "reviews")
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    for _ in range(2):
        ask_about_a_rubric(team_server)
    turned(page, team_server, "household")
    turned(page, team_server, "reviews")
    waiting = page.get_by_role("list", name="What waits").get_by_role("listitem")
    expect(waiting).to_have_count(2)
    waiting.first.get_by_role("link", name="The rubric of Literary Creation, drafted by rules").click()
    check(page, team_server, page.url.partition("#/")[2])
    page.get_by_label("Change it").check()
    criteria = page.get_by_role("textbox", name="Criteria")
    criteria.fill(criteria.input_value().replace('"points": 30', '"points": 90'))
    page.get_by_role("button", name="Answer").click()
    expect(page.get_by_role("alert")).to_contain_text("100")
    page.get_by_label("Change it").check()
    criteria.fill(SHORT_RUBRIC)
    page.get_by_label("Why").fill("Wit is all.")
    page.get_by_role("button", name="Answer").click()
    notice(page, "Answered.")
    expect(waiting).to_have_count(1)
    frozen = httpx.get(f"{team_server.url}{API_PATH}/rubrics/literary_creation").json()
    assert [each["name"] for each in frozen["rubric"]["criteria"]] == ["Wit"]
    waiting.get_by_role("link").click()
    page.get_by_label("Reject it").check()
    page.get_by_role("button", name="Answer").click()
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()


SHORT_RUBRIC = '[{"name": "Wit", "points": 100, "looks_at": "It is funny."}]'


def ask_about_a_rubric(server: Server) -> None:
    """Let a run draft a rubric, up to the question whether it is good."""
    thread = httpx.post(f"{server.url}/threads", json={}).json()["thread_id"]
    given = {
        "assistant_id": "rubric_design",
        "input": {"domain": "literary_creation"},
        "context": {"designer": "rules", "team": "local"},
    }
    httpx.post(f"{server.url}/threads/{thread}/runs/wait", json=given, timeout=60).raise_for_status()


def test_a_household_run_is_played_again_step_by_step(
    page: Page, team_server: Server, pictures: Path
) -> None:
    opened(page, team_server, "ann", "household")
    page.get_by_role("listitem").filter(has_text="tea").get_by_role("link").click()
    alice = page.get_by_role("row", name="Alice")
    expect(alice).to_contain_text("nothing")
    expect(page.get_by_role("img", name="Floor plan: Alice is in the")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_be_focused()  # the page sets the focus when it is there
    step = page.get_by_role("slider", name="Step")
    step.focus()
    page.keyboard.press("ArrowRight")
    expect(step).to_have_attribute("aria-valuetext", re.compile("Step 1 of"))
    page.keyboard.press("End")
    expect(page.get_by_text(re.compile(r"^(\d) of \1$")).first).to_be_visible()
    page.screenshot(path=pictures / "console-household.png")
    page.get_by_role("button", name="Play").click()
    expect(step).to_have_attribute("aria-valuetext", re.compile("Step 1 of"))
    page.get_by_role("button", name="Pause").click()
    check(page, team_server, "household", "household/tea")


def test_users_and_teams_that_are_there_are_offered(page: Page, team_server: Server) -> None:
    added = {"content": "Zoe has a cat."}
    httpx.post(f"{team_server.url}{API_PATH}/memories", params={"user": "zoe"}, json=added).raise_for_status()
    opened(page, team_server, "ann")
    page.get_by_role("textbox", name="User").fill("z")
    page.get_by_role("option", name="zoe").click()
    expect(page.get_by_role("link", name="Zoe has a cat.")).to_be_visible()
    page.get_by_role("textbox", name="Team").fill("lo")
    expect(page.get_by_role("option", name="local")).to_be_visible()


def test_every_page_fits_a_phone(page: Page, team_server: Server) -> None:
    opened(page, team_server, "ann")
    check(page, team_server, "cards", "disputes", "metrics", "discussions", "discussions/d1", "pools")
    turned(page, team_server, "metrics")
    expect(page.get_by_role("listitem", name="Deprecations")).to_be_visible()
    check(page, team_server, "pools/limericks")


def test_everything_is_asked_at_once_and_what_is_out_of_date_is_settled(
    page: Page, team_server: Server
) -> None:
    def sent(path: str, body: dict[str, str]) -> str:
        answer = httpx.post(f"{team_server.url}{API_PATH}/{path}", params={"user": "max"}, json=body)
        return str(answer.raise_for_status().json()["key"])

    told = sent("memories", {"content": "Reporting runs on PostgreSQL."})
    copy = sent(f"promote/{told}", {"team": "local"})
    opened(page, team_server, "max", "recall")
    page.get_by_label("Ask everything").fill("Which database does reporting run on?")
    results = page.get_by_role("list", name="Results").get_by_role("listitem")
    expect(results).to_have_count(1)  # what was shared and its source say the same
    sent(f"memories/{told}/update", {"content": "Reporting runs on DuckDB.", "reason": "it moved"})
    turned(page, team_server, "memories")
    turned(page, team_server, "recall")
    page.get_by_role("list", name="Out of date").get_by_role("link", name="PostgreSQL").click()
    way = page.get_by_role("region", name="What it was made from").get_by_role("article")
    expect(way).to_contain_text("Reporting runs on DuckDB.")
    page.get_by_label("Reason").fill("DuckDB reads its files.")
    page.get_by_role("button", name="It still holds").click()
    notice(page, "It holds all the same.")
    check(page, team_server, "recall", f"recall/{copy}", f"recall/{told}")
    expect(page.get_by_role("region", name="What was made of it").get_by_role("article")).to_have_count(1)


def test_what_may_not_hold_together_is_settled(page: Page, team_server: Server) -> None:
    for text in ("My rent is 900 euros.", "My rent is 950 euros."):
        told = {"content": text}
        httpx.post(
            f"{team_server.url}{API_PATH}/memories", params={"user": "kim"}, json=told
        ).raise_for_status()
    opened(page, team_server, "kim", "recall")
    pairs = page.get_by_role("list", name="What may not hold together").get_by_role("listitem")
    expect(pairs).to_have_count(1)
    check(page, team_server, "recall")
    pairs.first.get_by_role("button", name="Keep the newer").click()
    notice(page, "Settled.")
    expect(page.get_by_text("Nothing contradicts anything else.")).to_be_visible()
    left = httpx.get(f"{team_server.url}{API_PATH}/memories", params={"user": "kim"}).json()
    assert [each["memory"]["content"] for each in left] == ["My rent is 950 euros."]
