"""From an empty home: told in an editor, found in a chat, corrected in the console, and so in the editor."""

import os
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.console.console import notice, turned
from tests.doubles.command_line import run_mneme
from tests.doubles.editor import command_of, played, prompt, told
from tests.doubles.own_server import chat, chat_server, own_server, user

pytestmark = pytest.mark.console

WRONG, RIGHT = "The staging server of kite is at port 8080.", "The staging server of kite is at port 9090."
ASKED = "At which port is the staging server of kite?"


def test_a_fact_goes_from_the_editor_to_the_chat_to_the_console_and_back(page: Page, tmp_path: Path) -> None:
    without = {name: value for name, value in os.environ.items() if not name.startswith(("CLAUDE", "CODEX"))}
    home = tmp_path / "mneme"
    person = {**without, "HOME": str(tmp_path), "MNEME_HOME": str(home), "MNEME_AUTO": "rules"}
    assert run_mneme(["connect", "claude-code"], person).returncode == 0
    hook = command_of(tmp_path, "claude-code", "UserPromptSubmit")
    with chat_server() as model, own_server(home, MNEME_UPSTREAM=model.url) as server:
        assert played(hook, prompt(WRONG), person) == {}
        played(hook, {"session_id": "s1", "hook_event_name": "SessionEnd"}, person)
        assert WRONG in server.memories()

        answer = chat(server, user(ASKED))
        assert answer.headers["x-mneme-recalled"] == "1"
        assert WRONG in model.shown()

        turned(page, server, "memories")
        page.get_by_role("link", name=WRONG).click()
        page.get_by_role("button", name="Edit").click()
        page.get_by_label("What is remembered").fill(RIGHT)
        page.get_by_role("button", name="Save").click()
        notice(page, "Saved as version 2.")
        expect(page.get_by_role("article", name="Version 2")).to_contain_text("by console")

        shown = told(played(hook, prompt(ASKED, "s2"), person))
        assert RIGHT in shown and WRONG not in shown
        chat(server, user(ASKED))
        assert RIGHT in model.shown() and WRONG not in model.shown()
