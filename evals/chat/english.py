"""Train the judge of the English answerer, and try the answerer on labelled messages.

`python -m mneme.evals.chat.english train` writes `rules/english/weights.npz`; `… try [FILE …]`
runs route, compose, compare and rewrite over contradiction sets and prints what is right by category.
One fifth of each set of examples is held back, and scored before the last training uses all.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mneme.evals.chat.contradictions import DEFAULT, Case, Scored, as_row, load, score, summarise
from mneme.evals.scoring import Done
from mneme.rules.english import judge
from mneme.rules.english.clauses import clauses_of
from mneme.rules.english.comparison import compare
from mneme.rules.english.composition import compose, worth_storing
from mneme.rules.english.judge import RELATIONS, SCALE
from mneme.rules.english.rewriting import rewrite
from mneme.rules.english.signs import clause_signs, pair_signs

TRAINING = Path(__file__).parent / "data" / "training"
"""The labelled examples, in a checkout; a wheel has only the weights that came of them."""
WEIGHTS = Path(judge.__file__).parent / "weights.npz"
TIME = "2026-11-20T10:00:00"
Matrix = NDArray[np.float32]


def remember(case: Case) -> list[Done]:
    """Return what the answerer does with a case's message, as version 3 of the memory agent works."""
    if not worth_storing(case.message, case.preceding, TIME)[0]:
        return []
    after, done = list(case.memories), list[Done]()
    for fact in compose(case.message, case.preceding, TIME):
        relations = [compare(fact.content, memory, case.message).relation for memory in case.memories]
        touched = _touched(relations)
        for number in touched:
            after[number] = rewrite(fact.content, after[number], case.message)
        if not touched and "duplicate" not in relations:
            done.append(Done(operation="insert", content=fact.content))
    updates = [n for n, memory in enumerate(case.memories) if after[n] != memory]
    return done + [
        Done(operation="update", content=after[n], before=case.memories[n], target=n) for n in updates
    ]


def _touched(relations: Sequence[str]) -> list[int]:
    conflicts = [n for n, each in enumerate(relations) if each == "conflict"]
    additions = (
        [] if "duplicate" in relations else [n for n, each in enumerate(relations) if each == "addition"]
    )
    return conflicts or additions[:1]


def try_out(paths: Sequence[Path]) -> None:
    """Print what is right by category, and every case that is not."""
    for path in paths:
        scored = [score(case, as_row(remember(case))) for case in load(path)]
        for one in scored:
            if not one.right:
                _show(one)
        summary = summarise(scored)
        for name, of in summary["categories"].items():
            print(f"{name:20} {of['right']:3} of {of['cases']:3}")
        shares = {name: summary[name]["share"] for name in ("whole", "met", "store_or_discard")}
        conflicts = {name: summary["conflicts"][name]["share"] for name in ("found", "left_alone")}
        print(path.name, shares | conflicts)


def _show(one: Scored) -> None:
    case = one.case
    print(f"- {case.id}: {case.preceding or ''} {case.memories} ← {case.message!r}")
    wanted = [(each.operation, each.target, each.contains, each.keeps, each.drops) for each in case.expect]
    done = [(each.operation, each.target, each.content) for each in one.done]
    print(f"    wanted {wanted}\n    done   {done}")


def train() -> None:
    """Train both judges, with and without vectors; print how they do on what was held back."""
    weights = dict[str, Matrix]()
    for name, (vectors, signs, labels) in {"keep": _clauses(), "relation": _pairs()}.items():
        for kind, figures in (("full", np.hstack([vectors, signs])), ("words", _without(vectors, signs))):
            held = np.arange(len(labels)) % 5 == 0
            right = _fit(figures[~held], labels[~held], figures[held])[2] == labels[held]
            print(f"{name} {kind}: {right.mean():.3f} of {held.sum()} held back right")
            weight, bias, _ = _fit(figures, labels, figures)
            if name == "keep":
                weight, bias = weight[:, 1] - weight[:, 0], bias[1:] - bias[:1]
            weights |= {f"{name}_{kind}": weight, f"{name}_{kind}_bias": bias}
    halves: dict[str, Any] = {key: each.astype(np.float16) for key, each in weights.items()}
    np.savez_compressed(WEIGHTS, **halves)


def _without(vectors: Matrix, signs: Matrix) -> Matrix:
    """Return the figures where no embedder is: for pairs, those whose cosine is 0."""
    return signs if vectors.shape[1] else _pairs(plain=True)[1]


def _clauses() -> tuple[Matrix, Matrix, NDArray[np.int64]]:
    rows = _rows("keep")
    clauses = [(each, row["keep"]) for row in rows for each in clauses_of(row["text"]) if not each.asks]
    vectors = np.array(_embedded([each.text for each, _ in clauses]), dtype=np.float32) * SCALE
    signs = np.array([clause_signs(each.text, each.said) for each, _ in clauses])
    return vectors, signs, np.array([int(label) for _, label in clauses])


def _pairs(plain: bool = False) -> tuple[Matrix, Matrix, NDArray[np.int64]]:
    rows = _rows("relations")
    alike = [None if plain else judge.likeness(row["fact"], row["memory"]) for row in rows]
    signs = [pair_signs(row["fact"], row["memory"], each) for row, each in zip(rows, alike, strict=True)]
    labels = np.array([RELATIONS.index(row["relation"]) for row in rows])
    return np.zeros((len(rows), 0), dtype=np.float32), np.array(signs), labels


def _embedded(texts: list[str]) -> list[list[float]]:
    model = judge.embedder()
    assert model is not None, "Training needs the bundled embedder."
    return model.embed(texts)


def _rows(name: str) -> list[dict[str, str]]:
    lines = (TRAINING / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    np.random.default_rng(7).shuffle(rows)
    return rows


def _fit(
    figures: Matrix, labels: NDArray[np.int64], other: Matrix, decay: float = 1e-3
) -> tuple[Matrix, Matrix, NDArray[np.int64]]:
    """Fit a linear model by L-BFGS; return its weights, its bias and its answers to the other figures."""
    import torch  # noqa: PLC0415  (an extra, and slow)

    x, y = torch.tensor(figures), torch.tensor(labels)
    weight = torch.zeros(x.shape[1], int(labels.max()) + 1, requires_grad=True)
    bias = torch.zeros(weight.shape[1], requires_grad=True)
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=300)

    def loss() -> float:
        optimizer.zero_grad()
        value = torch.nn.functional.cross_entropy(x @ weight + bias, y) + decay * (weight**2).sum()
        value.backward()  # type: ignore[no-untyped-call]
        return float(value.detach())

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    answers = (torch.tensor(other) @ weight + bias).argmax(1)
    return weight.detach().numpy(), bias.detach().numpy(), answers.numpy()


if __name__ == "__main__":
    if sys.argv[1:2] == ["train"]:
        train()
    else:
        try_out([Path(each) for each in sys.argv[2:]] or [DEFAULT])
