"""The options of the commands that tune a model: on cards, and on a pool."""

from pathlib import Path
from typing import Annotated

import typer

Base = Annotated[
    str,
    typer.Option("--base", help="The model to tune: a GGUF file, a folder of safetensors, or smollm2."),
]
Ollama = Annotated[str, typer.Option("--ollama", help="The same model's name in Ollama.")]
Force = Annotated[bool, typer.Option("--force", help="Though nothing makes it due.")]
Anew = Annotated[bool, typer.Option("--anew", help="Give up one that was begun.")]
Status = Annotated[bool, typer.Option("--status", help="Only say what is due and what was.")]
Epochs = Annotated[int, typer.Option("--epochs", min=1, help="Rounds through the pairs.")]
Rank = Annotated[int, typer.Option("--rank", min=1, help="Of the adapter's matrices.")]
Rate = Annotated[float, typer.Option("--rate", help="Learning rate.")]
Batch = Annotated[int, typer.Option("--batch", min=1, help="Pairs in one step.")]
Longest = Annotated[int, typer.Option("--longest", min=32, help="Tokens of a pair; more are cut.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the training.")]
Generic = Annotated[Path | None, typer.Option("--generic", help="Your own generic questions (YAML).")]
