"""The evaluation of Memory Sharing: splits without leakage, scores, a run that goes on, what it prints."""

import json
import random
from collections import Counter
from io import StringIO
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from typer.testing import CliRunner

from mneme.cli.main import app
from mneme.core.errors import BadInput
from mneme.evals.report import Report, Row
from mneme.evals.sharing import memory_sharing
from mneme.evals.sharing.data import (
    DUPLICATE_LIKENESS,
    SPLIT_PARTS,
    Item,
    Split,
    likenesses,
    near_duplicates,
    read_items,
    split,
)
from mneme.evals.sharing.memory_sharing import Options
from mneme.evals.sharing.scores import BertScore, rouge_l, tokens
from mneme.evals.sharing.tables import PAPER_1, PAPER_2, cell, compared, spread
from mneme.library import PAIRS
from mneme.library.agents.agent import AGENTS
from mneme.models.embedding import minilm
from mneme.models.embedding.embedders import open_embedder
from mneme.stores.ledger.ledger import open_ledger
from mneme.stores.pools.memory_pool import MemoryPool

pytestmark = pytest.mark.timeout(300)
FEW = 6


def closest_across(made: Split) -> float:
    """Return the greatest likeness, of 100, of two items in different splits."""
    return max(float(likenesses(made[a], made[b]).max()) for a, b in combinations(SPLIT_PARTS, 2))


class KilledError(RuntimeError):
    """What ends a run in its middle."""


@pytest.fixture(scope="module")
def shipped() -> list[Item]:
    return read_items(None)


@pytest.fixture(scope="module")
def bert() -> BertScore:
    return BertScore()


def item(id_: str, question: str, answer: str, agent: str = "riddle") -> Item:
    return Item(id=id_, question=question, answer=answer, agent=agent)


def written(folder: Path, lines: list[str], name: str = "mine.jsonl") -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


class TestSplits:
    @pytest.mark.parametrize("seed", [1, 17])
    def test_each_agent_is_split_20_40_40_and_nothing_is_in_two_splits(
        self, shipped: list[Item], seed: int
    ) -> None:
        made = split(shipped, seed)
        counts = {part: Counter(each.agent for each in made[part]) for part in SPLIT_PARTS}
        for agent in AGENTS:
            assert [counts[part][agent] for part in SPLIT_PARTS] == [5, 10, 9]
        ids = [each.id for part in SPLIT_PARTS for each in made[part]]
        assert sorted(ids) == sorted(each.id for each in shipped)
        assert closest_across(made) < DUPLICATE_LIKENESS

    def test_a_seed_draws_the_same_split_again_and_another_seed_another(self, shipped: list[Item]) -> None:
        assert split(shipped, 4) == split(shipped, 4)
        assert split(shipped, 4) != split(shipped, 5)

    @pytest.mark.parametrize("seed", [1, 2])
    def test_near_duplicates_stay_together_across_agents_too(self, shipped: list[Item], seed: int) -> None:
        """Copies under other ids and agents: a word more, sentences turned round, the question alone kept."""
        draw = random.Random(seed)
        originals = draw.sample(shipped, 12)
        copies = [self._copy(each, number, draw) for number, each in enumerate(originals)]
        together = [*shipped, *copies]
        group_of = {
            each.id: number for number, group in enumerate(near_duplicates(together)) for each in group
        }
        assert all(group_of[one.id] == group_of[copy.id] for one, copy in zip(originals, copies, strict=True))
        assert len(set(group_of.values())) == len(shipped)
        made = split(together, seed)
        part_of = {each.id: part for part in SPLIT_PARTS for each in made[part]}
        assert all(part_of[one.id] == part_of[copy.id] for one, copy in zip(originals, copies, strict=True))
        assert len(part_of) == len(together)
        assert closest_across(made) < DUPLICATE_LIKENESS

    def _copy(self, original: Item, number: int, draw: random.Random) -> Item:
        noise = "".join(draw.choices("abcdefghijklmnopqrstuvwxyz ", k=80))
        turned = "\n".join(reversed(original.answer.split("\n")))
        changes: tuple[Row, ...] = (
            {"question": f"{original.question} Thanks!"},
            {"question": noise, "answer": turned},
            {"answer": noise},
        )
        named = {"id": f"copy-{number}", "agent": draw.choice(AGENTS)}
        return original.model_copy(update=named | changes[number % 3])

    def test_what_is_near_by_others_between_is_one_group(self) -> None:
        words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
        chain = [item(f"{n}", " ".join(words[n : n + 8]), f"answer {n * 7919}") for n in range(3)]
        apart = item("other", "What has keys and opens no door?", "A piano.")
        sizes = sorted(len(group) for group in near_duplicates([*chain, apart]))
        assert sizes == [1, 3]


class TestItems:
    def test_one_file_may_hold_several_agents(self, tmp_path: Path) -> None:
        lines = [
            json.dumps({"id": f"{a}-{n}", "question": f"q {n}", "answer": f"a {n}", "agent": a})
            for a in ("pun", "riddle")
            for n in range(5)
        ]
        assert Counter(each.agent for each in read_items(written(tmp_path, lines))) == {"pun": 5, "riddle": 5}

    @pytest.mark.parametrize(
        ("line", "told"),
        [
            ('{"id": "x", "question": "q"', "line 2"),
            ('{"id": "x", "question": "q", "agent": "pun"}', "line 2: answer"),
            ('{"id": "x", "question": "", "answer": "a", "agent": "pun"}', "line 2: question"),
            ('{"id": "x", "question": "q", "answer": "a"}', "line 2: agent"),
            ('{"id": "x", "question": "q", "answer": "a", "agent": "haiku"}', 'no agent "haiku"'),
            ('{"id": "0", "question": "q", "answer": "a", "agent": "pun"}', '"0" is given twice'),
        ],
    )
    def test_a_broken_line_is_named(self, tmp_path: Path, line: str, told: str) -> None:
        whole = [json.dumps({"id": str(n), "question": "q", "answer": "a", "agent": "pun"}) for n in range(6)]
        with pytest.raises(BadInput, match=told):
            read_items(written(tmp_path, [whole[0], line, *whole[1:]]))

    def test_too_few_items_and_a_folder_without_items_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="is neither a file nor a folder"):
            read_items(tmp_path)
        few = (PAIRS / "pun.jsonl").read_text(encoding="utf-8").splitlines()[:4]
        with pytest.raises(BadInput, match="pun has 4"):
            read_items(written(tmp_path, few, "pun.jsonl").parent)

    def test_items_that_are_all_the_same_cannot_be_split(self) -> None:
        with pytest.raises(BadInput, match="Of riddle no item is left"):
            split([item(str(n), "What has keys and opens no door?", "A piano.") for n in range(9)], 1)

    def test_the_command_says_what_is_wrong_with_the_data(self, tmp_path: Path) -> None:
        path = written(tmp_path, ["{"])
        done = CliRunner().invoke(app, ["eval", "memory_sharing", "--data", str(path), "--agents", "rules"])
        assert done.exit_code != 0
        assert "line 1" in str(done.exception)


class TestScores:
    def test_rouge_l_is_f1_over_the_longest_common_subsequence(self) -> None:
        assert rouge_l("the cat sat on the mat", "The cat sat on the mat!") == 1.0
        assert rouge_l("police kill the gunman", "police killed the gunman") == pytest.approx(0.75)
        assert rouge_l("the gunman police killed", "police killed the gunman") == pytest.approx(0.5)
        assert rouge_l("", "word") == rouge_l("one", "two") == 0.0

    def test_chinese_is_compared_character_by_character(self) -> None:
        assert tokens("夜坐江楼冷,Two words") == ("夜", "坐", "江", "楼", "冷", "two", "words")
        assert rouge_l("夜坐江楼冷", "夜坐山楼冷") == pytest.approx(0.8)

    @pytest.mark.long
    def test_bert_score_ranks_by_meaning_and_needs_no_network(
        self, bert: BertScore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refused(*_: object, **__: object) -> None:
            raise AssertionError("a connection was opened")

        monkeypatch.setattr("socket.socket.connect", refused)
        monkeypatch.setattr("socket.getaddrinfo", refused)
        right = "Run three times a week and rest on Sundays."
        scored = BertScore().score(
            [
                right,
                "Go running thrice weekly, with a pause on Sunday.",
                "The candle burns in the hall.",
                " ",
            ],
            [right] * 4,
        )
        same, near, far, none = (each.f1 for each in scored)
        assert same == pytest.approx(1.0, abs=1e-5)
        assert same > near > far > none == 0.0

    def test_bert_score_does_not_depend_on_what_else_is_scored(self, bert: BertScore) -> None:
        answers, references = (
            ["A candle.", "A long answer " * 40, "Your shadow."],
            ["A lamp.", "One", "Shadows."],
        )
        together = bert.score(answers, references)
        alone = [bert.score([a], [b])[0] for a, b in zip(answers, references, strict=True)]
        assert np.ravel(together) == pytest.approx(np.ravel(alone), abs=1e-5)

    @pytest.mark.long
    def test_an_encoder_without_chinese_says_so(self, bert: BertScore, shipped: list[Item]) -> None:
        def unknown(agent: str) -> float:
            return bert.unknown([each.answer for each in shipped if each.agent == agent])

        assert unknown("sonnet") < 0.01
        assert unknown("wuyanlvshi") > 0.3

    def test_a_folder_named_like_another_kind_of_model_is_read(self, tmp_path: Path) -> None:
        folder = tmp_path / "my-t5-notes"
        folder.symlink_to(minilm.weights())
        assert BertScore(folder).score(["a"], ["a"])[0].f1 == pytest.approx(1.0, abs=1e-5)

    @pytest.mark.long
    def test_what_is_no_encoder_and_too_many_layers_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="holds no encoder"):
            BertScore(tmp_path)
        with pytest.raises(BadInput, match="has 6 layers, not 7"):
            BertScore(layers=7)


def test_an_item_of_several_seeds_counts_once_in_a_comparison() -> None:
    draw = np.random.default_rng(0)
    level = draw.normal(0.5, 0.1, 20)
    items = [str(n) for n in range(20)]
    rows = pd.DataFrame({"item": items, "x": level + 0.05 + 0.001 * np.arange(20)})
    others = pd.DataFrame({"item": items, "x": level})
    difference, p = compared(rows, others, "x")
    assert difference == pytest.approx(0.0595)
    assert p < 1e-4
    assert compared(pd.concat([rows] * 9), pd.concat([others] * 9), "x") == pytest.approx((difference, p))
    assert compared(rows, rows, "x") == (0.0, 1.0)


def test_one_seed_has_no_deviation() -> None:
    assert cell(spread([0.5])) == "0.500 ±–"
    assert cell(spread([0.5, 0.5])) == "0.500 ±0.000"
    assert cell(spread([])) == "–"


def test_the_paper_is_quoted_for_all_nine_agents() -> None:
    assert set(PAPER_1) == set(PAPER_2) == set(AGENTS)
    assert PAPER_1["limerick"][3] == (0.87, 0.59, 0.93)
    gained = {agent: PAPER_1[agent][3][0] - single[0] for agent, single in PAPER_2.items()}
    assert [agent for agent, gain in gained.items() if gain <= 0] == ["pun", "study"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give few items of two agents in two domains."""
    folder = tmp_path_factory.mktemp("items")
    for agent in ("puzzle", "wuyanlvshi"):
        lines = (PAIRS / f"{agent}.jsonl").read_text(encoding="utf-8").splitlines()[:FEW]
        written(folder, lines, f"{agent}.jsonl")
    return folder


def options(data: Path, out: Path) -> Options:
    return Options(data=data, seeds=[1], agents="rules", threshold=20, out=out)


def outcome(report: Report) -> dict[str, Row]:
    """Return what a run found, without when."""
    told = ("answer", "score", "stored", "bert_score", "rouge_l")
    return {
        row["case"]: {name: row[name] for name in told if name in row} | row.get("ways", {})
        for row in report.rows
        if row["kind"] in {"test", "grow", "judge", "score"}
    }


@pytest.mark.long
async def test_a_run_that_was_killed_ends_as_one_that_was_not(data: Path, tmp_path: Path) -> None:
    whole = await memory_sharing.run(options(data, tmp_path / "whole"))
    await _killed_while_pools_grow(data, tmp_path / "cut")
    went_on = await memory_sharing.run(options(data, tmp_path / "cut"))
    assert outcome(went_on) == outcome(whole)


@pytest.mark.long
async def test_a_run_that_was_killed_goes_on(data: Path, tmp_path: Path) -> None:
    journal = await _killed_while_pools_grow(data, tmp_path)
    finished = journal.read_text(encoding="utf-8")
    went_on = await memory_sharing.run(options(data, tmp_path))
    assert journal.read_text(encoding="utf-8").startswith(finished)
    again = await memory_sharing.run(options(data, tmp_path))
    assert again.rows == went_on.rows
    await _holds_no_test_question(data, journal)
    _is_printed(went_on)


async def _killed_while_pools_grow(data: Path, out: Path) -> Path:
    """Leave the journal of a run with a pair stored whose line in the journal was lost."""

    def kill(done: int, of: int, what: str) -> None:
        if "unconventional_logic: growing to 80" in what:
            raise KilledError

    with pytest.raises(KilledError):
        await memory_sharing.run(options(data, out), kill)
    journal = _journal_in(out)
    lines = journal.read_text(encoding="utf-8").splitlines(keepends=True)
    grown = [at for at, line in enumerate(lines) if "1/domain/own/unconventional_logic/grow/" in line]
    lost = grown[-1]
    assert json.loads(lines[lost])["stored"]
    journal.write_text("".join(lines[:lost] + lines[lost + 1 :]), encoding="utf-8")
    return journal


def _journal_in(out: Path) -> Path:
    (journal,) = out.glob("*.jsonl")
    return journal


async def _holds_no_test_question(data: Path, journal: Path) -> None:
    """See that pools hold what was archived and what was written to new questions, and nothing else."""
    made = split(read_items(data), 1)
    known = {each.question for each in [*made["archived"], *made["new"]]}
    ledger = await open_ledger(str(journal.with_suffix("") / "ledger"), await open_embedder("bundled"))
    try:
        for growth in ("own", "standard"):
            pool = MemoryPool(ledger, f"seed 1, single, {growth}", "single_pool")
            held = {each.pair.prompt async for each in pool.pairs()}
            assert {each.question for each in made["archived"]} < held <= known
    finally:
        await ledger.close()


def _is_printed(report: Report) -> None:
    text = StringIO()
    report.print(Console(file=text, width=220))
    printed = text.getvalue()
    for wanted in ("Table 1", "Table 2", "Figure 4", "untrained", "BM25", "random", ".53 .51 .49"):
        assert wanted in printed
    assert "Answered by rules" in printed
    assert all(plot.read_bytes().startswith(b"\x89PNG") for plot in report.plots)
    assert len(report.plots) == 1
    trained = report.summary["retriever"]["standard"]["trained"]
    assert 0 <= trained["recall@3"]["mean"] <= trained["recall@10"]["mean"] <= 1
    json.dumps(report.json())
