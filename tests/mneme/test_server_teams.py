"""A real `langgraph dev` that serves teams."""

import json
import subprocess
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from langgraph_sdk.client import LangGraphClient

from mneme.api.cards import Cards
from mneme.environments.sql_tuning.tasks import story
from mneme.server.users import add_user
from tests.doubles.command_line import failed, run_mneme
from tests.doubles.langgraph_server import Server, serving

WORKFLOWS = (
    ("share", "pool", "import", "--shipped", "--agent", "limerick"),
    ("share", "ask", "--agent", "limerick", "A limerick about a librarian who is afraid of mice."),
    ("learn", "--suite", "story", "--rows", "20000"),
    ("household", "run", "--task", "Set up Table", "--members", "2", "--seed", "4"),
    ("discuss", "Design the reporting database for the sales team.", "--max-turns", "4"),
    ("recall", "What do my reporting queries need?"),
)


@pytest.mark.xdist_group("server")
def test_all_workflows_serve_one_team_beside_one_another(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is shown what those before it left behind, a dispute is tried, and nothing blocks the server."""
    monkeypatch.chdir(tmp_path)
    for words in WORKFLOWS:
        done = run_mneme(words, {**server.environment, "MNEME_TEAM": "everything"})
        assert done.returncode == 0, (words, done.stderr)


@pytest.mark.long
@pytest.mark.xdist_group("server")
async def test_a_team_is_shared_by_the_roles_of_the_server(tmp_path: Path) -> None:
    file = tmp_path / "users.json"
    ann, bob, eve = (add_user(file, name) for name in ("ann", "bob", "eve"))
    (tmp_path / "roles.yaml").write_text("teams: {analysts: {ann: [read, write, promote], bob: [read]}}")
    roles = {"MNEME_AUTH": str(file), "MNEME_ROLES": str(tmp_path / "roles.yaml")}
    with serving(tmp_path / "home", **roles) as server:

        def as_(key: str, *words: str) -> "subprocess.CompletedProcess[str]":
            server.environment["MNEME_KEY"] = key
            return server.mneme(*words)

        added = as_(ann, "add", "Reporting uses the database PostgreSQL.", "--json")
        shared = as_(ann, "promote", json.loads(added.stdout)["key"], "analysts")
        assert shared.returncode == 0, shared.stderr
        recall = ("recall", "Which database does reporting use?", "--team", "analysts")
        assert "PostgreSQL" in as_(bob, *recall).stdout
        assert as_(eve, *recall).stdout.strip() == "nothing"
        assert as_(bob, "cards", "list", "--team", "analysts").returncode == 0
        failed(as_(bob, "cards", "add", "Index it.", "--team", "analysts"), "bob may not write")
        assert "BlockingError" not in server.log.read_text()


LEARNING: dict[str, Any] = dict.fromkeys(("researcher", "devils_advocate", "leader", "monitor"), "rules") | {
    "rows": 20_000,
    "environment": "sql_tuning",
    "schema_name": "transactions",
}


@pytest.mark.xdist_group("server")
class TestTeams:
    """A team that learns, driven through the server."""

    @pytest.mark.long
    async def test_a_task_streams_its_steps_and_leaves_a_card(
        self, server: Server, client: LangGraphClient
    ) -> None:
        team, task = uuid4().hex, story()[2]
        given: Any = {"task": task.description, "query": task.query, "wanted_speed_up": 1.5}
        thread = (await client.threads.create())["thread_id"]
        steps = []
        async for part in client.runs.stream(
            thread,
            "compound_learning",
            input=given,
            context={**LEARNING, "team": team},
            stream_mode="custom",
        ):
            assert part.event != "error", part.data
            if part.event == "custom":
                steps.append(part.data["step"])
        assert steps[0] == "recall" and steps[-1] == "keep"
        listed = server.mneme("cards", "list", "--team", team, "--json")
        (card,) = [json.loads(line) for line in listed.stdout.splitlines()]
        assert "range filter" in card["claim"], listed.stderr
        assert "claim:" in server.mneme("cards", "show", card["id"][:10], "--team", team).stdout
        exported = server.mneme("cards", "export", "--team", team).stdout
        imported = server.mneme("cards", "import", "-", "--team", f"{team}-2", stdin=exported)
        assert "stored: 1" in imported.stdout, imported.stderr
        assert server.mneme("cards", "metrics", "--team", team, "--json").returncode in (0, 1)

    @pytest.mark.long
    async def test_a_dispute_waits_for_a_person_through_the_server(
        self, server: Server, client: LangGraphClient
    ) -> None:
        team = uuid4().hex
        task = story()[2]
        learned = server.mneme(
            *(
                "learn",
                task.description,
                "--query",
                task.query,
                "--schema",
                "transactions",
                "--rows",
                "20000",
            ),
            *("--team", team, "--agents", "rules", "--json"),
        )
        assert learned.returncode == 0, learned.stderr
        dispute = await disputed_on(server, team)
        tested = server.mneme(
            "disputes", "resolve", dispute, "--team", team, "--agents", "rules", "--rows", "2000"
        )
        assert tested.returncode == 1, tested.stderr + tested.stdout
        assert "waits for a person" in tested.stdout
        waiting = await client.threads.get(server.thread(f"dispute/{team}/{dispute}"))
        assert waiting["status"] == "interrupted"
        ((question,),) = waiting["interrupts"].values()
        assert question["value"]["action_requests"][0]["name"] == "resolve_dispute"
        no_rules = server.mneme("disputes", "resolve", dispute, "--decision", "merge", "--team", team)
        assert no_rules.returncode == 1 and "no rules that could be merged" in no_rules.stderr
        decided = server.mneme(
            *("disputes", "resolve", dispute, "--decision", "keep_old", "--reason", "it serves us"),
            *("--team", team, "--agents", "rules", "--json"),
        )
        assert decided.returncode == 0, decided.stderr
        ended = json.loads(decided.stdout)
        assert (ended["status"], ended["resolution"]["reason"]) == ("resolved", "it serves us")
        assert dispute in server.mneme("disputes", "list", "--team", team, "--json").stdout
        twice = server.mneme("disputes", "resolve", dispute, "--decision", "merge", "--team", team)
        assert twice.returncode == 1 and "resolved" in twice.stderr


async def disputed_on(server: Server, team: str) -> str:
    """Open a dispute in words that nothing can be tried on, so that a person must decide."""
    listed = server.mneme("cards", "list", "--team", team, "--json")
    card = json.loads(listed.stdout.splitlines()[0])["id"]
    async with server.operations(Cards, team) as cards:
        opened = await cards.open_dispute(card, "something else", reason="a test")
    return opened.id
