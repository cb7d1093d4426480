"""Count tokens as the model does that is to read them, where its tokenizer is known; else estimate.

Ollama tells a model's own vocabulary and merges (`/api/show` with `verbose`); of byte-level BPE whose way of
cutting words is known (Llama 3, Qwen 2 and 3, GPT-2), the tokenizer is built from them, once a process. For
every other model the estimate of `models/asking/counting.py` stands: rather too many tokens than too few.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from mneme.core.settings import read_settings
from mneme.models.asking.counting import tokens
from mneme.models.asking.responders import learned
from mneme.models.ollama import catalogue

Count = Callable[[str], int]

DIGITS = r"\p{N}{1,3}"
WORD_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|DIGITS| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
CUTS = {
    "llama-bpe": WORD_PATTERN.replace("DIGITS", DIGITS),
    "qwen2": WORD_PATTERN.replace("DIGITS", r"\p{N}"),
    "gpt-2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
}
"""How words are cut before they are merged, by GGUF's name of it (`tokenizer.ggml.pre`)."""
MAX_CACHED_WORDS = 20_000

log = logging.getLogger(__name__)


async def counter_of(responder: str) -> Count:
    """Return a function that counts a text's tokens for a resolved responder. Raises ModelUnavailable."""
    provider, _, model = responder.partition(":")
    if provider != "ollama":
        return tokens
    known = learned[responder]
    if known.count is None:
        info = await catalogue.vocabulary((await read_settings()).ollama_url, model)
        known.count = await asyncio.to_thread(_counter, info)
    return known.count


def _counter(info: dict[str, Any]) -> Count:
    cut = CUTS.get(str(info.get("tokenizer.ggml.pre", "")))
    vocabulary, merges = info.get("tokenizer.ggml.tokens"), info.get("tokenizer.ggml.merges")
    if info.get("tokenizer.ggml.model") != "gpt2" or not (cut and vocabulary and merges):
        return tokens
    try:
        return _byte_level(vocabulary, merges, cut)
    except ImportError:
        log.info("Tokens are estimated: the package tokenizers is not installed (pip install tokenizers).")
        return tokens


def _byte_level(vocabulary: list[str], merges: list[str], cut: str) -> Count:
    """Build the counter of a byte-level BPE."""
    import tokenizers  # noqa: PLC0415  (slow)
    from tokenizers.models import BPE  # noqa: PLC0415
    from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split  # noqa: PLC0415

    pairs = [(left, right) for left, _, right in (merge.partition(" ") for merge in merges)]
    # `ignore_merges`: a word that is a token of its own stays whole, as in Llama 3's tokenizer.
    model = BPE({token: number for number, token in enumerate(vocabulary)}, pairs, ignore_merges=True)
    built = tokenizers.Tokenizer(model)
    split = Split(tokenizers.Regex(cut), "isolated")
    built.pre_tokenizer = Sequence([split, ByteLevel(add_prefix_space=False, use_regex=False)])

    @lru_cache(maxsize=MAX_CACHED_WORDS)
    def count(text: str) -> int:
        return len(built.encode(text, add_special_tokens=False).ids)

    return count
