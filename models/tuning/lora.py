"""LoRA (Hu et al. 2022): small matrices beside frozen weights, trained in steps that survive a kill.

A training that was killed goes on from its last saved step and ends where it would have ended: all its
chance follows from the seed. What is saved is one file of tensors, the adapter and AdamW's moments.
"""

import hashlib
import json
import os
import random
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from safetensors import SafetensorError, safe_open

from mneme.core.errors import BadInput, StorageFailure
from mneme.core.private import make_private_folder
from mneme.models.tuning.base import Base
from mneme.models.tuning.judging import loss_of
from mneme.models.tuning.pairs import SYSTEM_PROMPT, Pair, Progress, Recipe, silent

# Without the projections of queries and keys: servers of GGUF files keep their rows in another order, and
# Ollama's conversion of an adapter reorders the wrong side of PEFT's matrices for these two.
TARGETS = ["v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
TRAINING_FILE = "training.safetensors"
ADAPTER = "adapter"
ADAPTER_FILE = "adapter_model.safetensors"
CLIP = 1.0
SAVE_EVERY = 10
"""Number of steps between two saves."""
MAX_UNSAVED_SECONDS = 60.0
"""Maximum seconds between two saves, which a kill may cost: on a CPU ten steps can take many minutes."""
MOMENTS = ("exp_avg", "exp_avg_sq")


class TrainingCost(BaseModel):
    """The cost of a training."""

    model_config = ConfigDict(frozen=True)

    pairs: int
    steps: int
    tokens: int = Field(0, description="That were read in all epochs, those of what was asked included.")
    losses: list[float] = Field(description="Mean loss of each epoch, in nats a token.")
    seconds: float = Field(description="Of computing, those before a kill included.")
    device: str
    mixed: bool
    parameters: int = Field(description="That were trained.")


class Training:
    """One training of one adapter, in a folder of its own."""

    def __init__(self, base: Base, folder: Path, recipe: Recipe) -> None:
        import torch  # noqa: PLC0415
        from peft import LoraConfig, get_peft_model  # noqa: PLC0415  (an extra, and slow)

        torch.manual_seed(recipe.seed)  # the adapter's first matrices are drawn
        self._base, self._folder, self._recipe = base, folder, recipe
        shape = LoraConfig(
            r=recipe.rank,
            lora_alpha=2 * recipe.rank,
            target_modules=TARGETS,
            lora_dropout=0.0,  # it would draw from a generator whose state is not saved
            task_type="CAUSAL_LM",
        )
        with warnings.catch_warnings():  # peft asks transformers by a name that is going
            warnings.simplefilter("ignore", FutureWarning)
            base.model = get_peft_model(base.model, shape)
        self._weights: dict[str, torch.nn.Parameter] = {
            name: each for name, each in base.model.named_parameters() if each.requires_grad
        }
        self._optimiser = torch.optim.AdamW(self._weights.values(), lr=recipe.rate)

    def run(self, pairs: Sequence[Pair], mark: str = "", progress: Progress = silent) -> TrainingCost:
        """Train to the end, or go on where a process was killed. Blocks. Raises BadInput, StorageFailure.

        A training on another base (`mark`), on other pairs or by another recipe is replaced, not continued.
        """
        if not pairs:
            raise BadInput("There is nothing to train on.", "See `mneme cards consolidate --status`.")
        make_private_folder(self._folder)
        recipe, base = self._recipe, self._base
        told = [base.tokens(SYSTEM_PROMPT, each.asked, each.answer, recipe.longest) for each in pairs]
        an_epoch = -(-len(told) // recipe.batch)  # steps, rounded up
        total = an_epoch * recipe.epochs
        whole = [mark, recipe.model_dump_json(), *(each.asked + each.answer for each in pairs)]
        self._mark = hashlib.sha256("\x1f".join(whole).encode()).hexdigest()
        self._progress = progress
        losses, seconds = self._steps(told, an_epoch, total)
        epochs = [losses[start : start + an_epoch] for start in range(0, total, an_epoch)]
        return TrainingCost(
            pairs=len(pairs),
            steps=total,
            tokens=sum(len(each) for each, _ in told) * recipe.epochs,
            losses=[sum(each) / len(each) for each in epochs],
            seconds=seconds,
            device=base.device,
            mixed=base.mixed,
            parameters=sum(each.numel() for each in self._weights.values()),
        )

    def _steps(
        self, told: Sequence[tuple[list[int], int]], an_epoch: int, total: int
    ) -> tuple[list[float], float]:
        """Take the remaining steps, and write the adapter; return every step's loss, and the seconds."""
        step, losses, seconds = self._resumed()
        self._base.model.train()
        saved = time.perf_counter()
        began = saved - seconds
        while step < total:
            epoch, turn = divmod(step, an_epoch)
            # By the seed and the epoch alone, so that a resumed training goes on with the same batches.
            rows = list(range(len(told)))
            random.Random(f"{self._recipe.seed} {epoch}").shuffle(rows)  # noqa: S311  (an order, no secret)
            batch = [told[row] for row in rows[turn * self._recipe.batch : (turn + 1) * self._recipe.batch]]
            losses.append(self._step(batch, step / total))
            step += 1
            late = time.perf_counter() - saved >= MAX_UNSAVED_SECONDS
            if step % SAVE_EVERY == 0 or step == total or late:
                saved = time.perf_counter()
                self._save(step, losses, saved - began)
                recent = losses[-SAVE_EVERY:]
                self._progress({"done": step, "of": total, "loss": sum(recent) / len(recent)})
        self._base.model.eval()
        place = str(self._folder / ADAPTER)
        self._base.model.save_pretrained(place, safe_serialization=True, save_embedding_layers=False)
        return losses, time.perf_counter() - began

    def _step(self, batch: Sequence[tuple[list[int], int]], share: float) -> float:
        for group in self._optimiser.param_groups:
            group["lr"] = self._recipe.rate * (1 - 0.9 * share)  # falls linearly to a tenth
        with self._base.precision():
            loss = loss_of(self._base, [each for each, _ in batch], [before for _, before in batch])
        loss.backward()  # type: ignore[no-untyped-call]
        self._base.torch.nn.utils.clip_grad_norm_(self._weights.values(), CLIP)
        self._optimiser.step()
        self._optimiser.zero_grad()
        return float(loss.detach())

    def _save(self, step: int, losses: Sequence[float], seconds: float) -> None:
        from safetensors.torch import save_file  # noqa: PLC0415  (needs torch)

        tensors = {f"weight/{name}": each.detach().cpu().contiguous() for name, each in self._weights.items()}
        for name, weight in self._weights.items():
            state = self._optimiser.state[weight]
            tensors |= {f"{each}/{name}": state[each].cpu().contiguous() for each in MOMENTS}
        told = {"step": step, "losses": list(losses), "seconds": seconds, "mark": self._mark}
        part = self._folder / f"{TRAINING_FILE}.part"
        try:
            save_file(tensors, part, metadata={"training": json.dumps(told)})
            with part.open("rb") as file:  # on the disk before it takes the name of the last good one
                os.fsync(file.fileno())
            part.replace(self._folder / TRAINING_FILE)
        except OSError as error:
            raise StorageFailure(
                f"The training cannot be saved in {self._folder}: {error.strerror}.", "Free some space there."
            ) from error

    def _resumed(self) -> tuple[int, list[float], float]:
        """Return the next step, and the losses and the seconds of the steps before it."""
        file, torch = self._folder / TRAINING_FILE, self._base.torch
        if not file.exists():
            return 0, [], 0.0
        try:
            with safe_open(file, "pt", device=self._base.device) as saved:
                told: dict[str, Any] = json.loads(saved.metadata()["training"])
                if told["mark"] != self._mark:  # it begins anew, and its first save replaces this file
                    return 0, [], 0.0
                for name, weight in self._weights.items():
                    with torch.no_grad():
                        weight.copy_(saved.get_tensor(f"weight/{name}"))
                    moments = {each: saved.get_tensor(f"{each}/{name}") for each in MOMENTS}
                    self._optimiser.state[weight] = {"step": torch.tensor(float(told["step"])), **moments}
        except (OSError, SafetensorError, KeyError) as error:
            raise StorageFailure(
                f"{file} cannot be read: {error}.", "Remove it; the training begins anew."
            ) from error
        return int(told["step"]), told["losses"], float(told["seconds"])


def open_tuned(base: Base, folder: Path) -> None:
    """Put a trained adapter on a base. Raises StorageFailure if there is none as safetensors."""
    from peft import PeftModel  # noqa: PLC0415  (an extra, and slow)

    place = folder / ADAPTER
    if not (place / ADAPTER_FILE).is_file():
        raise StorageFailure(f"{place} has no adapter.", "Run the consolidation again.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        base.model = PeftModel.from_pretrained(base.model, str(place)).to(base.device).eval()
