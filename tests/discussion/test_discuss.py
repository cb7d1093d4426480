"""`mneme discuss` as a user runs it: real files, a real process that is killed, a real server."""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema_rs
import pytest
import yaml
from typer.testing import CliRunner

from mneme.cli.discussion.report import html
from mneme.cli.main import app
from mneme.core.errors import MnemeError
from mneme.core.settings import settings
from mneme.library.teams.team import load_team
from mneme.models.asking.asking import clear_endpoints
from mneme.nodes.discussion.carrying import without_issues
from mneme.prompts.discussion.document import write_document
from mneme.prompts.discussion.intrinsic_memory import contribute, delegate, evaluate, integrate
from mneme.prompts.discussion.memory_template import entries
from mneme.prompts.discussion.memory_update import update_memory
from mneme.stores.access import known_id
from tests.doubles.command_line import Running, failed, run_mneme
from tests.doubles.langgraph_server import Server, serving
from tests.doubles.ollama import Model, OllamaDouble, by_rules
from tests.doubles.quiet import quiet
from tests.doubles.served import answers_up_to
from tests.doubles.waiting import until, wait_until

TASK = """# Pipeline <script>alert(1)</script>
Design a data pipeline on AWS for real-time machine learning on cars: 6 camera sources in .jpg,
one lidar source in .pcd.bin, 5 radar sources in .pcd. Training and inference.
"""
ROOT = Path(__file__).parents[2]


class Done(NamedTuple):
    """How a command ended: what it printed, and what it refused."""

    status: int
    stdout: str
    refused: str


Run = Callable[..., Done]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return quiet(tmp_path / "home", PYTHONPATH=str(ROOT), COLUMNS="160")


@pytest.fixture
def mneme(tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Give the command line in this process, on a home of its own."""
    (tmp_path / "TASK.md").write_text(TASK)
    monkeypatch.chdir(tmp_path)

    def run(*words: str, stdin: str = "", fails: bool = False) -> Done:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        settings.cache_clear()
        clear_endpoints()
        done = CliRunner().invoke(app, ["discuss", *words], input=stdin)
        error = done.exception
        refused = f"{error} {error.hint}" if isinstance(error, MnemeError) else ""
        assert (done.exit_code != 0) == fails, (done.output, done.exception)
        return Done(done.exit_code, done.stdout, refused)

    yield run
    settings.cache_clear()
    clear_endpoints()


def test_a_task_becomes_a_document_a_transcript_and_a_report(mneme: Run, tmp_path: Path) -> None:
    told = mneme("TASK.md", "--experts", "data_pipeline", "--agents", "rules", "--id", "first")
    assert "All deciding roles accepted" in told.stdout
    folder = tmp_path / "discussions" / "first"
    document = json.loads((folder / "PIPELINE_OVERVIEW.json").read_text())
    schema = json.loads((folder / "PIPELINE_OVERVIEW.schema.json").read_text())
    jsonschema_rs.validate(schema, document)
    assert not jsonschema_rs.is_valid(schema, document | {"Platform": ""})
    assert not jsonschema_rs.is_valid(schema, document | {"Implementation difficulties": 11})
    assert document["Platform"] == "not discussed" and "Component 8" in document
    turns = [json.loads(line) for line in (folder / "transcript.jsonl").read_text().splitlines()]
    assert [turn["number"] for turn in turns] == list(range(1, len(turns) + 1))
    memories = [json.loads(line) for line in (folder / "memories.jsonl").read_text().splitlines()]
    assert len(memories) == 8
    markdown, page = (folder / "report.md").read_text(), (folder / "report.html").read_text()
    for part in ("# PIPELINE_OVERVIEW.json", "## Transcript", "memory at the end", "answered by rules"):
        assert part in markdown
    assert "<h2>Transcript</h2>" in page and "<script" not in page

    listed = json.loads(mneme("list", "--json").stdout)
    assert (listed["id"], listed["ended"]) == ("first", "consensus")
    shown = mneme("show", "--json").stdout.splitlines()
    assert len(shown) == 1 + len(turns)
    early = json.loads(mneme("memory", "data_engineer", "--turn", "4", "--json").stdout)
    late = json.loads(mneme("memory", "data_engineer", "--json").stdout)
    assert (early["turn"], early["version"]) == (4, 2) and late["turn"] > 4
    diff = mneme("memory", "data_engineer", "--since-turn", "0", "--turn", "4").stdout
    assert re.search(r"^\+ .*because it is a duty", diff, re.MULTILINE)
    assert "the discussion begins" in mneme("memory", "data_engineer", "--history").stdout
    again = mneme("report", "--out", "elsewhere", "--json").stdout
    assert (tmp_path / "elsewhere" / "report.html").read_text() == page and "elsewhere" in again
    other = mneme("Paint the town hall blue, please.", "--agents", "rules", "--id", "first", fails=True)
    assert "first is another discussion, of another task or team" in other.refused


def test_a_report_loads_nothing_from_elsewhere() -> None:
    page = html('![a *map*](https://evil.example/x.png?who="me") ![](http://evil.example/y)', "a report")
    assert "<img" not in page and "default-src 'none'" in page
    assert 'href="https://evil.example/x.png' in page and ">a map</a>" in page
    assert ">http://evil.example/y</a>" in page


def test_a_person_speaks_stops_and_goes_on(mneme: Run) -> None:
    words = ("--agents", "rules", "--as", "business_objectives", "--max-turns", "5")
    waits = mneme("TASK.md", *words, "--id", "mine", stdin="", fails=True)
    assert waits.status == 3 and "waits for you" in waits.stdout
    taken = len(mneme("show", "--json").stdout.splitlines()) - 1
    assert taken and json.loads(mneme("list", "--json").stdout)["turns"] == taken
    assert mneme("show").stdout.rstrip().endswith("The discussion has not ended.")
    assert " Pipeline <script>" in mneme("list").stdout and "# Pipeline" not in mneme("list").stdout
    other = mneme("--id", "mine", "--as", "data_engineer", fails=True)
    assert "was begun with business_objectives" in other.refused
    done = mneme(
        "--id", "mine", "--agents", "rules", stdin="Proposal: Diesel pump (rotary) because we need it.\ny\n"
    )
    assert "a person" in done.stdout
    shown = mneme("show", "mine").stdout
    assert "Diesel pump" in shown
    assert shown == mneme("show", "--id", "mine").stdout == mneme("show", "-d", "mine").stdout
    machine = mneme(
        "TASK.md", *words, "--id", "other", "--json", stdin='{"message": "Cheap!", "accept": true}\n'
    )
    lines = [json.loads(line) for line in machine.stdout.splitlines()]
    assert any("waits" in line for line in lines)
    assert lines[-1]["ended"] == "turn limit"


def test_a_bound_that_leaves_no_document_still_leaves_a_transcript_and_a_report(
    mneme: Run, tmp_path: Path
) -> None:
    told = mneme("TASK.md", "--agents", "rules", "--max-turns", "1", "--id", "short")
    assert "before all accepted" in told.stdout and "No PIPELINE_OVERVIEW.json" in told.stdout
    folder = tmp_path / "discussions" / "short"
    assert not (folder / "PIPELINE_OVERVIEW.json").exists()
    assert len((folder / "transcript.jsonl").read_text().splitlines()) == 1
    assert "at least 1 of Component, and 0 were found" in (folder / "report.md").read_text()


def test_a_document_is_approved_or_discussed_on(mneme: Run) -> None:
    told = mneme(
        "TASK.md", "--agents", "rules", "--approve", "--id", "a", stdin="What about a data catalogue?\nyes\n"
    )
    assert "data catalogue" in told.stdout and "All deciding roles accepted" in told.stdout


def test_what_agents_carry_is_begun_with_seen_and_forgotten(mneme: Run) -> None:
    briefly = ("--agents", "rules", "--max-turns", "6")
    mneme("TASK.md", "--id", "first", "--carry", *briefly)
    carried = {
        each["agent"]: each for each in map(json.loads, mneme("carried", "--json").stdout.splitlines())
    }
    assert set(carried) == set(load_team("data_pipeline").names)
    assert {each["discussion"] for each in carried.values()} == {"first"}
    mneme("TASK.md", "--id", "second", "--carry", *briefly)
    mneme("TASK.md", "--id", "third", *briefly)
    agent = "business_objectives"
    begun, without = (
        json.loads(mneme("memory", agent, each, "--turn", "0", "--json").stdout)["memory"]
        for each in ("second", "third")
    )
    kept = [each.removeprefix("Earlier: ") for each in entries(begun)]
    assert kept and set(kept) <= set(entries(carried[agent]["memory"])), "what it brings is what it had"
    assert entries(without) == [], "nothing is carried unasked"
    assert "from second, version 2" in mneme("carried").stdout
    mneme("forget-carried", "--role", agent, "--yes")
    assert agent not in mneme("carried").stdout
    mneme("forget-carried", "--yes")
    assert mneme("carried").stdout.strip() == "nothing"
    assert "carries anything" in mneme("forget-carried", "--yes", fails=True).refused
    refused = mneme("TASK.md", "--carry", "--memory", "none", *briefly, fails=True).refused
    assert "has none of single agents" in refused


def test_an_ended_tasks_acceptances_and_issues_are_not_carried(mneme: Run, tmp_path: Path) -> None:
    parts = ("camera", "lidar", "radar", "store", "label", "train", "test", "serve", "watch", "bill", "audit")
    demands = "".join(f"- The {part} stage must be built.\n" for part in parts)
    (tmp_path / "LONG.md").write_text(f"{TASK}{demands}")
    mneme("LONG.md", "--id", "first", "--carry", "--agents", "rules")
    said = [json.loads(line) for line in mneme("show", "first", "--json").stdout.splitlines()]
    raised = [issue["about"] for turn in said for issue in turn.get("raises", [])]
    agents = load_team("data_pipeline").names
    ended = {
        name: entries(json.loads(mneme("memory", name, "first", "--json").stdout)["memory"])
        for name in agents
    }
    assert raised and any(each in ended["evaluation"] for each in raised)
    assert any("I accept the solution" in each for each in ended["data_engineer"])
    carried = {
        each["agent"]: entries(each["memory"])
        for each in map(json.loads, mneme("carried", "--json").stdout.splitlines())
    }
    brought = [entry for agent in agents for entry in carried[agent]]
    assert brought and not {*raised}.intersection(brought)
    assert any("stage must be built" in each for each in carried["data_engineer"]), "what is of use is"


def test_an_issue_of_a_task_is_not_carried_beyond_it() -> None:
    issue, fact = "Gap: no component for model registry", "The model registry is MLflow: it has one."
    memory = {"progress": {"settled": [issue, fact]}, "next_step": issue}
    left = without_issues(memory, ["no component for model registry."])
    assert left == {"progress": {"settled": [fact]}, "next_step": issue}


def test_a_discussion_says_that_it_is_out_of_date(mneme: Run, tmp_path: Path) -> None:
    mneme("list")
    runner, word = CliRunner(), "The cameras of the cars send images in .jpg"
    key = json.loads(runner.invoke(app, ["add", f"{word}.", "--json"]).stdout)["key"]
    mneme("TASK.md", "--agents", "rules", "--max-turns", "6", "--id", "d1")
    assert not json.loads(mneme("list", "--json").stdout)["stale"]
    corrected = runner.invoke(
        app, ["memories", "update", key, f"{word} and .png.", "--reason", "new cameras"]
    )
    assert corrected.exit_code == 0, corrected.output
    why = "What it was made from was corrected: new cameras"
    assert json.loads(mneme("list", "--json").stdout)["stale"] == why
    assert "out of date" in mneme("list").stdout
    for words in (["show"], ["report", "--out", "out"]):
        assert f"Out of date: {why}" in mneme(*words).stdout
    assert f"Out of date: {why}" in (tmp_path / "out" / "report.md").read_text()


def test_a_new_team_is_reviewed_before_it_is_used(
    mneme: Run, tmp_path: Path, environment: dict[str, str]
) -> None:
    environment["COLUMNS"] = "40"
    made = mneme(
        *(
            "new-team",
            "shop",
            "--task",
            "Daily orders of a shop must reach a warehouse for reports, cheaply.",
        ),
        *("--role", "Data Engineer: ingestion, storage, quality, processing of each data source"),
        *("--role", "Controller: cost, reports", "--agents", "rules", "--like", "data_pipeline"),
        fails=True,
    )
    assert "set reviewed: true" in made.stdout
    file = tmp_path / "shop.yaml"
    assert file.read_text() in made.stdout, "it can be copied"
    team = yaml.safe_load(file.read_text())
    template = next(role["memory"] for role in team["roles"] if role["name"] == "data_engineer")
    assert "ingestion" in template["duties"] and template["position"]
    refused = mneme("A task for the shop.", "--experts", "shop.yaml", "--agents", "rules", fails=True)
    assert "reviewed" in refused.refused
    assert "exists already" in mneme("new-team", "shop", "--task", "x", fails=True).refused
    file.write_text(file.read_text().replace("reviewed: false", "reviewed: true"))
    mneme("Daily orders of a shop must reach a warehouse.", "--experts", "shop.yaml", "--agents", "rules")


def test_a_users_own_team_of_any_field_agrees_on_something(mneme: Run, tmp_path: Path) -> None:
    roles = (
        "--role",
        "Grower: what plants need, mould, harvest",
        "--role",
        "Électricien: sensors, wiring, power",
    )
    task = "Climate control of a greenhouse. The sensors must last a season. Mould must be seen at once."
    mneme("new-team", "grow", "--task", task, *roles, "--yes", "--agents", "rules", "--like", "data_pipeline")
    told = mneme(task, "-e", "grow.yaml", "--agents", "rules", "--id", "grow")
    assert "All deciding roles accepted" in told.stdout
    document = json.loads((tmp_path / "discussions" / "grow" / "PIPELINE_OVERVIEW.json").read_text())
    assert (
        "The sensors must last a season" in document["Component 1"]["name"] + document["Component 2"]["name"]
    )
    team = yaml.safe_load((tmp_path / "grow.yaml").read_text())
    assert "electricien" in [role["name"] for role in team["roles"]]


@pytest.mark.parametrize("led", [False, True])
def test_a_team_is_designed_for_its_task(
    mneme: Run, tmp_path: Path, environment: dict[str, str], led: bool
) -> None:
    refused = mneme("new-team", "hut", "--task", "Build a hut now.", "--agents", "rules", fails=True)
    assert "needs a model" in refused.refused
    parts = {name: [{"purpose": "Which", "name": name.title()}] for name in ("fields", "ratings", "report")}
    draft = {
        "reason": "It snows.",
        "experts": [{"duties": "Snow.", "title": "Carpenter"}, {"duties": "Wool.", "title": "Mason"}],
        **{"criteria": ["warmth", "little snow inside"], "led": led},
        **{"item": "Wall", "document": "HUT", "item_fields": [{"purpose": "x", "name": "of"}]},
    }
    slots = [{"purpose": "What", "many": True, "group": "", "name": f"slot_{n}"} for n in "abc"]
    with OllamaDouble(Model("llama3.1:8b")) as double:
        environment["MNEME_OLLAMA_URL"] = double.url
        template = json.dumps({"reason": "So.", "slots": slots})
        double.chat.reply(json.dumps(draft | parts), template, template)
        mneme("new-team", "hut", "--task", "Build a hut now.", "--yes", "--agents", MODEL)
    team = load_team(str(tmp_path / "hut.yaml"))
    assert team.document.name == "HUT.json"
    assert team.document.item == "Wall" and team.deciders == ["carpenter", "mason"]
    if led:
        assert "for warmth, little snow inside, and names" in team.role("evaluation").description
    else:
        assert team.names == ["carpenter", "mason", "documentation"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([""], "task: it is empty"),
        (["absent.md"], "Cannot read absent.md"),
        (["shwo"], "did you mean show"),
        (["new-taem"], "did you mean new-team"),
        (["."], "is a folder"),
        (["/"], "is a folder"),
        (["tasks/absent"], "no file tasks/absent"),
        (["absent.markdown"], "no file absent.markdown"),
        (["x", "--id", "../../x"], "cannot be an id"),
        (["x", "--id", "a/b"], "cannot be an id"),
        (["x", "--max-turns", "99999999"], "--max-turns"),
        (["x", "--max-turns", "-1"], "--max-turns"),
        (["x", "--context-tokens", "-5"], "--context-tokens"),
        (["x", "--as", "documentation", "--agents", "rules"], "never has the floor"),
        (["x", "--experts", "nope"], "is called 'nope'. --experts: one of data_pipeline"),
        (["x", "--team", "design_review"], "--experts"),
        (["x", "--as", "nobody"], "no role 'nobody'"),
        (["x", "--agents", "solver="], "ROLE=MODEL"),
        (["x", "--agents", "nobody=rules"], "no role 'nobody'"),
        (["x", "--memory", "elephant"], "--memory elephant: "),
        (["x", "--context-tokens", "200"], "context_tokens: 200"),
        (["word " * 9000, "--agents", "rules"], "context_tokens is 4096"),
        (["a long task " * 40 + "in report.md", "--agents", "martian"], "martian"),
        (["show"], "no discussion"),
        (["show", "unheard-of"], "no discussion unheard-of"),
        (["show", "one", "--id", "another"], "Two discussions are named"),
        (["memory", "solver"], "no discussion"),
        (["--id", "unheard-of"], "no discussion"),
        (["--id", "unheard-of"], "--team TEAM"),
        (["new-team", "t", "--task", "x", "--role", "No duties"], "give a title and duties"),
    ],
)
def test_what_cannot_work_is_told(words: list[str], told: str, mneme: Run) -> None:
    assert told in mneme(*words, fails=True).refused


@pytest.mark.parametrize("words", [["teams"], ["list"]])
def test_tables_fit_a_narrow_terminal(
    words: list[str], tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    environment["COLUMNS"] = "80"
    begun = ("discuss", "A data pipeline for logs, on AWS.", "--agents", "rules", "--max-turns", "1")
    assert run_mneme(begun, environment).returncode == 0
    told = run_mneme(("discuss", *words), environment).stdout
    assert max(map(len, told.splitlines())) <= 80
    whole = load_team("data_pipeline").names if words == ["teams"] else ["data_pipeline", "turn limit"]
    assert all(name in told for name in whole), told


def test_a_refusal_is_one_line_and_a_hint(environment: dict[str, str]) -> None:
    refused = run_mneme(("discuss", "x", "--as", "nobody"), environment)
    failed(refused, "no role 'nobody'")
    assert refused.stderr.splitlines()[-1].startswith("  It has: ")


PROMPTS = (contribute, delegate, integrate, evaluate, update_memory, write_document)
MODEL = "ollama:llama3.1:8b"


def test_a_discussion_that_is_killed_at_any_moment_goes_on(
    mneme: Run, tmp_path: Path, environment: dict[str, str]
) -> None:
    words = ("TASK.md", "--agents", MODEL, "--id", "k", "--max-turns", "10")
    with OllamaDouble(Model("llama3.1:8b")) as double:
        environment["MNEME_OLLAMA_URL"] = double.url
        for asked in (3, 8, 15):
            double.brain = answers_up_to(asked, double, by_rules(*PROMPTS))
            with Running(("discuss", *words), environment):
                wait_until(partial(is_asked, double, asked))
        double.brain = by_rules(*PROMPTS)
        mneme(*words)
    lines = (tmp_path / "discussions" / "k" / "transcript.jsonl").read_text().splitlines()
    assert [json.loads(line)["number"] for line in lines] == list(range(1, 11))
    versions = [
        json.loads(line)
        for line in mneme("memory", "data_engineer", "--history", "--json").stdout.splitlines()
    ]
    assert [each["turn"] for each in versions] == [0, 4], "each output updated the memory once"


def is_asked(double: OllamaDouble, number: int) -> bool:
    return len(double.chats) >= number


@pytest.mark.long
@pytest.mark.xdist_group("server")
async def test_a_server_that_is_killed_in_a_turn_goes_on_until_a_person_is_asked(tmp_path: Path) -> None:
    given: Any = {"task": TASK, "team": "data_pipeline", "discussion_id": "served"}
    context: Any = {"agents": MODEL, "person": "data_engineer", "max_turns": 6}
    thread = known_id("discuss/local/served")
    with OllamaDouble(Model("llama3.1:8b")) as double:
        double.brain = answers_up_to(4, double, by_rules(*PROMPTS))
        where = {"MNEME_OLLAMA_URL": double.url}
        with serving(tmp_path / "home", **where) as server:
            async with server.client() as client:
                await client.threads.create(thread_id=thread, graph_id="intrinsic_memory")
                await client.runs.create(thread, "intrinsic_memory", input=given, context=context)
                await until(lambda: is_asked(double, 4))
            server.kill()
        double.brain = by_rules(*PROMPTS)
        with serving(tmp_path / "home", **where) as server:
            async with server.client() as client:
                await client.threads.create(
                    thread_id=thread, graph_id="intrinsic_memory", if_exists="do_nothing"
                )
                waits: Any = await client.runs.wait(thread, "intrinsic_memory", input=None, context=context)
                assert waits["__interrupt__"][0]["value"]["role"] == "Data Engineer"
                said: Any = {
                    "resume": {"message": "Proposal: Sluice (gate) because floods.", "accept": False}
                }
                done: Any = await client.runs.wait(thread, "intrinsic_memory", command=said, context=context)
            assert done["ended"] == "turn limit" and "Sluice" in json.dumps(done["document"])
            assert len(double.chats) <= 2 * 6 + 1, "what was kept before the death was not asked for again"
            assert server.thread("discuss/local/served") == thread, "an earlier version's thread stays"
            through_the_server(server, tmp_path / "out")


def through_the_server(server: Server, out: Path) -> None:
    """Use the command line while the server owns the ledger."""
    listed = json.loads(server.mneme("discuss", "list", "--json").stdout)
    assert (listed["id"], listed["turns"]) == ("served", 6)
    early = json.loads(
        server.mneme("discuss", "memory", "business_objectives", "--turn", "2", "--json").stdout
    )
    assert early["turn"] == 2 and early["memory"]["proposed_solution"]["components"]
    words = ("--agents", "rules", "--max-turns", "3", "--id", "two", "--out", str(out), "--json")
    done = server.mneme("discuss", TASK, *words)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["turns"] == 3
    assert (out / "PIPELINE_OVERVIEW.json").exists()
    refused = server.mneme("discuss", "x", "--as", "nobody", "--agents", "rules")
    assert refused.returncode == 1 and "no role 'nobody'" in refused.stderr
