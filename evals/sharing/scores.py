"""Similarity of an answer to the standard answer: BERTScore by a local encoder, and ROUGE-L.

BERTScore (Zhang et al. 2020) is the library `bert-score`'s greedy matching, F1, no IDF weights, not rescaled.
The encoder is a folder on this machine, by default the bundled MiniLM, whose fifth of six layers is taken: of
models with six layers bert-score chose the fifth by agreement with people's judgement. The library's own
loader is not used, since it takes any path with "t5" in it for a T5 model. Nothing is downloaded.

ROUGE-L is F1 over the longest common subsequence of words; a Chinese character is a word.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from rapidfuzz.distance import LCSseq

from mneme.core.errors import BadInput, needs
from mneme.evals.report import Journal, Progress, Row, digest
from mneme.models.embedding import minilm
from mneme.models.embedding.absent import BUNDLED_NAME
from mneme.models.retriever.retriever import device

LAYERS = 5
BERT_BATCH = 16
PAIRS_PER_BATCH = 64
"""Number of pairs that are scored and stored together."""
SCORED_WORD = re.compile(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+(?:['’-][^\W_\u3400-\u9fff]+)*")


@lru_cache(maxsize=8192)
def tokens(text: str) -> tuple[str, ...]:
    """Split a text into lower-cased words and single Chinese characters."""
    return tuple(word.casefold() for word in SCORED_WORD.findall(text))


def rouge_l(answer: str, reference: str) -> float:
    """Return ROUGE-L's F1 (Lin 2004), 0 to 1."""
    said, wanted = tokens(answer), tokens(reference)
    common = LCSseq.similarity(said, wanted)
    return 2 * common / (len(said) + len(wanted)) if common else 0.0


class Likeness(NamedTuple):
    """BERTScore's precision (how much of the answer the standard answer covers) and its F1."""

    precision: float
    f1: float


class BertScore:
    """BERTScore with the encoder in a folder; use it from one thread at a time.

    Raises BadInput where the folder holds no encoder that can be read, or one with fewer layers.
    """

    def __init__(self, folder: Path | None = None, layers: int = LAYERS) -> None:
        with needs("BERTScore", "bertscore"):
            transformers, self._library = map(import_module, ("transformers", "bert_score.utils"))
        transformers.utils.logging.disable_progress_bar()
        self.folder, self.layers = folder or minilm.weights(), layers
        try:
            self._tokenizer: Any = transformers.AutoTokenizer.from_pretrained(
                str(self.folder), local_files_only=True
            )
            model: Any = transformers.AutoModel.from_pretrained(str(self.folder), local_files_only=True)
        except (OSError, ValueError) as error:
            raise BadInput(f"{self.folder} holds no encoder: {error}", "Give its folder.") from error
        self._device = device()
        self._model = _cut(model, layers).to(self._device).eval()
        # No idf weighting, as bert-score's default; the ends of a text count nothing.
        self._weights: defaultdict[int, float] = defaultdict(lambda: 1.0)
        self._weights[self._tokenizer.sep_token_id] = self._weights[self._tokenizer.cls_token_id] = 0.0

    @property
    def name(self) -> str:
        """Return the encoder's name without its path."""
        return BUNDLED_NAME if self.folder == minilm.weights() else self.folder.name

    def score(self, answers: Sequence[str], references: Sequence[str]) -> list[Likeness]:
        """Return precision and F1 of each answer with its reference; an answer without a word has 0."""
        said = [
            # bert-score prints a warning for each empty text.
            at
            for at, (a, b) in enumerate(zip(answers, references, strict=True))
            if a.strip() and b.strip()
        ]
        scores = [Likeness(0.0, 0.0)] * len(answers)
        if said:
            found = self._library.bert_cos_score_idf(
                self._model,
                [references[at] for at in said],
                [answers[at] for at in said],
                self._tokenizer,
                self._weights,
                batch_size=BERT_BATCH,
                device=self._device,
            )
            for at, (precision, _, f1) in zip(said, found.tolist(), strict=True):
                scores[at] = Likeness(precision, f1)
        return scores

    def unknown(self, texts: Sequence[str]) -> float:
        """Return the share of the texts' tokens that the encoder does not know and so cannot tell apart."""
        ids = [id_ for text in texts for id_ in self._tokenizer.encode(text, add_special_tokens=False)]
        return ids.count(self._tokenizer.unk_token_id) / len(ids) if ids else 0.0


def _cut(model: Any, layers: int) -> Any:
    """Leave the encoder's first layers, as bert-score does."""
    if not hasattr(model, "encoder") or not hasattr(model.encoder, "layer"):
        raise BadInput(
            f"{type(model).__name__} is no encoder of BERT's kind.", "BERT, RoBERTa and the like are."
        )
    if not 1 <= layers <= len(model.encoder.layer):
        raise BadInput(
            f"The encoder has {len(model.encoder.layer)} layers, not {layers}.", "Give fewer with --layers."
        )
    model.encoder.layer = model.encoder.layer[:layers]
    return model


def score_all(journal: Journal, bert: BertScore, progress: Progress) -> None:
    """Score every answer that has no score yet, each pair of texts once, those of one reference together."""
    pairs = {_name(each): (each["reference"], each["answer"]) for each in _answers(journal.rows)}
    waiting = sorted((pair, name) for name, pair in pairs.items() if name not in journal)
    for start in range(0, len(waiting), PAIRS_PER_BATCH):
        part = waiting[start : start + PAIRS_PER_BATCH]
        found = bert.score([answer for (_, answer), _ in part], [reference for (reference, _), _ in part])
        for ((reference, answer), name), value in zip(part, found, strict=True):
            rouge = rouge_l(answer, reference)
            scores = {"bert_score": value.f1, "bert_precision": value.precision, "rouge_l": rouge}
            journal.add(name, {"kind": "score"} | scores)
        progress(start + len(part), len(waiting), "scoring the answers")


def _answers(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows that have an answer; of a comparison one for each way to choose examples."""
    for row in rows:
        if row["kind"] == "test":
            yield row
        elif row["kind"] == "judge":
            yield from (row | {"way": way} | found for way, found in row["ways"].items())


def _name(row: Row) -> str:
    return f"score/{digest({'answer': row['answer'], 'reference': row['reference']})}"


def with_scores(journal: Journal) -> list[Row]:
    """Return the rows, each answer with its scores; of a comparison one for each way to choose examples."""
    others = [row for row in journal.rows if row["kind"] not in {"test", "judge", "score"}]
    scores = ("bert_score", "bert_precision", "rouge_l")
    scored = [(each, journal[_name(each)]) for each in _answers(journal.rows)]
    return others + [each | {name: score[name] for name in scores} for each, score in scored]
