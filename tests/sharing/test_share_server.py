"""Memory Sharing through a real `langgraph dev`: it streams, stores, trains, and waits for a person."""

import json
from pathlib import Path
from typing import Any

import pytest

from mneme.nodes.sharing.training_wake import TRAINING_THREAD
from tests.doubles.langgraph_server import Server
from tests.doubles.waiting import eventually

pytestmark = pytest.mark.xdist_group("server")

RULES = {"answerer": "rules", "scorer": "rules", "grader": "rules"}
POEMS = "literary_creation"


def share(server: Server, *words: str, stdin: str = "") -> list[dict[str, Any]]:
    done = server.mneme("share", *words, "--json", stdin=stdin)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


async def test_an_answer_streams_is_stored_and_wakes_the_training(server: Server) -> None:
    (added,) = share(server, "pool", "import", "--shipped", "--agent", "limerick")
    assert added["added"] == 24
    context: Any = {**RULES, "agent": "limerick", "threshold": 0}
    pieces: list[str] = []
    values: Any = {}
    async with server.client() as client:
        thread = await client.threads.create()
        async for part in client.runs.stream(
            thread["thread_id"],
            "memory_sharing",
            input={"question": "Sing of a cat who steers a ship."},
            context=context,
            stream_mode=["messages-tuple", "values"],
        ):
            told: Any = part.data
            assert part.event != "error", told
            if part.event == "messages":
                pieces.append(told[0]["content"])
            elif part.event == "values":
                values = told
        assert len(pieces) > 5 and "".join(pieces) == values["answer"]
        assert values["stored"] and len(values["shown"]) == 3
        training = server.thread(TRAINING_THREAD.format(team="local", pool=POEMS))

        async def trained() -> bool:
            return (await client.threads.get(training))["status"] == "idle"

        await eventually(trained)
        state: Any = await client.threads.get_state(training)
        assert state["values"]["why"]
    assert server.mneme("add", "The ship's cat is called Tom.").returncode == 0
    asked = ("ask", "--agent", "limerick", "--agents", "rules", "--no-train", "A limerick on the ship's cat")
    assert "shared  The ship's cat is called Tom. [" in server.mneme("share", *asked).stdout
    (pair,) = [
        each for each in share(server, "pool", "list", "--pool", POEMS) if each["key"] == values["key"]
    ]
    assert pair["pair"]["prompt"] == "Sing of a cat who steers a ship."
    (status,) = share(server, "retriever", "status", "--pool", POEMS)
    assert status["memories"] == 25


async def test_a_rubric_waits_for_its_review_and_is_frozen(server: Server) -> None:
    async with server.client() as client:
        thread = (await client.threads.create())["thread_id"]
        given = {"domain": "plan_generation"}
        designer = {"designer": "rules"}
        await client.runs.wait(thread, "rubric_design", input=given, context=designer)
        waiting = await client.threads.get(thread)
        assert waiting["status"] == "interrupted"
        ((question,),) = waiting["interrupts"].values()
        assert question["value"]["action_requests"][0]["name"] == "freeze_rubric"
        assert "criteria" in question["response_schema"]["properties"]
        wrong = {"decision": "edit", "criteria": [{"name": "Use", "points": 7, "looks_at": "It helps."}]}
        await client.runs.wait(thread, "rubric_design", command={"resume": wrong}, context=designer)
        ((again,),) = (await client.threads.get(thread))["interrupts"].values()
        assert "sum to 7, not to 100" in again["value"]["wrong"]
        approve = {"decision": "approve", "by": "ada"}
        await client.runs.wait(thread, "rubric_design", command={"resume": approve}, context=designer)
        assert (await client.threads.get(thread))["status"] == "idle"
    (frozen,) = share(server, "rubric", "show", "plan_generation")
    assert (frozen["version"], frozen["by"]) == (1, "ada")


@pytest.mark.long
def test_the_command_line_grows_a_pool_through_the_server(server: Server, tmp_path: Path) -> None:
    standards = tmp_path / "standards.jsonl"
    standards.write_text(
        '{"agent": "riddle", "answer": "A candle. It is tall when new and short when old."}\n'
    )
    words = ("grow", "--domain", "unconventional_logic", "--from", str(standards), "--agents", "rules")
    (told,) = share(server, *words, "--threshold", "20", "--calls", "8")
    assert told["memories"] >= 2 and told["asked"]["calls"] <= 8
    refused = server.mneme("share", "ask", "--agent", "nobody", "--agents", "rules", "Sing.")
    assert refused.returncode == 1 and 'no agent "nobody"' in refused.stderr
