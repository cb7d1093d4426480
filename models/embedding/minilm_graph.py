"""Write MiniLM as an ONNX graph, straight from its packaged weights.

The encoder is BERT (Devlin et al. 2019) with the sizes of `config.json`; `minilm_graph.txt` has its
operations. A text's vector is the mean of its tokens' last states, scaled to length 1; their sum, scaled to
length 1, is the same. PyTorch stores a linear map as (out, in), so its weights are turned.
"""

import math
from pathlib import Path
from string import Template

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper, parser
from pydantic import BaseModel
from safetensors.numpy import load_file

Weights = dict[str, NDArray[np.float32]]
GRAPH = Path(__file__).with_suffix(".txt")
"""The graph's operations, and after a line of dashes those of one layer; `#` begins a comment."""


class Config(BaseModel):
    """The part of `config.json` that shapes the graph."""

    hidden_size: int
    num_attention_heads: int
    num_hidden_layers: int
    layer_norm_eps: float


def write_graph(folder: Path, target: Path) -> None:
    """Write the model in a folder (`config.json`, `model.safetensors`) as one ONNX file.

    The inputs `input_ids` and `attention_mask` are integers of the shape (texts, tokens); the output `vector`
    has the shape (texts, hidden size).
    """
    config, weights = Config.model_validate_json((folder / "config.json").read_bytes()), Weights()
    part = config.hidden_size // config.num_attention_heads
    epsilon, layers = f"{config.layer_norm_eps:.15f}", range(config.num_hidden_layers)
    lines = GRAPH.read_text(encoding="utf-8").splitlines(keepends=True)
    plain = "".join(line for line in lines if not line.startswith("#"))
    whole, layer = map(Template, plain.split("-----\n"))
    text = whole.substitute(
        size=config.hidden_size,
        heads=config.num_attention_heads,
        part=part,
        root=math.sqrt(part),
        root_of_two=math.sqrt(2),
        epsilon=epsilon,
        layers="".join(
            layer.substitute(n=n, next=n + 1, w=f"encoder_layer_{n}", epsilon=epsilon) for n in layers
        ),
        count=config.num_hidden_layers,
    )
    model = parser.parse_model(text)
    for name, value in load_file(folder / "model.safetensors").items():
        is_linear = value.ndim == 2 and not name.startswith("embeddings")
        weights[name.replace(".", "_")] = value.T if is_linear else value
    segment = weights["embeddings_token_type_embeddings_weight"][0]
    weights["positions"] = weights["embeddings_position_embeddings_weight"] + segment
    named = {given for node in model.graph.node for given in node.input}
    for name in sorted(named & weights.keys()):
        model.graph.initializer.append(numpy_helper.from_array(weights[name], name))
    onnx.save(model, target)
