"""`mneme share …` as a user meets it, with no model anywhere, and through a kill."""

import json
from pathlib import Path
from typing import Any

import pytest

from mneme.prompts.sharing import standard_answers
from tests.doubles.command_line import Done, Run, Running, failed, run_mneme
from tests.doubles.ollama import Json, OllamaDouble, Reply
from tests.doubles.quiet import quiet

RULES = ("--agents", "rules")
POEMS = ("--pool", "literary_creation")
SEEDS = Path(__file__).parents[2] / "library" / "pairs"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return quiet(tmp_path / "home", MNEME_RETRY_SECONDS="0.01")


@pytest.fixture
def share(environment: dict[str, str]) -> Run:
    """Run `mneme share` in a home of its own."""

    def run(*words: str, stdin: str = "") -> Done:
        return run_mneme(("share", *words), environment, stdin)

    return run


def rows(done: Done) -> list[dict[str, Any]]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_pool_is_filled_asked_shown_exported_and_emptied(
    share: Run, environment: dict[str, str], tmp_path: Path
) -> None:
    (added,) = rows(share("pool", "import", "--shipped", "--agent", "limerick", "--json"))
    assert added == {"added": 24, "known": 0, "broken": []}
    asked = ("ask", "--agent", "limerick", *RULES, "--threshold", "0", "Sing of a cat on a ship.")
    (result,) = rows(share(*asked, "--no-train", "--json"))
    assert result["stored"] and len(result["shown"]) == 3 and result["answered_by"] == "rules"
    asked_again = ("ask", "--agent", "limerick", *RULES, "--no-train", "Sing of a hen on a ship.")
    assert f"- limerick {result['key'][:8]}: Sing of a cat on a ship." in share(*asked_again).stdout
    shown = share("pool", "show", result["key"][:8], *POEMS)
    assert "Sing of a cat on a ship." in shown.stdout and "limerick / rules" in shown.stdout
    listed = rows(share("pool", "list", "--json"))
    assert [(each["pool"], each["memories"]) for each in listed] == [("literary_creation", 25)]
    found = rows(share("pool", "search", "Sing of a cat on a ship.", *POEMS, "--limit", "2", "--json"))
    assert len(found) == 2 and found[0]["key"] == result["key"]
    assert "nope holds no pairs" in share("pool", "search", "a cat", "--pool", "nope").stderr
    (state,) = rows(share("consolidate", *POEMS, "--status", "--json"))
    assert state == {"due": [], "serving": "", "attempts": []}
    exported = tmp_path / "pool.jsonl"
    assert share("pool", "export", str(exported), *POEMS).returncode == 0
    assert len(exported.read_text(encoding="utf-8").splitlines()) == 25
    again = rows(share("pool", "import", str(exported), "--pool", "copy", "--json"))
    assert again[0]["added"] == 25
    assert share("pool", "remove", result["key"], *POEMS).returncode == 0
    forget = ("pool", "forget", result["key"], "--pool", "copy")
    failed(share(*forget), "no terminal to ask")
    failed(share("pool", "forget", "nope", "--pool", "copy"), "holds no pair nope")
    failed(share("pool", "forget", "nope", "--pool", "nope"), "There is no pool nope")
    assert "is erased" in share(*forget, "--yes").stdout
    counts = {each["pool"]: each["memories"] for each in rows(share("pool", "list", "--json"))}
    assert counts == {"copy": 24, "literary_creation": 24}
    told = run_mneme(("doctor", "--json"), environment)
    assert '"pool literary_creation"' in told.stdout and "24 memories" in told.stdout


def test_what_the_agent_is_shown_of_the_team_is_printed_with_its_origin(
    share: Run, environment: dict[str, str]
) -> None:
    assert run_mneme(("add", "The ship's cat is called Tom."), environment).returncode == 0
    done = share("ask", "--agent", "limerick", *RULES, "--no-train", "A limerick about the ship's cat")
    assert "shared  The ship's cat is called Tom. [local said, " in done.stdout, done.stderr


def test_an_answer_is_printed_with_its_score_and_what_was_learned(share: Run) -> None:
    done = share("ask", "--agent", "riddle", *RULES, "--threshold", "0", "I have hands but cannot clap.")
    assert done.returncode == 0, done.stderr
    assert "examples, found by the untrained embedder: none" in done.stdout
    assert "of 100 by rules" in done.stdout and "Stored." in done.stdout and "training" in done.stdout
    (asked,) = rows(share("ask", "--agent", "riddle", *RULES, "--threshold", "0", "What has keys?", "--json"))
    assert asked["stored"], "and where JSON is wanted, what the training came to is not printed beside it"


@pytest.mark.long
def test_a_retriever_is_trained_and_rolled_back(share: Run) -> None:
    rows(share("pool", "import", "--shipped", "--pool", "literary_creation", "--json"))
    trained = rows(share("retriever", "train", *POEMS, *RULES, "--json"))
    made = [each["retriever"] for each in trained if each["retriever"]]
    (state,) = rows(share("retriever", "status", *POEMS, "--json"))
    assert [each["number"] for each in state["versions"]] == [each["number"] for each in made]
    assert made and all(each["reason"] for each in made)
    kept = [each["number"] for each in made if each["kept"]]
    assert state["serving"] == max(kept, default=0) and state["waiting"] == 0
    rolled = share("retriever", "rollback", *POEMS, "--to-version", "0", "--json")
    assert json.loads(rolled.stdout) == {**state, "serving": 0}
    failed(share("retriever", "rollback", *POEMS, "--to-version", "999"), "no retriever 999")


def test_a_training_tells_how_far_its_grading_is(share: Run, tmp_path: Path) -> None:
    pair = {"domain": "literary_creation", "agent": "limerick", "score": 90}
    pairs = [pair | {"prompt": f"Write of {who}.", "answer": f"A {who} sang."} for who in range(60)]
    file = tmp_path / "pairs.jsonl"
    for few in (3, 60):
        file.write_text("\n".join(map(json.dumps, pairs[:few])))
        rows(share("pool", "import", str(file), "--pool", "literary_creation", "--json"))
        trained = share(
            "retriever",
            "train",
            *POEMS,
            *RULES,
            "--learning",
            "projection",
            "--candidates",
            "2",
            "--labels",
            "2",
        )
        assert trained.returncode == 0, trained.stderr
        assert ("graded 60 of 60 pairs by rules (candidates: 2)" in trained.stdout) == (few == 60)
        assert ("held-out memories cannot judge" in trained.stdout) == (few == 3)


def test_a_rubric_is_drafted_reviewed_and_frozen(share: Run, tmp_path: Path) -> None:
    (draft,) = rows(share("rubric", "design", "plan_generation", "--agents", "rules", "--json"))
    assert draft["waits"] and sum(each["points"] for each in draft["rubric"]["criteria"]) == 100
    failed(share("rubric", "design", "plan_generation", "--agents", "rules"), "waits for review")
    file = tmp_path / "rubric.yaml"
    file.write_text(RUBRIC.replace("40", "30"))
    failed(share("rubric", "review", "plan_generation", "--file", str(file)), "sum to 90, not to 100")
    file.write_text(RUBRIC)
    (ended,) = rows(share("rubric", "review", "plan_generation", "--file", str(file), "--json"))
    assert (ended["version"], ended["waits"]) == (1, False)
    assert "Brevity (0-40)" in share("rubric", "show", "plan_generation").stdout
    assert "Feasibility" in share("rubric", "show", "plan_generation", "--version", "0").stdout
    (frozen,) = rows(share("rubric", "freeze", str(file), "--json"))
    assert frozen["version"] == 2
    versions = {each["rubric"]["name"]: each["version"] for each in rows(share("rubric", "list", "--json"))}
    assert versions["plan_generation"] == 2 and versions["literary_creation"] == 0


RUBRIC = """
name: plan_generation
title: Plans
criteria:
- {name: Brevity, points: 40, looks_at: It is short.}
- {name: Use, points: 60, looks_at: It helps.}
"""


def test_what_cannot_be_used_is_refused_in_one_line(share: Run, tmp_path: Path) -> None:
    failed(share("ask", "--agent", "nobody", *RULES, "Sing."), 'no agent "nobody"', "limerick")
    failed(share("ask", "--agent", "limerick", *RULES, "x" * 50_000), "50000 characters")
    failed(share("pool", "import", str(tmp_path / "none.jsonl"), *POEMS), "none.jsonl")
    for words in (("pool", "export", str(tmp_path / "x")), ("retriever", "status"), ("retriever", "train")):
        failed(share(*words, "--pool", "nope"), "no pool nope", "There are")
    failed(share("grow", "--domain", "literary_creation", *RULES), "is empty")
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"agent": "limerick", "answer": "A cat"}\nnot json\n')
    failed(share("grow", "--domain", "literary_creation", "--from", str(broken), *RULES), "line 2")


def test_an_agent_that_cannot_be_used_is_refused_before_it_is_asked(share: Run, tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text("name: postmortem")
    failed(share("ask", "--agent", str(file), *RULES, "Write."), "domain: Field required", "title")
    file.write_text(AGENT)
    refused = share("ask", "--agent", str(file), *RULES, "Write.")
    failed(refused, "postmortems has no rubric", "mneme share rubric design postmortems")
    assert refused.stdout == "", "nothing was asked"
    failed(
        share("grow", "--domain", "postmortems", "--agent", str(file), *RULES), "postmortems has no rubric"
    )


AGENT = """
name: postmortem
domain: postmortems
title: Postmortem writer
does: Write a postmortem of an incident.
questions: An incident in one sentence.
language: en
"""


def test_a_broken_line_is_named_and_the_rest_goes_in(share: Run) -> None:
    good = '{"question": "Sing of %d stones.", "answer": "Stones, stones."}'
    lines = [good % 1, "{broken", good % 2, json.dumps({"question": "Long?", "answer": "x" * 50_000})]
    lines.append('{"question": "Sing of sand."}')
    done = share("pool", "import", "-", *POEMS, "--agent", "limerick", "--json", stdin="\n".join(lines))
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert told["added"] == 2
    assert [each.partition(":")[0] for each in told["broken"]] == ["line 2", "line 4", "line 5"]
    assert told["broken"][-1].endswith("answer: there is none to a question")
    other_form = share("pool", "import", "-", *POEMS, stdin='{"instruction": "Sing.", "output": "La."}')
    assert other_form.returncode == 1
    assert 'Each line is like {"question": "…", "answer": "…"}' in other_form.stdout


def test_an_agents_file_that_cannot_be_read_is_named_with_the_line(share: Run, tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("name: a\ndomain: [x\n", encoding="utf-8")
    for command in (("ask", "Sing."), ("pool", "import", "-", *POEMS)):
        failed(share(*command, "--agent", str(broken), stdin=""), f"{broken}, line 3")
    broken.write_text("name: a\ntitle: [x]\n", encoding="utf-8")
    failed(share("ask", "Sing.", "--agent", str(broken)), f"{broken}, line 1: domain")


def test_a_line_of_question_and_answer_may_name_its_agent(share: Run) -> None:
    lines = [
        json.dumps({"question": "Sing of stones.", "answer": "Stones.", "agent": "sonnet"}),
        json.dumps({"question": "Of rain.", "answer": "Rain.", "agent": "haiku", "domain": "gardening"}),
        json.dumps({"question": "Of sand.", "answer": "Sand."}),
    ]
    done = share("pool", "import", "-", *POEMS, "--json", stdin="\n".join(lines))
    told = json.loads(done.stdout)
    assert told["added"] == 2 and told["broken"][0].startswith("line 3: agent")
    held = [each["pair"] for each in rows(share("pool", "list", *POEMS, "--json"))]
    assert {(each["agent"], each["domain"]) for each in held} == {
        ("sonnet", "literary_creation"),
        ("haiku", "gardening"),
    }


def test_a_growth_that_is_killed_goes_on_and_stores_nothing_twice(
    share: Run, environment: dict[str, str], tmp_path: Path
) -> None:
    seeds = [json.loads(line) for line in (SEEDS / "limerick.jsonl").read_text().splitlines()]
    poems = [each["answer"] for each in seeds]
    answers: list[str] = []

    def brain(body: Json) -> Reply:
        if body["messages"][0]["content"].startswith(standard_answers.ask_for.system):
            return Reply(json.dumps({"question": f"Sing of the {poems[len(answers) % 24].split()[1]}."}))
        answers.append(body["messages"][-1]["content"])
        return Reply(poems[len(answers) % 24])

    standards = tmp_path / "one.jsonl"
    standards.write_text('{"agent": "limerick", "answer": "A cat who could sing"}\n')
    words: tuple[str, ...] = ("grow", "--domain", "literary_creation", "--id", "spring")
    words += ("--from", str(standards))
    words += ("--answerer", "ollama:llama3.1:8b", "--scorer", "rules", "--grader", "rules")
    words += ("--threshold", "30", "--calls", "20")
    with OllamaDouble(seconds=0.1, brain=brain) as double:
        environment["MNEME_OLLAMA_URL"] = double.url
        with Running(("share", *words), environment, piped=True) as command:
            stored = 0
            while stored < 3:
                stored += command.output.readline().startswith("+")
        before = {each["key"] for each in rows(share("pool", "list", *POEMS, "--json"))}
        assert len(before) >= 4
        double.seconds = 0
        ended = share(*words, "--json")
    (told,) = rows(ended)
    after = [each["key"] for each in rows(share("pool", "list", *POEMS, "--json"))]
    assert before <= set(after) and len(set(after)) == len(after) == told["memories"]
    assert told["asked"]["calls"] <= 20 and told["stored"] <= told["memories"] - 1


def test_an_agent_of_ones_own_is_known_by_its_name(share: Run, tmp_path: Path) -> None:
    told = ("--does", "Write a haiku.", "--questions", "A moment.", "--domain", "short_poems")
    made = share("agent", "new", "haiku", *told, "--agents", "rules")
    assert made.returncode == 0, made.stderr
    assert "haiku is known now" in made.stdout and "rubric review short_poems" in made.stdout
    failed(share("agent", "new", "haiku", *told), "agent haiku already")
    failed(share("ask", "--agent", "haiku", *RULES, "A heron."), "short_poems has no rubric")
    ode = ("--does", "Write an ode.", "--questions", "A hero.", "--domain", "odes", "--agents", "none:such")
    failed(share("agent", "new", "ode", *ode), "ode is saved, but its domain odes may lack", "design odes")
    assert share("rubric", "review", "short_poems", "--approve").returncode == 0
    chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    line = [*chat, {"role": "user", "content": "A heron?"}, {"role": "assistant", "content": "It waits."}]
    file = tmp_path / "chat.jsonl"
    file.write_text(json.dumps({"messages": line}) + "\n" + json.dumps({"messages": line[:3]}))
    listed = rows(share("rubric", "list", "--json"))
    (own,) = [each for each in listed if each["rubric"]["name"] == "short_poems"]
    assert (own["drafted_by"], own["by"]) == ("rules", "user")
    pool = ("--pool", "short_poems")
    imported = share("pool", "import", str(file), *pool, "--agent", "haiku")
    assert "1 added" in imported.stdout and "line 2" in imported.stdout and '"messages"' in imported.stdout
    (pair,) = rows(share("pool", "list", *pool, "--json"))
    assert pair["pair"]["leading"] == ["user: Hi", "assistant: Hello"]
    (rated,) = rows(share("rate", pair["key"][:8], *pool, "--down", "--json"))
    assert (rated["pair"]["score"], rated["pair"]["judged"], rated["pair"]["downs"]) == (50, 100, 1)
    shown = share("pool", "show", pair["key"], *pool).stdout
    assert "100 of 100, chosen by hand; 50 with 0 up, 1 down" in shown
    grown = share("grow", "--domain", "short_poems", *RULES, "--threshold", "0", "--calls", "4")
    assert grown.returncode == 0 and "round 1: 1 standard answer;" in grown.stdout, grown.stderr
    assert "after a kill, --id" in grown.stdout
    full = share("grow", "--domain", "short_poems", *RULES, "--pool-size", "1")
    assert "1 were wanted" in full.stdout and "0 stored" in full.stdout
    failed(share("grow", "--domain", "epics", *RULES), 'no domain "epics"', "short_poems")
    failed(share("grow", "--domain", "short_poems", "--agent", "sonnet", *RULES), "sonnet is of the domain")
    (answered,) = rows(share("ask", "--agent", "haiku", *RULES, "--shots", "1", "A heron.", "--json"))
    assert pair["key"] not in [each["key"] for each in answered["shown"]], "it was rated down"
    file.write_text("name: h\ndomain: d\ntitle: t\ndoes: d\nquestions: q\nlanguage: english\n")
    failed(share("agent", "new", "h", "--file", str(file)), f"{file}, line 6: language")
