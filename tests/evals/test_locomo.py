"""LoCoMo: its scores, its search among turns and memories, and that it goes on."""

import json
from pathlib import Path

import pytest

from mneme.core.errors import BadInput
from mneme.core.settings import settings
from mneme.evals.chat import locomo, locomo_data
from mneme.evals.chat.locomo_data import Question, answer_score, chosen
from tests.evals.runs import ollama, raw_results


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


class TestLocomo:
    async def test_search_over_turns_is_scored_and_rules_do_not_answer(self, tmp_path: Path) -> None:
        options = locomo.Options(data=write_locomo(tmp_path / "own.json"), out=tmp_path, chatbot="rules")
        report = await locomo.run(options)
        search = report.summary["search"]
        assert report.summary["part"] == "1 of 10 conversations"
        assert search["dense"]["questions"]["all"] == 4  # one question's evidence is not in the file
        for mode in ("dense", "bm25", "hybrid", "blend"):
            assert search[mode]["recall"]["single-hop"][5]["mean"] == 1.0
            assert search[mode]["milliseconds"]["p50"] > 0
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
            turns=5,
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
            await locomo.run(locomo.Options(data=data, out=tmp_path, chatbot="rules", turns=2))

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
        assert len(kept.splitlines()) == 1 + 2
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


def asks(body: dict[str, object], words: str) -> bool:
    return words in json.dumps(body)
