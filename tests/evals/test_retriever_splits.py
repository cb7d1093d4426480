"""The comparison of retrievers over splits: what is counted, and that a run goes on."""

import json
from pathlib import Path

import pytest

from mneme.evals.report import Journal, Row
from mneme.evals.sharing import retriever_splits
from mneme.evals.sharing.retriever_splits import Options, report
from mneme.library import PAIRS


def split_of(pool: str, untrained: list[float], reranker: list[float], *, kept: bool) -> Row:
    found = {
        "untrained": {"own": untrained},
        "reranker": {"own": reranker, "kept": kept},
        "projection": {"own": untrained, "kept": False},
    }
    return {"pool": pool, "memories": 10, "found": found}


def test_splits_above_and_below_the_untrained_embedder_are_counted(tmp_path: Path) -> None:
    rows = [
        split_of("poems", [0.0, 1.0], [1.0, 1.0], kept=True),
        split_of("poems", [1.0, 1.0], [0.0, 1.0], kept=True),
        split_of("plans", [0.5, 0.5], [0.5, 0.5], kept=False),
    ]
    found = report(rows, Journal(tmp_path / "retrievers.jsonl"), "an embedder").summary
    assert (found["poems"]["splits"], found["poems"]["questions"], found["poems"]["untrained"]) == (
        2,
        4,
        0.75,
    )
    assert found["poems"]["reranker, splits"] == "1, 1, 2" and found["plans"]["reranker, splits"] == "0, 0, 0"
    assert found["all splits"]["reranker"].startswith("0.667: +0.000 [-")
    assert found["all splits"]["projection"] == "0.667: +0.000 [+0.000, +0.000]"


async def test_each_pool_of_a_split_is_measured_once(tmp_path: Path, own_home: Path) -> None:
    for agent in ("pun", "limerick"):
        lines = (PAIRS / f"{agent}.jsonl").read_text(encoding="utf-8").splitlines()[:10]
        (tmp_path / f"{agent}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    options = Options(data=tmp_path, seeds=[1], out=tmp_path / "out")

    class KilledError(Exception):
        pass

    def kill(done: int, of: int, what: str) -> None:
        if done == 2:
            raise KilledError

    with pytest.raises(KilledError):
        await retriever_splits.run(options, kill)
    told = list[int]()
    ended = await retriever_splits.run(options, lambda done, of, what: told.append(done))
    assert told == [3] and [row["pool"] for row in ended.rows][-1] == "single_pool"
    (single,) = (row for row in ended.rows if row["pool"] == "single_pool")
    assert single["memories"] == 12 and len(single["found"]["untrained"]["own"]) == 8
    assert all(row["found"]["untrained"]["own"] == [1.0] * 4 for row in ended.rows if row is not single)
    json.dumps(ended.summary)
