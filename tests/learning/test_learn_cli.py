"""`mneme learn` and `mneme cards`."""

import json
from pathlib import Path

import pytest

from mneme.cli.learning.learn import Given, Place, numbered
from mneme.environments.sql_tuning.tasks import tasks
from mneme.environments.worlds import Task, find_world
from tests.doubles.command_line import Run, Running
from tests.doubles.learning import DISCOVERY, EDGE_CASE, ROWS
from tests.doubles.quiet import quiet


def environment_of(home: Path) -> dict[str, str]:
    return quiet(home, MNEME_AGENTS="rules")


LEARN = (
    "learn",
    DISCOVERY.description,
    "--query",
    DISCOVERY.query,
    "--schema",
    "events",
    "--rows",
    str(ROWS),
)


@pytest.mark.parametrize(
    "steps",
    [
        ["verify"],
        pytest.param(["research", "verify", "compile"], marks=pytest.mark.long),
    ],
)
def test_a_run_that_is_killed_at_any_step_goes_on_and_writes_its_card_once(
    tmp_path: Path, mneme: Run, steps: list[str]
) -> None:
    for step in steps:
        with Running(LEARN, environment_of(tmp_path / "home"), piped=True) as command:
            for line in command.output:
                if step in line or "+ card" in line:
                    break
    assert mneme(*LEARN).returncode == 0
    assert json.loads(mneme("cards", "metrics", "--json").stdout)["tasks"] == 1, "it went on by itself"
    cards = [json.loads(line) for line in mneme("cards", "list", "--json").stdout.splitlines()]
    assert len(cards) <= 1, "none where a busy machine measured no gain"
    assert json.loads(mneme("cards", "trend", "--period", "week", "--json").stdout)["learned"] == len(cards)
    for card in cards:
        (task,) = card["evidence"]["task_ids"]
        assert len(mneme("cards", "history", card["id"], "--json").stdout.splitlines()) == 1
        again = mneme(*LEARN, "--id", task).stdout
        assert "1 done before" in again and "+ success" not in again


def test_a_task_without_a_name_goes_on_where_it_was_killed_and_else_begins_anew() -> None:
    def given(**told: str) -> Place:
        return Given.model_validate({"task": "Faster.", "check": "pytest -q", **told})

    first = numbered(given(workspace="shop"), set())
    assert numbered(given(workspace="shop"), set()).id == first.id, "killed: the same again"
    assert numbered(given(workspace="shop"), {first.id}).id != first.id, "finished: anew"
    assert numbered(given(workspace="other"), set()).id != first.id
    assert numbered(given(id="mine"), {"mine"}).id == "mine"


def test_cards_are_listed_searched_changed_and_exported(tmp_path: Path, mneme: Run) -> None:
    proposed = mneme("cards", "add", "Index the range.", "--rule", "grouping over a range: covering index")
    assert proposed.returncode == 0, proposed.stderr
    (line,) = mneme("cards", "list", "--json").stdout.splitlines()
    card = json.loads(line)["id"]
    short = card.removeprefix("card_")[:6]
    assert card in mneme("cards", "search", "grouping over a range", "--json").stdout
    assert "claim:" in mneme("cards", "show", short).stdout
    refused = mneme("cards", "promote", short)
    assert refused.returncode == 1 and "0 successes of the 2" in refused.stderr
    assert "status: deprecated" in mneme("cards", "deprecate", short, "--reason", "a slip").stdout
    assert "a slip" in mneme("cards", "history", short, "--json").stdout
    assert "status: provisional" in mneme("cards", "rollback", short, "1").stdout
    assert f"`mneme cards history {short}`" in mneme("cards", "rollback", short, "99").stderr
    file = tmp_path / "cards.yaml"
    assert mneme("cards", "export", str(file)).returncode == 0
    assert "stored: 1" in mneme("cards", "import", str(file), "--team", "others").stdout
    file.write_text(file.read_text().replace("confidence: 0", "confidence: 7", 1))
    wrong = mneme("cards", "import", str(file), "--team", "third")
    assert wrong.returncode == 1 and "confidence" in wrong.stderr
    assert mneme("cards", "metrics").returncode in (0, 1)


def test_a_card_is_proposed_by_a_person(mneme: Run) -> None:
    propose = ("cards", "add", "Use a hash index.", "--rule", "a lookup: hash index", "--tag", "sql")
    first, again = (json.loads(mneme(*propose, "--json").stdout) for _ in range(2))
    assert (first["event"], again["event"]) == ("created", "unchanged")
    card = first["card"]
    assert (card["status"], card["evidence"]["task_ids"], card["tags"]) == ("provisional", [], ["sql"])
    assert card["rules"] == [{"condition": "a lookup", "pattern": "hash index"}]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("learn",), "The task is missing"),
        (("learn", " "), "empty"),
        (("learn", "--suite", "chess"), "chess"),
        (("learn", "x", "--query", "SELECT 1", "--schema", "atlantis"), "atlantis"),
        (("learn", "--file", "nowhere.yaml"), "nowhere.yaml"),
        (("learn", "x", "--world", "sql_tuning"), "Give `query` (--query), or"),
        (("cards", "show", "zz"), "zz"),
        (("cards", "propose", " "), "empty"),
        (("cards", "propose", "x", "--rule", "no colon"), "no colon"),
        (("cards", "list", "--status", "fine"), "fine"),
        (("disputes", "show", "zz"), "zz"),
        (("disputes", "resolve", "zz", "--decision", "coin"), "coin"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(mneme: Run, words: tuple[str, ...], said: str) -> None:
    done = mneme(*words)
    assert done.returncode == 1
    assert said in done.stderr and "Traceback" not in done.stderr
    assert done.stdout == "", "no task is announced that is not begun"
    assert done.stderr.splitlines()[-1].startswith("  "), "there is a hint"


@pytest.mark.parametrize("budget", ["0", "0.001"])
def test_a_budget_that_is_too_small_is_named_as_an_option(mneme: Run, budget: str) -> None:
    told = mneme(*LEARN, "--index-budget", budget, "--agents", "rules")
    assert told.returncode == 1
    assert "not solved" in told.stdout and "--index-budget SHARE allows larger indexes." in told.stdout


def test_a_file_of_tasks_is_learned_from_once(tmp_path: Path, mneme: Run) -> None:
    file = tmp_path / "tasks.yaml"
    file.write_text(f'- task: Count events by user\n  query: "{EDGE_CASE.query}"\n  schema: transactions\n')
    first = mneme("learn", "--file", str(file), "--rows", str(ROWS))
    assert first.returncode == 0, first.stderr
    assert max(map(len, first.stdout.splitlines())) <= 80
    assert "1 done before" in mneme("learn", "--file", str(file)).stdout
    for text, fault in (
        ("- question: 1", "task 1: task: Field required"),
        ("- Count.\n- 5", "task 2: task: Input should be a valid string"),
        ("- {task: Count., id: a}\n- {task: Sum., id: a}", "task 2: an earlier one has the id a, too"),
    ):
        file.write_text(text)
        assert fault in mneme("learn", "--file", str(file)).stderr


def test_tasks_of_the_suite_can_all_be_laid_out() -> None:
    from mneme.nodes.learning.worlds import made_out  # noqa: PLC0415

    for task in tasks(5, 48):
        given = {"query": task.query, "schema_name": task.schema_name, "rows": ROWS}
        world = find_world("sql_tuning").open(Task(given=given))
        assert world.features and made_out(world, world.first_ideas()) and made_out(world, world.remedies())
        assert world.applies("; ".join(world.features)) is True
        assert world.applies("; ".join(world.general)) is True


@pytest.mark.long
async def test_the_evaluation_can_be_interrupted_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mneme.evals.learning import compound_learning as evaluation  # noqa: PLC0415
    from mneme.evals.learning import playing as arms  # noqa: PLC0415

    monkeypatch.setattr(evaluation, "STORY_ROWS", 4_000)
    options = evaluation.Options(tasks=3, seeds=[2], rows=4_000, repeats=1, agents="rules", out=tmp_path)
    whole = await evaluation.run(options)
    assert len(whole.rows) == 3 + 3 + 5 + 5 * 4 and whole.answered_by == "rules"
    assert {*whole.summary["compared"]["all"]} == {*arms.LEARNING_RIVALS}
    cached = whole.summary["compared"]["put once more"]["prompt cache"]
    assert cached["model calls"]["theirs"] == 0, "the cache asks nobody what it was asked before"
    assert whole.plots[0].stat().st_size > 10_000
    assert any("Solutions are timed" in each for each in whole.notes)
    lines = whole.raw.read_text().splitlines()
    whole.raw.write_text("\n".join([*lines[:7], lines[7][: len(lines[7]) // 2]]))
    again = await evaluation.run(options)
    assert again.raw == whole.raw and len(again.rows) == len(whole.rows)
    assert again.raw.read_text().splitlines()[:7] == lines[:7], "what was finished stays"
    first = {row["case"]: row["task"] for row in whole.rows}
    assert {row["case"]: row["task"] for row in again.rows} == first
