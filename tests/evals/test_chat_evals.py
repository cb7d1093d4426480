"""The evaluations: how they score, what they keep, and that each runs through the real system."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from mneme.core.errors import BadInput, ModelUnavailable, StorageFailure
from mneme.core.settings import settings
from mneme.evals.chat import contradictions, latency, locomo, locomo_data, msc, table_1
from mneme.evals.chat.contradictions import Case, as_row, score, summarise
from mneme.evals.chat.locomo_data import Question, answer_score, chosen
from mneme.evals.report import Report, open_journal, table
from mneme.evals.scoring import Done, Expected, pair, share
from mneme.models.asking import asking
from mneme.prompts.chat.chatbot import reply
from mneme.prompts.chat.memory_agent.comparing import compare_memories
from mneme.prompts.chat.memory_agent.reading import read_message
from mneme.prompts.chat.memory_agent.rewriting import rewrite_memory
from tests.doubles import scripted_answers
from tests.doubles.ollama import Brain, OllamaDouble, by_rules
from tests.doubles.served import served

INSERT = Expected(operation=["insert"], contains=["piano"])
UPDATE = Expected(operation=["update"], target=0, contains=["Rome"], keeps=["Ana"], drops=["Oslo"])
MOVED = Done(operation="update", target=0, before="Ana lives in Oslo.", content="Ana lives in Rome.")
LEARNT = Done(operation="insert", content="The user plays the piano.")


def case(*expect: Expected, memories: tuple[str, ...] = ("Ana lives in Oslo.",)) -> Case:
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
        age = Expected(operation=["update"], target=0, contains=["rome"])
        assert right(case(UPDATE, age), MOVED)
        assert not right(case(INSERT, INSERT), LEARNT)

    def test_either_operation_is_right_where_both_are_accepted(self) -> None:
        either = Expected(operation=["insert", "update"], target=0, contains=["Rome"], keeps=["Ana"])
        assert right(case(either), MOVED)
        assert right(case(either), Done(operation="insert", content="She moved to Rome."))
        assert not right(case(either))

    def test_the_pairing_favours_the_operation_whose_words_are_right(self) -> None:
        other = Done(operation="insert", content="The user sings.")
        sings = Expected(operation=["insert"], contains=["sings"])
        assert all(p.right for p in pair([sings, INSERT], [LEARNT, other]))

    def test_confusion_counts_what_was_done_instead(self) -> None:
        scored = [
            score(case(UPDATE), as_row([LEARNT])),
            score(case(UPDATE), as_row([])),
            score(case(), as_row([LEARNT])),
            score(case(UPDATE), as_row([MOVED])),
            score(case(), as_row([])),
        ]
        summary = summarise(scored)
        assert summary["confusion"]["update"] == {"insert": 1, "update": 1, "retire": 0, "discard": 1}
        assert summary["confusion"]["discard"] == {"insert": 1, "update": 0, "retire": 0, "discard": 1}
        assert summary["operations"]["update"] == {
            "support": 3,
            "precision": 1.0,
            "recall": pytest.approx(1 / 3),
            "f1": pytest.approx(0.5),
        }
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


def question(category: int, answer: str = "", trap: str = "") -> Question:
    return Question(question="?", category=category, answer=answer, adversarial_answer=trap, evidence=[])


class TestLocomoScores:
    def test_token_f1_stems_and_normalises_as_the_benchmark(self) -> None:
        assert answer_score(question(4, "The running dogs"), "a dog, and runs!") == 1.0
        assert answer_score(question(4, "blue car"), "a red car") == pytest.approx(0.5)
        assert answer_score(question(4, "blue car"), "nothing") == 0.0
        assert answer_score(question(2, "7 May 2023"), "May 7, 2023") == 1.0

    def test_multi_hop_takes_the_best_part_for_each_part_of_the_answer(self) -> None:
        assert answer_score(question(1, "pottery, camping"), "camping, swimming") == pytest.approx(0.5)
        assert answer_score(question(1, "pottery, camping"), "swimming, camping, pottery") == 1.0

    def test_open_domain_counts_the_answer_before_the_reason(self) -> None:
        assert answer_score(question(3, "Likely no; she is vegan"), "likely no") == 1.0

    def test_adversarial_is_right_where_the_trap_is_declined(self) -> None:
        trap = question(5, trap="a dog")
        options = {chosen(name, trap, letter) for name in "abcdefgh" for letter in ("(a)", "b) a dog")}
        assert options == {"a dog", locomo_data.NOT_MENTIONED}
        assert {chosen(name, trap, "a dog") for name in "abcdefgh"} == {"a dog"}
        assert {chosen(name, trap, "a.") for name in "abcdefgh"} == options
        assert answer_score(trap, "That is not mentioned.") == 1.0
        assert answer_score(trap, "a dog") == 0.0
        assert chosen("a", trap, "I cannot choose (a) or (b)") == "I cannot choose (a) or (b)"


TURNS = [
    ("Ada", "I adopted a tortoise called Leo last week."),
    ("Ben", "My new bicycle is bright orange."),
    ("Ada", "The choir sings in Lisbon in June."),
    ("Ben", "I cannot stand olives on a pizza."),
    ("Ada", "My brother repairs old clocks."),
    ("Ben", "We painted the kitchen on Sunday."),
]


def write_locomo(path: Path, **change: object) -> Path:
    """Write a small conversation of our own in LoCoMo's format."""
    session = [
        {"speaker": speaker, "dia_id": f"D1:{number}", "text": text}
        for number, (speaker, text) in enumerate(TURNS, 1)
    ]
    questions = [
        {"question": "What is Ada's tortoise called?", "answer": "Leo", "evidence": ["D1:1"], "category": 4},
        {
            "question": "What do Ada and Ben own that is orange or slow?",
            "answer": "a tortoise, a bicycle",
            "evidence": ["D1:1; D1:2"],
            "category": 1,
        },
        {"question": "When does the choir sing?", "answer": 2024, "evidence": ["D1:3"], "category": 2},
        {
            "question": "Which clocks does Ben repair?",
            "adversarial_answer": "old clocks",
            "evidence": ["D1:5"],
            "category": 5,
        },
        {"question": "Who said that?", "answer": "nobody", "evidence": ["D9:9"], "category": 3},
    ]
    conversation = {
        "speaker_a": "Ada",
        "speaker_b": "Ben",
        "session_1_date_time": "1:00 pm on 1 May, 2024",
        "session_1": session,
    }
    whole = {"sample_id": "own", "qa": questions, "conversation": conversation} | change
    path.write_text(json.dumps([whole]))
    return path


@contextmanager
def ollama(brain: Brain) -> Iterator[OllamaDouble]:
    """Let the settings' Ollama be a double."""
    with pytest.MonkeyPatch.context() as patch, OllamaDouble(brain=brain) as double:
        patch.setenv("MNEME_OLLAMA_URL", double.url)
        settings.cache_clear()
        asking.clear_endpoints()
        yield double
    settings.cache_clear()
    asking.clear_endpoints()


class TestLocomo:
    async def test_search_over_turns_is_scored_and_rules_do_not_answer(self, tmp_path: Path) -> None:
        options = locomo.Options(data=write_locomo(tmp_path / "own.json"), out=tmp_path, chatbot="rules")
        report = await locomo.run(options)
        search = report.summary["search"]
        assert report.summary["part"] == "1 of 10 conversations"
        assert search["dense"]["questions"]["all"] == 4  # one question's evidence is not in the file
        for mode in ("dense", "bm25", "hybrid", "blend"):
            assert search[mode]["recall"]["single-hop"][5]["mean"] == 1.0
            assert search[mode]["milliseconds"]["seconds_without_embedding"]["p50"] > 0
        assert search["dense"]["recall"]["all"][20]["mean"] == 1.0  # six turns in all
        assert set(search["blend"]["gain"]["all"]) == {"mean", "low", "high"}
        assert search["dense"]["tokens"][5] < search["dense"]["tokens"][10]
        assert report.summary["answers"] == {}
        assert any("Answers are not scored" in note for note in report.notes)
        assert report.plots[0].stat().st_size > 0

    async def test_what_the_memory_agent_kept_counts_as_the_turns_it_came_from(self, tmp_path: Path) -> None:
        options = locomo.Options(
            data=write_locomo(tmp_path / "own.json"),
            out=tmp_path,
            agents="rules",
            search_in="memories",
            conversations=["own"],
        )
        report = await locomo.run(options)
        found = [row["found"] for row in report.rows if row["case"] == "own/0/blend"]
        assert found[0][0] == ["D1:1"]
        (kept,) = (note for note in report.notes if "memories kept by rules." in note)
        (cost,) = (note for note in report.notes if note.startswith("Remembering 6 turns took "))
        assert "without a usable answer" in cost and any("0 turns could not" in note for note in report.notes)
        (behind,) = (row["turns"] for row in report.rows if row["case"] == "own/kept")
        evidence = [["D1:1"], ["D1:1", "D1:2"], ["D1:3"], ["D1:5"]]
        most = sum(len({*behind} & {*each}) / len(each) for each in evidence) / len(evidence)
        assert kept and most == 1, "rules keep every statement"
        assert "100% of the evidence" in " ".join(report.notes)
        with pytest.raises(BadInput, match="no conversation other"):
            await locomo.run(options.model_copy(update={"conversations": ["other"]}))

    async def test_remembering_goes_on_where_it_stopped(self, tmp_path: Path) -> None:
        options = locomo.Options(
            data=write_locomo(tmp_path / "own.json"),
            out=tmp_path,
            agents="rules",
            search_in="memories",
            limit=5,
        )

        def stop(done: int, of: int, what: str) -> None:
            if done == 2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            await locomo.run(options, stop)
        before = raw_results(tmp_path)
        assert before.count("/remembered") == 2
        seen: list[str] = []
        report = await locomo.run(options, lambda done, of, what: seen.append(f"{done} of {of}"))
        assert raw_results(tmp_path).startswith(before)
        assert seen[:3] == ["3 of 5", "4 of 5", "5 of 5"], "what was remembered is not asked again"
        found = [row["found"] for row in report.rows if row["case"] == "own/0/blend"]
        assert found[0][0] == ["D1:1"], "the memories of the first run are there"
        assert report.notes[0] == "Of each conversation its first 5 turns alone were used."
        assert report.summary["search"]["dense"]["questions"]["all"] == 4

    async def test_too_few_turns_for_any_question_are_a_clear_error(self, tmp_path: Path) -> None:
        late = [{"question": "?", "category": 4, "evidence": ["D1:5"]}]
        data = write_locomo(tmp_path / "own.json", qa=late)
        with pytest.raises(BadInput, match="No question is on the first 2 turns"):
            await locomo.run(locomo.Options(data=data, out=tmp_path, chatbot="rules", limit=2))

    async def test_a_models_answers_are_scored_and_kept(self, tmp_path: Path) -> None:
        with ollama(lambda body: "Not mentioned in the conversation" if asks(body, "(a)") else "Leo"):
            data = write_locomo(tmp_path / "own.json")
            options = locomo.Options(data=data, out=tmp_path, chatbot="ollama:llama3.1:8b")
            answers = (await locomo.run(options)).summary["answers"]
        assert answers["single-hop"]["mean"] == 1.0
        assert answers["adversarial"]["mean"] == 1.0
        assert answers["temporal"]["mean"] == 0.0

    async def test_a_question_without_a_usable_answer_scores_nothing(self, tmp_path: Path) -> None:
        with ollama(lambda body: "" if asks(body, "When does the choir") else "Leo"):
            data = write_locomo(tmp_path / "own.json")
            options = locomo.Options(data=data, out=tmp_path, chatbot="ollama:llama3.1:8b")
            report = await locomo.run(options)
        assert report.summary["answers"]["temporal"]["mean"] == 0.0
        assert report.summary["answers"]["single-hop"]["mean"] == 1.0
        assert "1 of 5 questions got no usable answer, and count as 0." in report.notes

    async def test_an_interrupted_run_goes_on_where_it_stopped(self, tmp_path: Path) -> None:
        options = locomo.Options(data=write_locomo(tmp_path / "own.json"), out=tmp_path, chatbot="rules")

        def stop(done: int, of: int, what: str) -> None:
            if done == 2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            await locomo.run(options, stop)
        kept = raw_results(tmp_path)
        assert len(kept.splitlines()) == 1 + 2 * 4
        report = await locomo.run(options)
        assert raw_results(tmp_path).startswith(kept)
        assert len(report.rows) == 5 * 4

    @pytest.mark.parametrize(
        ("content", "complaint"),
        [
            ("{not json", "not in LoCoMo's format"),
            ("[]", "no conversation"),
            ('[{"sample_id": "a", "qa": []}]', "needs `sample_id`"),
            (
                '[{"sample_id": "a", "qa": [], "conversation": {"session_1": 3}}]',
                "session_1 is not a list of turns",
            ),
        ],
    )
    def test_a_bad_file_is_a_clear_error(self, tmp_path: Path, content: str, complaint: str) -> None:
        path = tmp_path / "locomo.json"
        path.write_text(content)
        with pytest.raises(BadInput, match=complaint):
            locomo_data.load(locomo_data.find(tmp_path))

    def test_absent_data_is_a_clear_error(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(BadInput, match=r"no locomo\*.json"):
            locomo_data.find(tmp_path)
        with pytest.raises(BadInput, match="Cannot read"):
            locomo_data.load(tmp_path / "none.json")
        path = write_locomo(tmp_path / "own.json", qa=[])
        with pytest.raises(BadInput, match="no turn that answers"):
            locomo_data.load(path)

    def test_the_benchmarks_own_file_is_read_whole(self) -> None:
        if settings().data is None:
            pytest.skip("MNEME_DATA does not say where LoCoMo's file is")
        for conversation in locomo_data.load(locomo_data.find(None)):
            assert len(conversation.turns) > 300
            assert all(turn.date and turn.speaker in turn.wording for turn in conversation.turns)
            unknown = [q for q in conversation.questions if not conversation.evidence_of(q)]
            assert len(unknown) <= 2


def raw_results(folder: Path) -> str:
    (raw,) = folder.glob("*.jsonl")
    return raw.read_text()


def asks(body: dict[str, object], words: str) -> bool:
    return words in json.dumps(body)


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
        recall = table_1.TESTS[4]
        reply = "Max is a Labrador mix who loves fetch, fears thunderstorms and lives with Emily in Portland."
        assert table_1.is_right(recall, as_row([], reply=reply, failed=""))
        assert not table_1.is_right(recall, as_row([], reply="I do not know Max.", failed=""))
        assert not table_1.is_right(recall, as_row([LEARNT], reply=reply, failed=""))


class TestMsc:
    async def test_every_version_runs_the_papers_table_and_the_set(self, tmp_path: Path) -> None:
        options = msc.Options(
            data=write_set(tmp_path / "set.jsonl"),
            out=tmp_path / "runs",
            agents="rules",
        )
        report = await msc.run(options)
        versions = ["ours", "v3", "v2", "v1", "two-agents"]
        baselines = ["store nothing", "insert everything"]
        systems = report.summary["contradictions"]
        assert list(report.summary["table_1"]) == versions
        assert list(systems)[:7] == versions + baselines
        assert len(systems) == 9
        assert systems["store nothing"]["categories"]["smalltalk"]["right"] == 1
        assert systems["store nothing"]["whole"]["right"] == 1
        assert systems["insert everything"]["whole"]["right"] == 0
        assert systems["ours"]["whole"]["right"] == 2
        assert report.summary["table_1"]["ours"] == [True] * 5 + [False], "rules append no age"
        assert "rules" in report.answered_by
        assert report.plots[0].stat().st_size > 0
        first = report.rows[0]["tests"][0]
        assert first["before"] == []
        assert "fetch" in first["after"][0]
        assert first["reply"]

    async def test_a_language_model_is_asked_over_the_wire_and_named(self, tmp_path: Path) -> None:
        with ollama(by_rules(read_message, compare_memories, rewrite_memory, reply)):
            options = msc.Options(
                data=write_set(tmp_path / "set.jsonl"),
                out=tmp_path / "runs",
                agents="ollama:llama3.1:8b",
                arms=["ours"],
            )
            report = await msc.run(options)
        assert report.summary["contradictions"]["ours"]["whole"]["right"] == 2
        assert report.summary["table_1"]["ours"] == [True, False, True, True, True, False]
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
                memory_agent="ollama:llama3.1:8b",
                arms=["ours"],
            )
            report = await msc.run(options)
        summary = report.summary["contradictions"]["ours"]
        assert summary["failed"] == 2
        assert summary["whole"]["right"] == 0
        assert report.answered_by.startswith("ollama:llama3.1:8b (")  # with the digest of its weights
        assert any("2 messages failed" in note for note in report.notes)

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
    async def test_the_user_goes_first_and_checks_run_at_once(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        options = latency.Options(agents="ollama:llama3.1:8b", pending=[0, 12], trials=2, out=tmp_path)
        with served(monkeypatch, seconds=0.2, parallel=4, brain=scripted_answers.answer):
            report = await latency.run(options)
        chats = {(each["what"], each["pending"]): each for each in report.summary["chat"]}
        empty, loaded = chats["chat", 0], chats["chat", 12]
        remembering = {one["what"]: one for one in report.summary["remembering"]}
        assert empty["calls"] == loaded["calls"] == 1
        assert chats["hot path", 0]["calls"] == 2
        assert loaded["left"] == 12
        assert loaded["seconds"] < chats["chat without the gate", 12]["seconds"] / 2
        assert remembering["version 3"]["calls"] == remembering["version 3 in sequence"]["calls"] == 13
        assert remembering["ours"]["calls"] == 2
        assert remembering["ours"]["prompt_tokens"] <= 2000
        assert remembering["ours"]["faster"] > 1
        assert {one["did"] for one in remembering.values()} == {"update"}
        assert len(raw_results(tmp_path).splitlines()) == 1 + len(report.rows)

    async def test_rules_have_no_queue(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="rules has no queue"):
            await latency.run(latency.Options(agents="rules", out=tmp_path))
