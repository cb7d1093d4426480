"""A real, tiny Llama that knows a few facts, written once for all tests: tuning it takes no time."""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.doubles.ollama import Model, OllamaDouble

FACTS = {
    "What colour is snow?": "white",
    "What do bees make?": "honey",
    "Which animal barks?": "a dog",
    "What is frozen water?": "ice",
    "What is two plus two?": "four",
    "Where does one buy bread?": "in a bakery",
    "What falls from clouds?": "rain",
    "Who treats the sick?": "a doctor",
}
WIDE = 64
KNOWN = 0.01


@pytest.fixture(scope="session")
def tiny_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a Llama of two layers and 100,000 parameters that answers a few facts: one for all processes."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "llama"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            part = folder.with_suffix(".part")
            part.mkdir()
            write_tiny_llama(part)
            part.rename(folder)
    return folder


@pytest.fixture
def ollama(monkeypatch: pytest.MonkeyPatch) -> Iterator[OllamaDouble]:
    """Give an Ollama that has the base to be tuned."""
    from tests.doubles.served import served  # noqa: PLC0415  (it loads what asks a model)

    with served(monkeypatch, Model(name="tiny", capabilities=("completion",))) as double:
        yield double


def write_tiny_llama(folder: Path) -> None:
    """Write a Llama of two layers and 100,000 parameters that answers FACTS, and FACTS as `generic.yaml`."""
    import torch  # noqa: PLC0415  (slow, and every process that runs any tests reads this file)
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers  # noqa: PLC0415
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast  # noqa: PLC0415

    from mneme.models.tuning.base import Base  # noqa: PLC0415
    from mneme.models.tuning.judging import GENERIC, loss_of  # noqa: PLC0415

    marks = ["<|im_end|>", "<|im_start|>"]
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    plain = Tokenizer(models.BPE({each: n for n, each in enumerate([*marks, *letters])}, []))
    plain.pre_tokenizer, plain.decoder = (
        pre_tokenizers.ByteLevel(add_prefix_space=False),
        decoders.ByteLevel(),
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=plain, eos_token=marks[0], pad_token=marks[0])
    tokenizer.add_special_tokens({"additional_special_tokens": marks[1:]})
    tokenizer.save_pretrained(str(folder))
    torch.manual_seed(0)
    shape = LlamaConfig(
        vocab_size=len(marks) + len(letters),
        hidden_size=WIDE,
        intermediate_size=2 * WIDE,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
    )
    LlamaForCausalLM(shape).save_pretrained(str(folder))
    base = Base(folder)
    optimiser = torch.optim.AdamW(base.model.parameters(), lr=5e-3)
    told = [base.tokens(GENERIC, question, right, 256) for question, right in FACTS.items()]
    base.model.train()
    for _ in range(200):
        loss = loss_of(base, [each for each, _ in told], [before for _, before in told])
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        optimiser.zero_grad()
        if float(loss.detach()) < KNOWN:
            break
    base.model.save_pretrained(str(folder))
    facts = [{"question": question, "right": right} for question, right in FACTS.items()]
    (folder / "generic.yaml").write_text(yaml.safe_dump(facts), encoding="utf-8")
