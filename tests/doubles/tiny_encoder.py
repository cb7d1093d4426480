"""An encoder of sentences that is real and tiny, so that fine-tuning the whole of it takes no time."""

from pathlib import Path

import pytest

WORDS = ("write", "a", "poem", "plan", "about", "rain", "trains", "tea", "snow", "week", "verse", "diet")
WIDE = 16


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a BERT of two small layers, with a vocabulary of a few words."""
    import torch  # noqa: PLC0415  (slow, and every process that runs any tests reads this file)
    from transformers import BertConfig, BertModel, BertTokenizer  # noqa: PLC0415

    folder = tmp_path_factory.mktemp("tiny")
    marks = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    (folder / "vocab.txt").write_text("\n".join((*marks, *WORDS)))
    BertTokenizer(str(folder / "vocab.txt")).save_pretrained(str(folder))
    torch.manual_seed(0)
    shape = BertConfig(
        vocab_size=len(marks) + len(WORDS),
        hidden_size=WIDE,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
    )
    BertModel(shape).save_pretrained(str(folder))
    return folder
