"""Records to measure engines with: sentences of many users, their vectors, queries, and the truth.

Up to REAL sentences are embedded by the embedder. Beyond that, the vectors of those sentences are used
again, each moved a little at random and normalised, which keeps the structure of real embeddings.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mneme.models.embedding.embedders import Embedder

Floats = NDArray[np.float32]

REAL = 20_000
USERS = 100
QUERIES = 300
NEIGHBOUR, OWN = "constant", 200
"""A user who has the same number of records at every size: what do the others' records cost them?"""

WHO = (
    *("Anna", "Ben", "Chiara", "David", "Elif", "Farid", "Greta", "Hana", "Igor", "Jun"),
    *("Katya", "Liam", "Mina", "Noor", "Olga", "Pedro", "Qiu", "Rosa", "Sven", "Tara"),
)
DOES = (
    "loves",
    "bought",
    "lost",
    "talks about",
    "is learning to live with",
    "gave up",
    "dreams of",
    "repaired",
    "was given",
    "misses",
)
WHAT = (
    *("a Labrador mix", "a red bicycle", "the violin", "green tea", "a cabin by the lake"),
    *("the night shift", "an old Volvo", "sourdough bread", "the marathon", "a novel about lighthouses"),
    *("two cats", "a herb garden", "the chess club", "a peanut allergy", "a job at the harbour"),
    *("Portuguese lessons", "a broken wrist", "jazz records", "a blue door", "the choir on Thursdays"),
    *("a greenhouse", "stamps from Peru", "a telescope", "vegetarian food", "a sister in Oslo"),
)
WHERE = (
    *("in Lisbon", "near the station", "at work", "in the mountains"),
    *("on Sundays", "since the move", "before breakfast"),
)
WHY = (
    *("because a friend asked", "although it rains", "to save money", "for the children"),
    *("after the illness", "to be outdoors", "since it calms the mind", "against all advice"),
    *("in memory of a grandfather", "to learn something new"),
)


@dataclass(frozen=True)
class Corpus:
    """`vectors` is records × dimension, `queries` QUERIES × dimension, both of length 1."""

    embedder: str
    texts: list[str]
    users: list[str]
    vectors: Floats
    asked: list[str]
    askers: list[str]
    queries: Floats

    def truth(self, limit: int, *, own: bool) -> list[set[int]]:
        """Return the records nearest to each query: among the asker's own, or among all."""
        owners = np.array(self.users)
        found = []
        for query, user in zip(self.queries, self.askers, strict=True):
            rows = np.flatnonzero(owners == user) if own else np.arange(len(owners))
            best = np.argsort(-(self.vectors[rows] @ query))[:limit]
            found.append(set(rows[best].tolist()))
        return found


async def make(
    size: int, embedder: Embedder, folder: Path, seed: int = 0, embedded: int | None = None
) -> Path:
    """Write a corpus of this size into the folder, unless it is there; return its file.

    So many of its sentences are `embedded` (REAL unless given); the vectors of the others are moved ones.
    """
    few = "" if embedded is None else f"{embedded}-"
    path = folder / f"corpus-{size}-{few}{seed}-{embedder.name.replace(':', '-')}.npz"
    if path.exists():
        return path
    chance = random.Random(seed)  # noqa: S311 (a corpus, not a secret)
    known, real = await _embedded(min(size, embedded or REAL), embedder, folder, seed)
    texts, vectors = _stretch(known, real, size, seed)
    asked = [
        f"Who {chance.choice(DOES)} {chance.choice(WHAT)} {chance.choice(WHERE)}?" for _ in range(QUERIES)
    ]
    queries = np.array([await embedder.embed_query(question) for question in asked], dtype=np.float32)
    np.savez(
        path,
        embedder=embedder.name,
        texts=texts,
        users=[NEIGHBOUR if n < OWN else f"user{n % USERS}" for n in range(size)],
        vectors=vectors,
        asked=[f"{question} {n}" for n, question in enumerate(asked)],
        askers=[f"user{n % USERS}" for n in range(QUERIES)],
        queries=queries,
    )
    return path


async def _embedded(count: int, embedder: Embedder, folder: Path, seed: int) -> tuple[list[str], Floats]:
    """Return sentences and their vectors, kept in a file: larger corpora start from the same ones."""
    known = sentences(count, random.Random(seed))  # noqa: S311 (a corpus, not a secret)
    path = folder / f"sentences-{count}-{seed}-{embedder.name.replace(':', '-')}.npy"
    if not path.exists():
        np.save(path, np.array(await embedder.embed_documents(known), dtype=np.float32))
    return known, np.load(path)


def load(path: Path) -> Corpus:
    """Read a corpus back."""
    with np.load(path) as file:
        return Corpus(
            embedder=str(file["embedder"]),
            texts=file["texts"].tolist(),
            users=file["users"].tolist(),
            vectors=file["vectors"],
            asked=file["asked"].tolist(),
            askers=file["askers"].tolist(),
            queries=file["queries"],
        )


def sentences(count: int, chance: random.Random) -> list[str]:
    """Make different sentences about different people."""
    made: dict[str, None] = {}
    while len(made) < count:
        parts = (chance.choice(slot) for slot in (WHO, DOES, WHAT, WHERE, WHY))
        made[" ".join(parts) + "."] = None
    return list(made)


def _stretch(known: Sequence[str], real: Floats, size: int, seed: int) -> tuple[list[str], Floats]:
    if size <= len(known):
        return list(known), real
    rows = [n % len(known) for n in range(size)]
    texts = [f"{known[row]} ({n})" if n >= len(known) else known[row] for n, row in enumerate(rows)]
    return texts, stretched(real, size, seed)


def stretched(real: Floats, size: int, seed: int) -> Floats:
    """Return so many vectors of length 1: the real ones, and then the same again, each moved a little."""
    noise = np.random.default_rng(seed)
    rows = [n % len(real) for n in range(size)]
    moved = real[rows] + noise.normal(0, 0.02, (size, real.shape[1])).astype(np.float32)
    moved[: len(real)] = real[:size]
    moved /= np.linalg.norm(moved, axis=1, keepdims=True)
    return moved
