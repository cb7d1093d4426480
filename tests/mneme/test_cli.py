"""The command line as a user meets it: results, errors in one line, and quick starts."""

import asyncio
import json
import re
import runpy
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import typer

from mneme.cli.derived import DECLARED_FILE
from mneme.cli.main import app
from mneme.cli.show import console
from mneme.models.embedding.embedders import open_embedder
from mneme.stores.ledger.ledger import open_ledger
from tests.doubles.command_line import Run, failed, run_mneme
from tests.doubles.ollama import OllamaDouble
from tests.doubles.quiet import quiet


def test_a_conversation_is_remembered_searched_changed_and_forgotten(mneme: Run, tmp_path: Path) -> None:
    chat = mneme("chat", stdin="I live in Austin.\nI live in Denver, not in Austin.\n/memories\n/quit\n")
    assert chat.returncode == 0, chat.stderr
    assert "Denver" in chat.stdout
    (line,) = mneme("memories", "list", "--json").stdout.splitlines()
    key = json.loads(line)["key"]
    assert "Denver" in mneme("memories", "search", "Denver").stdout
    assert len(mneme("memories", "history", key[:6], "--json").stdout.splitlines()) == 2
    assert "Austin" in mneme("memories", "diff", key[:6], "1", "2").stdout
    assert "Austin" in mneme("memories", "rollback", key[:6], "1").stdout
    failed(mneme("memories", "diff", key[:6], "1", "9"), "no version 9", f"mneme memories history {key[:6]}")
    failed(mneme("memories", "rollback", key[:6], "9"), "no version 9", f"mneme memories history {key[:6]}")
    assert "Denver" in mneme("memories", "undo").stdout
    exported = tmp_path / "exported.jsonl"
    assert mneme("memories", "export", str(exported)).returncode == 0
    assert len(exported.read_text().splitlines()) == 4
    forgotten = mneme("memories", "forget", key[:6], "--yes", "--reason", "She asked.")
    assert "forgotten: 1" in forgotten.stdout
    assert "She asked." in mneme("memories", "forgotten").stdout
    assert mneme("memories", "list", "--json").stdout == ""
    assert "Denver" not in mneme("memories", "list", "--as-of", "2100-01-01").stdout


def test_a_sentence_is_remembered_and_words_are_written_as_they_stand(mneme: Run) -> None:
    told = mneme("remember", "I moved to Porto.")
    assert "1 message: 1 remembered" in told.stderr and "1 question to agents, " in told.stderr
    (moved,) = [json.loads(each)["key"] for each in mneme("memories", "list", "--json").stdout.splitlines()]
    assert told.stdout == f"  + insert {moved[:8]}  I moved to Porto.\n"
    assert "content=" not in (shown := mneme("memories", "show", moved).stdout)
    assert shown.count("I moved to Porto.") == 3, "as its content, its quote and its one statement"
    failed(mneme("remember", "notes.txt"), "notes.txt", "text file")
    assert mneme("remember", "我住在奥斯陆。" * 20).returncode == 0, "too long for the name of a file"
    rent = mneme("add", "Ann's rent is 900 euros.", "--until", "2026-12")
    assert "until 2026-12" in rent.stdout
    later = mneme("add", "Ann's rent is 950 euros.", "--since", "2027-01").stdout
    assert "950" in later and "may contradict" not in later, "it holds at another time"
    assert "already, word for word" in mneme("add", "ann's rent is 900 euros").stdout
    held = mneme("memories", "list", "--at", "2027-03-01").stdout
    assert "950" in held and "900" not in held
    assert "950" in mneme("memories", "search", "rent", "--at", "2027-03-01", "--limit", "1").stdout
    always = mneme("add", "Ann's rent is 970 euros.").stdout
    assert "may contradict" in always and "900" in always and "950" in always
    failed(mneme("memories", "list", "--at", "soon"), "soon")
    long = mneme("memories", "search", "tea " * 3000)
    failed(long, "at most 8000 characters")
    assert len(long.stderr) < 300, "what is shown of the query is cut"
    failed(mneme("memories", "reread"), "No model")
    (key, *_) = [json.loads(each)["key"] for each in mneme("memories", "list", "--json").stdout.splitlines()]
    assert "Braga" in mneme("memories", "update", key[:8], "The user lives in Braga.").stdout


def test_times_are_days_months_or_years_and_impossible_ones_are_refused(mneme: Run) -> None:
    words = ("add", "Rent is 900.")
    for day in ("2027-13", "2027-02-31", "0000"):
        failed(mneme(*words, "--since", day), f"since: there is no day, month or year {day}.")
    failed(mneme(*words, "--since", "2028", "--until", "2027"), "until: 2027 is before 2028")
    rent = json.loads(mneme(*words, "--since", "2027-02", "--until", "2027-02", "--json").stdout)
    failed(mneme("memories", "update", rent["key"], "Rent is 950.", "--until", "2026"), "before 2027-02")
    for options, is_found in (
        (("--at", "2027-02"), True),
        (("--at", "2027"), False),
        (("--as-of", "2100"), True),
        (("--as-of", "2100-01"), True),
        (("--as-of", "2020"), False),
    ):
        for command in (("list",), ("search", "rent")):
            assert ("900" in mneme("memories", *command, *options).stdout) == is_found, (command, options)
    failed(mneme("memories", "list", "--at", "2027-13"), "there is no day, month or year 2027-13")
    failed(mneme("memories", "list", "--as-of", "2027-1"), "there is no day, month or year 2027-1")


def test_what_is_not_there_is_said_before_anybody_is_asked(mneme: Run) -> None:
    failed(mneme("memories", "forget", "nokey1"), "no memory nokey1")
    failed(mneme("threads", "delete", "nope"), "no thread nope", "mneme threads list")
    failed(mneme("discuss", "forget-carried"), "No such agent of data_pipeline carries anything")
    failed(mneme("discuss", "forget-carried", "--role", "nobody"), "No such agent")


def test_a_turn_that_a_discussion_has_not_had_is_refused(mneme: Run, tmp_path: Path) -> None:
    words = ("--agents", "rules", "--max-turns", "1", "--out", str(tmp_path))
    assert mneme("discuss", "A pipeline for logs.", *words).returncode == 0
    for option in ("--turn", "--since-turn"):
        failed(
            mneme("discuss", "memory", "data_engineer", option, "99"),
            f"{option} 99",
            "0, the beginning, to 1",
        )
    assert mneme("discuss", "memory", "data_engineer", "--turn", "1").returncode == 0


def test_setup_without_a_terminal_says_what_to_add(mneme: Run) -> None:
    failed(mneme("setup"), "no terminal", "--yes", "--dry-run")


def test_lines_are_only_said_to_be_taken_where_some_are(mneme: Run, tmp_path: Path) -> None:
    mneme("add", "I live in Austin.")
    good, file = mneme("memories", "export").stdout, tmp_path / "lines.jsonl"
    for lines, told in (("{broken\n", "Nothing is imported."), (f"{good}{{broken\n", "The other lines are")):
        file.write_text(lines)
        failed(mneme("memories", "import", str(file), MNEME_HOME=str(tmp_path / "other")), told)
    file.write_text("{broken\n")
    failed(mneme("cards", "import", "--history", str(file)), "Nothing was imported.")
    broken = mneme("remember", str(file))
    assert broken.returncode == 1 and "Nothing is remembered." in broken.stderr


def test_a_team_that_is_not_there_is_named_beside_the_result(mneme: Run) -> None:
    key = json.loads(mneme("add", "Reporting runs on PostgreSQL.", "--json").stdout)["key"]
    assert mneme("stale", "--team", "nosuch").stderr == "There is no team nosuch.\n"
    failed(mneme("promote", "zz", "analysts"), "mneme: local has no memory zz.")
    made = mneme("promote", key, "analysts")
    assert made.returncode == 0
    assert made.stderr == "There is no team analysts yet: what is written for it makes it one of your own.\n"
    assert mneme("cards", "list", "--team", "analysts").stderr == ""
    for words in (("recall", "What runs?"), ("cards", "list"), ("contradictions", "list")):
        done = mneme(*words, "--team", "analyst")
        assert done.returncode == 0
        assert done.stderr == "There is no team analyst. There are: analysts.\n"
    learned = mneme("learn", "Sort words.", "--agents", "rules", "--team", "analyst")
    assert (
        "There is no team analyst yet: what is written for it makes it one of your own. There are: analysts."
        in learned.stderr
    )


def test_threads_are_pruned_to_their_last_turns(mneme: Run) -> None:
    lines = "".join(f"I have {number} cats.\n" for number in range(2, 6))
    for thread in ("main", "other"):
        assert mneme("chat", "--thread", thread, stdin=lines).returncode == 0
    first = json.loads(mneme("threads", "prune", "main", "--turns", "2", "--json").stdout)
    assert (first["threads"], first["checkpoints"] > 5) == (1, True)
    again = json.loads(mneme("threads", "prune", "main", "--turns", "2", "--json").stdout)
    assert again == {"threads": 1, "checkpoints": 0}
    every = json.loads(mneme("threads", "prune", "--all", "--turns", "1", "--json").stdout)
    assert (every["threads"], every["checkpoints"] > 5) == (3, True), "with the memory agent's thread"
    assert mneme("chat", stdin="How many cats do I have?\n").returncode == 0
    failed(mneme("threads", "prune", "nothing"), "no thread nothing")
    failed(mneme("threads", "prune"), "Which thread?")
    failed(mneme("threads", "prune", "--all", MNEME_CHECKPOINT_TURNS="0"), "--turns")


HOSTILE = "I own a \x1b]52;c;cm0gLXJm\x07kite\x1b[2J\x1b[H and\r a \x9b31mboat\x85."


def test_a_memory_cannot_steer_the_terminal(mneme: Run, tmp_path: Path) -> None:
    file = tmp_path / "memories.jsonl"
    given = hostile_export(mneme, str(tmp_path / "elsewhere"))
    assert mneme("memories", "import", "-", stdin=given).returncode == 0
    (line,) = mneme("memories", "list", "--json").stdout.splitlines()
    key = json.loads(line)["key"]
    assert mneme("memories", "export", str(file)).returncode == 0
    for words in (
        *(["list"], ["list", "--json"], ["search", "kite"], ["show", key], ["history", key]),
        *(["history", key, "--json"], ["export"], ["list", "--as-of", "2100-01-01"], ["show", "\x1b[2Jzz"]),
    ):
        done = mneme("memories", *words)
        printed = done.stdout + done.stderr
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", printed), (words, printed)
        assert "zz" in printed or "kite" in printed
    assert json.loads(line)["memory"]["content"] == HOSTILE, "what is stored is as it was"
    assert json.loads(mneme("memories", "export").stdout) == json.loads(file.read_text()), (
        "and is exported so"
    )


def test_a_name_with_colons_is_printed_as_it_is() -> None:
    with console.capture() as printed:
        console.print("ollama:fire:7b")
    assert printed.get() == "ollama:fire:7b\n"


def hostile_export(mneme: Run, elsewhere: str) -> str:
    """Return another home's export with a memory that holds control sequences."""
    mneme("chat", stdin="I own a kite.\n", MNEME_HOME=elsewhere)
    text = mneme("memories", "export", MNEME_HOME=elsewhere).stdout
    hostile = json.dumps(HOSTILE, ensure_ascii=False)[1:-1]
    changed = text.replace(json.loads(text)["text"], hostile)
    assert changed != text
    return changed


def test_a_broken_file_is_remembered_as_far_as_it_goes(mneme: Run, tmp_path: Path) -> None:
    file = tmp_path / "talk.jsonl"
    file.write_text('{"role": "user", "content": "I live in Austin."}\n{broken\n')
    done = mneme("remember", str(file))
    assert done.returncode == 1
    assert "line 2" in done.stderr
    assert "Austin" in mneme("memories", "list").stdout


def test_lines_that_are_no_memories_are_refused(mneme: Run, tmp_path: Path) -> None:
    assert mneme("chat", stdin="I live in Austin.\n/quit\n").returncode == 0
    line = json.loads(mneme("memories", "export").stdout) | {"key": "other", "value": {"nonsense": [1]}}
    file = tmp_path / "lines.jsonl"
    file.write_text(f"{json.dumps(line)}\n")
    done = mneme("memories", "import", str(file), "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["imported"] == 0
    assert json.loads(done.stdout)["refused"][0]["line"] == 1
    assert "content: Field required" in done.stdout
    assert len(mneme("memories", "list", "--json").stdout.splitlines()) == 1


def test_a_record_that_is_no_memory_is_named_shown_and_erased(mneme: Run, tmp_path: Path) -> None:
    assert mneme("chat", stdin="I live in Austin.\n/quit\n").returncode == 0
    line = json.loads(mneme("memories", "export").stdout) | {"key": "strange", "value": {"nonsense": [1]}}
    asyncio.run(_written_by_another_program(tmp_path / "home" / "ledger", json.dumps(line)))
    for words in (["list"], ["search", "Austin"]):
        done = mneme("memories", *words, "--json")
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.splitlines()) == 1
        assert "Record strange, version 1, is passed over" in done.stderr
    assert mneme("chat", stdin="Where do I live?\n/memories\n/quit\n").returncode == 0
    assert "nonsense" in mneme("memories", "history", "stra").stdout
    failed(mneme("memories", "show", "strange"), "cannot be read", "mneme memories forget strange")
    assert mneme("memories", "forget", "strange", "--yes").returncode == 0
    assert "strange" not in mneme("memories", "list").stderr


async def _written_by_another_program(folder: Path, line: str) -> None:
    ledger = await open_ledger(str(folder), await open_embedder("bundled"))
    assert (await ledger.import_([line])).imported == 1
    await ledger.close()


def test_more_than_may_wait_is_refused_in_one_line(mneme: Run, tmp_path: Path) -> None:
    file = tmp_path / "talk.txt"
    file.write_text(f"user: I have a cat.\nuser: I have a dog. {'It barks. ' * 50}\n")
    failed(mneme("remember", str(file), MNEME_WAITING_BYTES="300"), "300 bytes", "mneme inbox list")
    assert mneme("memories", "list", "--json").stdout == ""
    chat = mneme("chat", stdin=f"I have a dog. {'It barks. ' * 50}\n/quit\n", MNEME_WAITING_BYTES="300")
    assert "300 bytes" in chat.stderr
    assert mneme("remember", str(file)).returncode == 0


def test_what_cannot_be_done_is_said_in_one_line(mneme: Run, tmp_path: Path) -> None:
    not_a_ledger = tmp_path / "photos"
    not_a_ledger.mkdir()
    (not_a_ledger / "cat.jpg").write_bytes(b"\xff\xd8")
    failed(mneme("memories", "show", "zz"), "zz")
    failed(mneme("memories", "list", "--user", ""), "user")
    failed(mneme("memories", "search", " "), "empty")
    failed(mneme("memories", "list", "--as-of", "yesterday"), "yesterday")
    failed(mneme("memories", "forget"), "what to forget")
    failed(mneme("memories", "forget", "--all", stdin="n\n"), "--yes")
    failed(mneme("memories", "list", MNEME_NUM_CTX="abc"), "MNEME_NUM_CTX")
    failed(mneme("memories", "import", str(tmp_path / "nowhere")), "nowhere")
    failed(mneme("graph", "nonsense"), "nonsense", "chatbot")
    failed(mneme("remember", str(tmp_path)), "Cannot read")
    failed(mneme("users", "add", "ann"), "MNEME_AUTH")
    failed(mneme("memories", "list", MNEME_LEDGER=str(not_a_ledger)), "photos")
    failed(mneme("memories", "list", MNEME_EMBEDDER="word2vec"), "word2vec")
    assert list(not_a_ledger.iterdir()) == [not_a_ledger / "cat.jpg"]


def test_errors_are_json_where_results_are(mneme: Run) -> None:
    done = mneme("memories", "show", "zz", "--json")
    assert json.loads(done.stderr)["error"] == "NotFound"


def test_the_inbox_and_what_to_look_at_are_listed(mneme: Run) -> None:
    for words in (("inbox", "list"), ("memories", "review")):
        listed = mneme(*words)
        assert (listed.returncode, listed.stdout.split()[-1]) == (0, "nothing")
    for command in ("show", "retry", "drop"):
        failed(mneme("inbox", command, "zz"), "zz", "mneme inbox list")
    failed(mneme("memories", "accept", "zz"), "zz", "mneme memories list")


def test_a_chat_says_what_is_wrong_and_goes_on(mneme: Run) -> None:
    done = mneme("chat", stdin="hello\n/nonsense\nI live in Austin.\n")
    assert done.returncode == 1, "a script must notice"
    assert "/nonsense" in done.stderr
    huge = mneme("chat", "--thread", "other", stdin="word " * 20_000 + "\nI have a cat.\n")
    assert "window holds" in huge.stderr
    listed = mneme("memories", "list").stdout
    assert "cat" in listed
    assert "Austin" in listed


def test_a_chat_ends_with_how_many_answers_were_repaired_or_never_came(tmp_path: Path) -> None:
    """The reply is empty at first; what the memory agent is to write never comes.

    The memory agent may be asked once more, and broken off when the chat ends: that counts nowhere.
    """
    with OllamaDouble(brain=lambda body: "{}" if body.get("format") else "Hello!") as double:
        double.chat.reply("")
        who = "ollama:llama3.1:8b"
        environment = quiet(tmp_path / "home", MNEME_OLLAMA_URL=double.url, MNEME_AGENTS=who)
        done = run_mneme(("chat",), environment, stdin="I live in Austin.\n")
        attempts = sum(bool(each.body.get("format")) for each in double.chats)
        told = run_mneme(("chat", "--json"), environment, stdin="I live in Austin.\n").stdout
    said = re.search(r"(\d) questions to agents, 1 repaired, (\d) without a usable answer\.", done.stdout)
    assert said is not None, done.stderr
    assert int(said[1]) == 1 + int(said[2]) and 3 <= 3 * int(said[2]) <= attempts, done.stdout
    assert json.loads(told.splitlines()[-1])["asked"]["repaired"] == 0


def test_a_command_that_fails_says_what_it_asked_before(tmp_path: Path) -> None:
    with OllamaDouble(brain=lambda _: "no idea") as double:
        environment = quiet(tmp_path / "home", MNEME_OLLAMA_URL=double.url)
        words = ("learn", "How many eggs?", "--agents", "ollama:llama3.1:8b")
        done, told = (run_mneme((*words, *more), environment) for more in ((), ("--json",)))
    assert done.stderr.splitlines()[-3] == "1 question to agents, 0 repaired, 1 without a usable answer."
    assert json.loads(told.stderr.splitlines()[-1])["asked"]["refused"] == 1
    failed(done, "no usable answer to draft_solution")


def test_users_get_keys_and_lose_them(mneme: Run, tmp_path: Path) -> None:
    file = {"MNEME_AUTH": str(tmp_path / "users.json")}
    key = json.loads(mneme("users", "add", "ann", "--json", **file).stdout)["key"]
    assert key and key not in (tmp_path / "users.json").read_text()
    assert "ann" in mneme("users", "list", **file).stdout
    assert mneme("users", "remove", "ann", **file).returncode == 0
    assert mneme("users", "list", "--json", **file).stdout == ""


def test_doctor_says_whether_the_system_can_run(mneme: Run, tmp_path: Path) -> None:
    well = mneme("doctor", "--json")
    findings = {json.loads(line)["what"]: json.loads(line) for line in well.stdout.splitlines()}
    assert well.returncode == 0
    assert findings["Ollama"]["fix"] == "Start it: ollama serve"
    assert "384" in findings["embedder"]["detail"] and findings["embedder"]["state"] == "ok"
    assert "knows English only" in findings["embedder"]["fix"]
    assert str(tmp_path / "home") in findings["home"]["detail"]
    mistaken = mneme("doctor", MNEME_DATA=str(tmp_path / "mine"), COLUMNS="300")
    assert mistaken.returncode == 0 and "set MNEME_HOME instead" in mistaken.stdout
    ill = mneme("doctor", MNEME_CHECKPOINTS=str(tmp_path))
    assert ill.returncode == 1
    assert "FAILED" in ill.stdout


def test_quick_commands_load_nothing_heavy() -> None:
    code = (
        "import sys, mneme.cli.main, mneme.api.memories, mneme.models.embedding.embedders;"
        "print([each for each in ('torch', 'matplotlib', 'langgraph.graph', 'qdrant_client')"
        " if each in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


def test_options_that_are_known_without_an_import_are_those_that_are_declared() -> None:
    generator = Path(__file__).parents[2] / "docs" / "generate" / "declared.py"
    written = runpy.run_path(str(generator))["declared"]()
    assert json.loads(DECLARED_FILE.read_text(encoding="utf-8")) == json.loads(json.dumps(written)), generator


def test_every_graph_can_be_drawn(mneme: Run) -> None:
    for name in ("chatbot", "memory_agent", "memory_agent_v1", "memory_agent_v2", "remember"):
        assert "graph TD" in mneme("graph", name).stdout


def test_every_command_is_made_of_what_is_declared_of_it() -> None:
    """But for evaluations, of which some need packages that are not there."""

    def made(group: Any, *path: str) -> list[str]:
        found = {name: group.resolve_command(None, [name])[1] for name in group.commands if name != "eval"}
        assert all(each.help for each in found.values()), path
        below = [made(each, *path, name) for name, each in found.items() if hasattr(each, "commands")]
        return [*found, *(name for names in below for name in names)]

    assert len(made(typer.main.get_command(app))) > 100


def test_an_option_of_an_earlier_version_is_refused_with_its_present_name(mneme: Run) -> None:
    failed(mneme("recall", "tea", "--budget=30"), "--budget is --tokens now.", "See `mneme recall --help`.")
    failed(mneme("eval", "msc", "--at-once", "2"), "--at-once is --jobs now.")
    failed(mneme("contradictions", "list", "--by", "rules"), "--by is --comparer now.")
    failed(mneme("discuss", "memory", "d", "critic", "-n", "2"), "-n is --turn now.")
    failed(mneme("share", "retriever", "rollback", "--to", "0"), "--to is --to-version now.")
    assert mneme("recall", "--", "--budget").returncode == 0, "a text may be like an option"


def test_a_letter_stands_for_one_option() -> None:
    letters = defaultdict[str, set[str]](set)

    def look(group: Any) -> None:
        for name in group.commands.keys() - {"eval"}:
            command = group.resolve_command(None, [name])[1]
            if hasattr(command, "commands"):
                look(command)
            for each in command.params:
                for letter in each.opts[1:]:
                    letters[letter].add(each.opts[0])

    look(typer.main.get_command(app))
    assert letters["-n"] == {"--limit"}
    assert not [letter for letter, options in letters.items() if len(options) > 1]
