"""Open the encoder of the retriever that learns, by what it learns."""

from mneme.core.errors import BadInput
from mneme.models.embedding import minilm
from mneme.models.embedding.absent import BUNDLED_NAME
from mneme.models.retriever.projection import Projection
from mneme.models.retriever.reranker import Reranker
from mneme.models.retriever.retriever import Learning, QueryEncoder, Weights
from mneme.models.retriever.whole_encoder import WholeEncoder


def query_encoder(
    learning: Learning, embedder: str, dimension: int, weights: Weights | None = None
) -> QueryEncoder:
    """Return the query encoder for a way of learning; without weights it equals the embedder.

    Raises BadInput where the embedder is not in this process and so cannot be fine-tuned whole.
    """
    if learning == "projection":
        return Projection.of(weights) if weights else Projection.untrained(dimension)
    if learning == "reranker":
        return Reranker.of(dimension, weights or {})
    if embedder != f"bundled:{BUNDLED_NAME}":
        raise BadInput(
            f"{embedder} cannot be fine-tuned whole: its weights are not here.",
            'Learn with "projection", or use the bundled embedder.',
        )
    return WholeEncoder(minilm.weights(), weights)
