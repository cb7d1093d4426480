"""Write `models/embedding/minilm.onnx`: MiniLM's graph without its weights, which are given to it later.

The encoder is BERT (Devlin et al. 2019) with the sizes of its `config.json`; `minilm_graph.txt` has its
operations. A text's vector is the mean of its tokens' last states, scaled to length 1; their sum, scaled to
length 1, is the same.
"""

import math
from pathlib import Path
from string import Template

import numpy as np
import onnx
from onnx import parser

from mneme.models.embedding.minilm import ONNX_FILE, initializers

OPERATIONS = Path(__file__).with_suffix(".txt")
"""The graph's operations, and after a line of dashes those of one layer; `#` begins a comment."""
SIZE, HEADS, LAYERS, EPSILON = 384, 12, 6, 1e-12


def graph() -> bytes:
    """Return the graph: of `input_ids` and `attention_mask` (texts, tokens) it makes a `vector` a text."""
    part, epsilon = SIZE // HEADS, f"{EPSILON:.15f}"
    lines = OPERATIONS.read_text(encoding="utf-8").splitlines(keepends=True)
    plain = "".join(line for line in lines if not line.startswith("#"))
    whole, layer = map(Template, plain.split("-----\n"))
    text = whole.substitute(
        size=SIZE,
        heads=HEADS,
        part=part,
        root=math.sqrt(part),
        root_of_two=math.sqrt(2),
        epsilon=epsilon,
        layers="".join(
            layer.substitute(n=n, next=n + 1, w=f"encoder_layer_{n}", epsilon=epsilon) for n in range(LAYERS)
        ),
        count=LAYERS,
    )
    model = parser.parse_model(text)
    named = {given for node in model.graph.node for given in node.input}
    for name, value in sorted(initializers().items()):
        if name in named:
            weights = model.graph.initializer.add(
                name=name, dims=value.shape, data_type=onnx.TensorProto.FLOAT
            )
            weights.data_location = onnx.TensorProto.EXTERNAL
            weights.external_data.add(key="location", value="weights")
            weights.external_data.add(key="length", value=str(value.astype(np.float32).nbytes))
    return bytes(model.SerializeToString(deterministic=True))


if __name__ == "__main__":
    ONNX_FILE.write_bytes(graph())
