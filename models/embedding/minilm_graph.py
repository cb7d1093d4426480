"""Write MiniLM as an ONNX graph, straight from its packaged weights.

The encoder is BERT (Devlin et al. 2019) with the sizes of `config.json`. A text's vector is the mean of its
tokens' last states, scaled to length 1; their sum, scaled to length 1, is the same.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from pydantic import BaseModel

Numbers = NDArray[np.float32]
Weights = dict[str, Numbers]
INPUTS = ("input_ids", "attention_mask")
OUTPUT = "vector"
OPSET = 17  # the first with LayerNormalization
MASKED = -10_000.0  # added to the logit of a padded token, it leaves the weight 0


class Config(BaseModel):
    """The part of `config.json` that shapes the graph."""

    hidden_size: int
    num_attention_heads: int
    num_hidden_layers: int
    layer_norm_eps: float


class Graph:
    """An ONNX model in the making; what adds something returns the name to use it by."""

    def __init__(self, size: int) -> None:
        shape = ["texts", "tokens"]
        given = [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in INPUTS]
        told = helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, ["texts", size])
        empty = helper.make_graph([], "minilm", given, [told])
        self.model = helper.make_model_gen_version(empty, opset_imports=[helper.make_opsetid("", OPSET)])
        self._constants: set[str] = set()

    def op(self, kind: str, *inputs: str, name: str = "", **attributes: int | float | Sequence[int]) -> str:
        """Add an operation."""
        name = name or f"{kind}_{len(self.model.graph.node)}"
        node = helper.make_node(kind, inputs, [name], name)
        node.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
        self.model.graph.node.append(node)
        return name

    def constant(self, name: str, value: Numbers | NDArray[np.int64]) -> str:
        """Add a tensor once, however often it is used."""
        if name not in self._constants:
            self.model.graph.initializer.append(numpy_helper.from_array(value, name))
            self._constants.add(name)
        return name

    def number(self, value: float) -> str:
        return self.constant(str(value), np.array(value, dtype=np.float32))

    def integers(self, *values: int) -> str:
        return self.constant(str(values), np.array(values, dtype=np.int64))


@dataclass(frozen=True)
class Bert:
    """The parts of the encoder; each adds its operations to the graph and returns their output."""

    graph: Graph
    config: Config
    weights: Weights

    def embedded(self) -> str:
        """Add the vectors of words, of positions and of the first segment, and normalise."""
        words = self.graph.op("Gather", self._weight("embeddings.word_embeddings.weight"), INPUTS[0])
        segment = self.weights["embeddings.token_type_embeddings.weight"][0]
        table = self.weights["embeddings.position_embeddings.weight"] + segment
        tokens = self.graph.op("Shape", INPUTS[0], start=1)
        places = self.graph.op(
            "Slice", self.graph.constant("positions", table), self.graph.integers(0), tokens
        )
        return self._norm("embeddings.LayerNorm", self.graph.op("Add", words, places))

    def padding(self) -> str:
        """Return what to add to logits, of the shape (texts, 1, 1, tokens): 0, and MASKED for padding."""
        mask = self.graph.op("Unsqueeze", INPUTS[1], self.graph.integers(1, 2))
        absent = self.graph.op("Sub", self.graph.number(1), self.graph.op("Cast", mask, to=TensorProto.FLOAT))
        return self.graph.op("Mul", absent, self.graph.number(MASKED))

    def layer(self, name: str, states: str, padding: str) -> str:
        """Return the states after attention and the network behind it, each added and normalised."""
        mixed = self._attention(f"{name}.attention.self", states, padding)
        mixed = self._linear(f"{name}.attention.output.dense", mixed)
        states = self._norm(f"{name}.attention.output.LayerNorm", self.graph.op("Add", mixed, states))
        wide = self._gelu(self._linear(f"{name}.intermediate.dense", states))
        narrow = self._linear(f"{name}.output.dense", wide)
        return self._norm(f"{name}.output.LayerNorm", self.graph.op("Add", narrow, states))

    def pooled(self, states: str) -> str:
        """Return the sum of each text's tokens, scaled to length 1."""
        mask = self.graph.op("Unsqueeze", INPUTS[1], self.graph.integers(1))
        kept = self.graph.op("Cast", mask, to=TensorProto.FLOAT)
        total = self.graph.op("Squeeze", self.graph.op("MatMul", kept, states), self.graph.integers(1))
        return self.graph.op("LpNormalization", total, name=OUTPUT, axis=1, p=2)

    def _attention(self, name: str, states: str, padding: str) -> str:
        """Return softmax(QKᵀ / √d + padding) V of each head, the heads side by side."""
        query = self._heads(f"{name}.query", states, (0, 2, 1, 3))
        key = self._heads(f"{name}.key", states, (0, 2, 3, 1))
        root = math.sqrt(self.config.hidden_size // self.config.num_attention_heads)
        logits = self.graph.op("Div", self.graph.op("MatMul", query, key), self.graph.number(root))
        shares = self.graph.op("Softmax", self.graph.op("Add", logits, padding), axis=-1)
        mixed = self.graph.op("MatMul", shares, self._heads(f"{name}.value", states, (0, 2, 1, 3)))
        turned = self.graph.op("Transpose", mixed, perm=(0, 2, 1, 3))
        return self.graph.op("Reshape", turned, self.graph.integers(0, 0, self.config.hidden_size))

    def _heads(self, name: str, states: str, order: Sequence[int]) -> str:
        """Return a linear map's states cut into heads: (text, token, head, part), put into another order."""
        heads, size = self.config.num_attention_heads, self.config.hidden_size
        shape = self.graph.integers(0, 0, heads, size // heads)
        return self.graph.op(
            "Transpose", self.graph.op("Reshape", self._linear(name, states), shape), perm=order
        )

    def _linear(self, name: str, states: str) -> str:
        """Multiply by weights, which PyTorch stores as (out, in), and add the bias."""
        turned = self.graph.constant(f"{name}.weight", self.weights[f"{name}.weight"].T)
        return self.graph.op("Add", self.graph.op("MatMul", states, turned), self._weight(f"{name}.bias"))

    def _norm(self, name: str, states: str) -> str:
        scale, bias = self._weight(f"{name}.weight"), self._weight(f"{name}.bias")
        epsilon = self.config.layer_norm_eps
        return self.graph.op("LayerNormalization", states, scale, bias, axis=-1, epsilon=epsilon)

    def _gelu(self, states: str) -> str:
        """Return x · (1 + erf(x / √2)) / 2, in the steps that ONNX Runtime knows to join into one."""
        error = self.graph.op("Erf", self.graph.op("Div", states, self.graph.number(math.sqrt(2))))
        grown = self.graph.op("Mul", states, self.graph.op("Add", error, self.graph.number(1)))
        return self.graph.op("Mul", grown, self.graph.number(0.5))

    def _weight(self, name: str) -> str:
        return self.graph.constant(name, self.weights[name])


def write_graph(folder: Path, target: Path) -> None:
    """Write the model in a folder (`config.json`, `model.safetensors`) as one ONNX file.

    The inputs `input_ids` and `attention_mask` are integers of the shape (texts, tokens); the output `vector`
    has the shape (texts, hidden size).
    """
    config = Config.model_validate_json((folder / "config.json").read_bytes())
    bert = Bert(Graph(config.hidden_size), config, read_weights(folder / "model.safetensors"))
    states, padding = bert.embedded(), bert.padding()
    for number in range(config.num_hidden_layers):
        states = bert.layer(f"encoder.layer.{number}", states, padding)
    bert.pooled(states)
    onnx.save(bert.graph.model, target)


def read_weights(path: Path) -> Weights:
    """Map the numbers of a safetensors file.

    It holds the length of its header in 8 bytes, the header as JSON, and the numbers.
    """
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    data = np.memmap(path, np.uint8, "r", offset=8 + length)
    return {
        name: data[slice(*told["data_offsets"])].view(np.float32).reshape(told["shape"])
        for name, told in header.items()
        if told.get("dtype") == "F32"
    }
