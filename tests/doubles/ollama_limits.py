"""What Ollama refuses for a model, and the vectors that stand for a model's."""

import hashlib
import json
import math
import struct

from tests.doubles.stand_in import Json, Model, count_tokens

NO_PICTURES = json.dumps(
    {
        "error": {
            "code": 400,
            "message": "Multimodal data provided, but model does not support multimodal requests.",
            "type": "invalid_request_error",
        }
    },
    separators=(",", ":"),
)
"""What Ollama 0.33 answers where a model without vision is sent a picture: JSON within its error."""


def refusal_of_embedding(body: Json, texts: list[str], model: Model) -> str:
    """Return why texts are not embedded; empty where they are."""
    if "embedding" not in model.capabilities:
        return f'"{model.name}" does not support embeddings'
    if body.get("truncate") is False and any(count_tokens(text) > model.context_length for text in texts):
        return "the input length exceeds the context length"
    return ""


def refusal_of_chat(body: Json, model: Model) -> str:
    """Return why a chat is refused; empty where it is not."""
    if body.get("tools") and "tools" not in model.capabilities:
        return f"registry.ollama.ai/library/{model.name} does not support tools"
    if body.get("think") and "thinking" not in model.capabilities:
        return f'"{model.name}" does not support thinking'
    if "vision" not in model.capabilities and any(each.get("images") for each in body["messages"]):
        return NO_PICTURES
    if "completion" not in model.capabilities:
        return f'"{model.name}" does not support chat'
    return ""


def context_of(body: Json, model: Model) -> int:
    """Return the context that a request asks for, in tokens."""
    return min(int(body.get("options", {}).get("num_ctx", 4096)), model.context_length)


def vector_of(text: str, model: Model) -> list[float]:
    """Return a unit vector that depends on the text alone."""
    digest = hashlib.shake_256(text.encode()).digest(2 * model.dimension)
    raw = [number / 32768 for number in struct.unpack(f"{model.dimension}h", digest)]
    length = math.sqrt(sum(x * x for x in raw))
    return [x / length for x in raw]
