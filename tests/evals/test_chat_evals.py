"""The evaluations: how they score, what they keep, and that each runs through the real system."""

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from mneme.core.errors import BadInput, ModelUnavailable, StorageFailure
from mneme.evals.chat import contradictions, latency, msc
from mneme.evals.chat.contradictions import Case, Done, Expectation, as_row, pair, score, summarise
from mneme.evals.measuring import share
from mneme.evals.report import Report, open_journal, table
from mneme.prompts.chat.chatbot import reply
from mneme.prompts.chat.memory_agent.comparing import compare_memories
from mneme.prompts.chat.memory_agent.reading import read_message
from mneme.prompts.chat.memory_agent.rewriting import rewrite_memory
from tests.doubles import scripted_answers
from tests.doubles.ollama import by_rules
from tests.doubles.served import served
from tests.evals.runs import ollama, raw_results

LLAMA = "ollama:llama3.1:8b"
INSERT = Expectation(operation=["insert"], contains=["piano"])
UPDATE = Expectation(operation=["update"], target=0, contains=["Rome"], keeps=["Ana"], drops=["Oslo"])
MOVED = Done(operation="update", target=0, before="Ana lives in Oslo.", content="Ana lives in Rome.")
LEARNT = Done(operation="insert", content="The user plays the piano.")


def case(*expect: Expectation, memories: tuple[str, ...] = ("Ana lives in Oslo.",)) -> Case:
    return Case(id="x", category="any", memories=list(memories), message="…", expect=list(expect))


def right(given: Case, *done: Done) -> bool:
    return score(given, as_row(list(done))).right


class TestScoring:
    def test_each_operation_finds_its_expectation(self) -> None:
        assert right(case(INSERT, UPDATE), MOVED, LEARNT)
        assert right(case())
        assert right(case(UPDATE), MOVED)

    def test_what_is_missed_or_too_much_is_wrong(self) -> None:
        assert not right(case(INSERT, UPDATE), MOVED)
        assert not right(case(UPDATE), MOVED, LEARNT)
        assert not right(case(), LEARNT)
        assert not right(case(UPDATE))

    def test_further_inserts_pass_in_the_lenient_count_only_and_only_where_something_is_to_be_stored(
        self,
    ) -> None:
        more = score(case(UPDATE), as_row([MOVED, LEARNT]))
        assert more.met
        assert not more.right
        assert not score(case(), as_row([LEARNT])).met
        assert not score(case(UPDATE), as_row([LEARNT])).met
        assert not score(case(INSERT), as_row([LEARNT, MOVED])).met

    def test_an_update_must_hit_its_target_change_it_and_keep_the_rest(self) -> None:
        given = case(UPDATE, memories=("Ana lives in Oslo.", "Bob lives in Oslo."))
        assert not right(given, MOVED.model_copy(update={"target": 1}))
        assert not right(given, MOVED.model_copy(update={"content": "She lives in Rome."}))
        assert not right(given, MOVED.model_copy(update={"content": "Ana moved from Oslo to Rome."}))
        same = "Ana lives in Rome."
        assert not right(given, MOVED.model_copy(update={"before": same, "content": same}))
        assert right(given, MOVED.model_copy(update={"content": "ANA LIVES IN ROME"}))

    def test_one_updated_memory_may_answer_two_expectations_but_an_insert_only_one(self) -> None:
        age = Expectation(operation=["update"], target=0, contains=["rome"])
        assert right(case(UPDATE, age), MOVED)
        assert not right(case(INSERT, INSERT), LEARNT)

    def test_either_operation_is_right_where_both_are_accepted(self) -> None:
        either = Expectation(operation=["insert", "update"], target=0, contains=["Rome"], keeps=["Ana"])
        assert right(case(either), MOVED)
        assert right(case(either), Done(operation="insert", content="She moved to Rome."))
        assert not right(case(either))

    def test_the_pairing_favours_the_operation_whose_words_are_right(self) -> None:
        other = Done(operation="insert", content="The user sings.")
        sings = Expectation(operation=["insert"], contains=["sings"])
        assert all(p.right for p in pair([sings, INSERT], [LEARNT, other]))

    def test_what_is_right_and_what_should_be_stored_is_counted(self) -> None:
        scored = [
            score(case(UPDATE), as_row([LEARNT])),
            score(case(UPDATE), as_row([])),
            score(case(), as_row([LEARNT])),
            score(case(UPDATE), as_row([MOVED])),
            score(case(), as_row([])),
        ]
        summary = summarise(scored)
        assert summary["whole"]["right"] == 2
        assert summary["store_or_discard"]["share"] == pytest.approx(3 / 5)

    def test_conflicts_are_looked_for_in_both_directions(self) -> None:
        two = ("Ana lives in Oslo.", "Bob lives in Oslo.")
        wrong = MOVED.model_copy(update={"target": 1, "before": two[1]})
        scored = [
            score(case(UPDATE, memories=two), as_row([MOVED])),
            score(case(UPDATE, memories=two), as_row([wrong])),
        ]
        conflicts = summarise(scored)["conflicts"]
        assert (conflicts["found"]["right"], conflicts["found"]["cases"]) == (1, 2)
        assert (conflicts["left_alone"]["right"], conflicts["left_alone"]["cases"]) == (1, 2)

    def test_a_failed_message_is_never_right_not_even_where_nothing_was_to_be_done(self) -> None:
        assert not score(case(), as_row([], failed="no usable answer")).right

    def test_a_share_has_its_wilson_interval(self) -> None:
        whole = share(8, 10)
        assert whole["low"] == pytest.approx(0.490, abs=1e-3)
        assert whole["high"] == pytest.approx(0.943, abs=1e-3)
        assert share(0, 0)["share"] is None


class TestContradictionFile:
    @pytest.mark.parametrize(
        ("line", "complaint"),
        [
            ("{broken", "line 2"),
            ('{"id": "b", "category": "c", "memories": [], "message": "m"}', "expect"),
            (
                '{"id": "b", "category": "c", "memories": [], "message": "m", '
                '"expect": [{"operation": "update", "target": 0}]}',
                "target 0 is not among 0 memories",
            ),
            (
                '{"id": "b", "category": "c", "memories": ["x"], "message": "m", '
                '"expect": [{"operation": "update"}]}',
                "an update and a retirement need a target",
            ),
            ('{"id": "a", "category": "c", "memories": [], "message": "m", "expect": []}', "alike"),
        ],
    )
    def test_a_bad_line_is_named(self, tmp_path: Path, line: str, complaint: str) -> None:
        good = '{"id": "a", "category": "c", "memories": [], "message": "m", "expect": []}'
        path = tmp_path / "set.jsonl"
        path.write_text(f"{good}\n{line}\n")
        with pytest.raises(BadInput, match=complaint):
            contradictions.load(path)

    def test_the_shipped_sets_are_read(self) -> None:
        for path in (contradictions.LABELLED_FILE, contradictions.LABELLED_FILE.with_name("hard.jsonl")):
            assert len(contradictions.load(path)) >= 300

    def test_an_absent_or_empty_file_is_said_so(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="Cannot read"):
            contradictions.load(tmp_path / "none.jsonl")
        (tmp_path / "empty.jsonl").write_text("\n")
        with pytest.raises(BadInput, match="no cases"):
            contradictions.load(tmp_path / "empty.jsonl")


class TestJournal:
    def test_it_resumes_the_same_configuration_and_no_other(self, tmp_path: Path) -> None:
        open_journal(tmp_path, "x", {"who": "rules"}).add("one", {"figure": 1})
        assert "one" in open_journal(tmp_path, "x", {"who": "rules"})
        assert "one" not in open_journal(tmp_path, "x", {"who": "ollama:a"})
        assert "one" not in open_journal(tmp_path, "x", {"who": "rules"}, fresh=True)

    def test_a_torn_last_line_is_done_again(self, tmp_path: Path) -> None:
        journal = open_journal(tmp_path, "x", {})
        journal.add("one", {"figure": 1})
        journal.add("two", {"figure": 2})
        torn = journal.path.read_text()[:-7]
        journal.path.write_text(torn)
        resumed = open_journal(tmp_path, "x", {})
        assert [row["case"] for row in resumed.rows] == ["one"]
        resumed.add("two", {"figure": 2})
        assert [json.loads(line).get("case") for line in journal.path.read_text().splitlines()] == [
            None,
            "one",
            "two",
        ]

    def test_a_damaged_line_is_an_error_that_names_it(self, tmp_path: Path) -> None:
        journal = open_journal(tmp_path, "x", {})
        journal.path.write_text(journal.path.read_text() + "{not json\n")
        with pytest.raises(BadInput, match="line 2 is damaged"):
            open_journal(tmp_path, "x", {})

    def test_a_folder_that_cannot_be_written_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(StorageFailure, match="Cannot write"):
            open_journal(tmp_path / "file", "x", {})

    def test_a_disk_that_fills_up_midway_is_an_error(self, tmp_path: Path) -> None:
        journal = open_journal(tmp_path, "x", {})
        journal.path = Path("/dev/full")
        with pytest.raises(StorageFailure, match="No space left"):
            journal.add("one", {})
        assert "one" not in journal

    def test_a_report_prints_text_as_it_is(self, tmp_path: Path) -> None:
        report = Report(
            name="x",
            answered_by="rules",
            raw=tmp_path / "x.jsonl",
            rows=[],
            summary={},
            tables=[table("T", ["a", "b"], [["[bold]not markup[/]", None]])],
            notes=["a [note]"],
        )
        out = StringIO()
        report.print(Console(file=out, width=100))
        assert "[bold]not markup[/]" in out.getvalue()
        assert "a [note]" in out.getvalue()


def write_set(path: Path) -> Path:
    """Write a small contradiction set whose operations leave no room for opinions."""
    cases = [
        {
            "id": "moved",
            "category": "conflict",
            "memories": ["The user's sister Ana, a baker, lives in Oslo.", "The user plays the piano."],
            "message": "My sister Ana lives in Rome, not in Oslo.",
            "expect": [
                {
                    "operation": "update",
                    "target": 0,
                    "contains": ["rome"],
                    "keeps": ["ana", "baker"],
                    "drops": ["oslo"],
                }
            ],
        },
        {
            "id": "thanks",
            "category": "smalltalk",
            "memories": ["The user plays the piano."],
            "message": "Thank you!",
            "expect": [],
        },
    ]
    path.write_text("".join(json.dumps(case) + "\n" for case in cases))
    return path


class TestTable1:
    def test_the_fifth_test_wants_what_was_remembered_in_the_reply_and_nothing_stored(self) -> None:
        recall = msc.TESTS[4]
        reply = "Max is a Labrador mix who loves fetch, fears thunderstorms and lives with Emily in Portland."
        assert msc.is_right(recall, as_row([], reply=reply, failed=""))
        assert not msc.is_right(recall, as_row([], reply="I do not know Max.", failed=""))
        assert not msc.is_right(recall, as_row([LEARNT], reply=reply, failed=""))


class TestMsc:
    async def test_every_version_runs_the_papers_table_and_the_set(self, tmp_path: Path) -> None:
        options = msc.Options(
            data=write_set(tmp_path / "set.jsonl"),
            out=tmp_path / "runs",
            agents="rules",
        )
        report = await msc.run(options)
        versions = ["ours", "v3", "v2", "v1"]
        systems = report.summary["contradictions"]
        assert list(report.summary["table_1"]) == versions
        assert list(systems) == versions
        assert systems["ours"]["categories"]["smalltalk"]["right"] == 1
        assert systems["ours"]["whole"]["right"] == 2
        by_rules = report.summary["table_1"]["ours"]
        assert by_rules == [True, True, True, False, True, False], "rules turn no `my` and append no age"
        assert "rules" in report.answered_by
        first = report.rows[0]["tests"][0]
        assert first["before"] == []
        assert "fetch" in first["after"][0]
        assert first["reply"]

    async def test_a_language_model_is_asked_over_the_wire_and_named(self, tmp_path: Path) -> None:
        with ollama(by_rules(read_message, compare_memories, rewrite_memory, reply)):
            options = msc.Options(
                data=write_set(tmp_path / "set.jsonl"),
                out=tmp_path / "runs",
                agents=LLAMA,
                arms=["ours"],
            )
            report = await msc.run(options)
        assert report.summary["contradictions"]["ours"]["whole"]["right"] == 2
        assert report.summary["table_1"]["ours"] == [True, False, True, False, True, False]
        assert report.rows[0]["tests"][0]["responder"] == "ollama:llama3.1:8b"
        assert not any("rules" in note for note in report.notes)

    async def test_a_message_without_a_usable_answer_fails_alone_and_counts_as_wrong(
        self, tmp_path: Path
    ) -> None:
        with ollama(lambda body: "no JSON at all"):
            options = msc.Options(
                data=write_set(tmp_path / "set.jsonl"),
                out=tmp_path / "runs",
                chatbot="rules",
                memory_agent=LLAMA,
                arms=["ours"],
            )
            report = await msc.run(options)
        summary = report.summary["contradictions"]["ours"]
        assert summary["failed"] == 2
        assert summary["whole"]["right"] == 0
        assert report.answered_by.startswith("ollama:llama3.1:8b (")  # with the digest of its weights
        assert any("2 messages failed" in note for note in report.notes)

    async def test_ours_asks_two_questions_where_version_3_asks_one_of_each_memory(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        case = {"id": "breed", "category": "conflict", "memories": latency.MEMORIES, "expect": []}
        labelled = tmp_path / "set.jsonl"
        labelled.write_text(json.dumps(case | {"message": latency.MESSAGE}))
        options = msc.Options(data=labelled, out=tmp_path / "runs", agents=LLAMA, skip_table_1=True)
        with served(monkeypatch, parallel=4, brain=scripted_answers.answer):
            report = await msc.run(options)
        rows = {row["case"].partition("/")[0]: row for row in report.rows}
        asked = {name: row["asked"]["questions"] for name, row in rows.items()}
        assert (asked["ours"], asked["v3"]) == (2, 13)
        assert rows["ours"]["asked"]["prompt_tokens"] <= 2000
        assert {each["operation"] for row in rows.values() for each in row["done"]} == {"update"}
        assert len(report.tables[-1].rows) == len(rows)

    async def test_an_interrupted_run_goes_on_where_it_stopped(self, tmp_path: Path) -> None:
        options = msc.Options(
            data=write_set(tmp_path / "set.jsonl"),
            out=tmp_path / "runs",
            agents="rules",
            arms=["ours"],
        )

        def stop(done: int, of: int, what: str) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            await msc.run(options, stop)
        kept = raw_results(options.out)
        await msc.run(options)
        assert raw_results(options.out).startswith(kept)
        assert len(raw_results(options.out).splitlines()) == 4

    async def test_a_model_that_is_not_there_is_said_before_anything_runs(self, tmp_path: Path) -> None:
        with ollama(lambda body: ""), pytest.raises(ModelUnavailable, match="no model"):
            await msc.run(
                msc.Options(data=write_set(tmp_path / "set.jsonl"), out=tmp_path, memory_agent="ollama:none")
            )


# The stand-in's loop may end before the last of its clients' sockets is collected (Python 3.11).
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
class TestLatency:
    @pytest.mark.long
    async def test_the_user_goes_first(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        options = latency.Options(agents=LLAMA, pending=[0, 12], trials=2, out=tmp_path)
        with served(monkeypatch, seconds=0.2, parallel=4, brain=scripted_answers.answer):
            report = await latency.run(options)
        chats = {(each["what"], each["pending"]): each for each in report.summary["chat"]}
        empty, loaded = chats["chat", 0], chats["chat", 12]
        assert empty["calls"] == loaded["calls"] == 1
        assert chats["hot path", 0]["calls"] == 2
        assert loaded["left"] == 12
        assert loaded["seconds"] < chats["hot path", 0]["seconds"]
        assert len(raw_results(tmp_path).splitlines()) == 1 + len(report.rows)

    async def test_rules_have_no_queue(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="rules has no queue"):
            await latency.run(latency.Options(agents="rules", out=tmp_path))
