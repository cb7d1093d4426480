"""How far agents' memories diverge, and how well each keeps its role (§1, §3), measured on what they hold.

Divergence is the mean, over pairs of agents, of the share of words that only one of the two memories has.
An agent keeps its role where, of all roles' descriptions, its own is the nearest to its memory by the
embedder; by chance one in as many agents does. Own facts: of the puzzle's facts that a memory holds, the
share that its agent alone knew.
"""

import re
from collections.abc import Mapping
from itertools import combinations
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from mneme.evals.discussion.puzzle import Puzzle
from mneme.evals.discussion.survival_memories import Remembered, text
from mneme.models.embedding.embedders import Embedder
from mneme.prompts.discussion.memory_template import entries

WORD = re.compile(r"\w+")


class Kept(NamedTuple):
    """How far memories diverge (0 to 1), and the shares of agents that keep their role and of own facts."""

    divergence: float
    role_kept: float | None
    own_facts: float | None


async def kept_apart(puzzle: Puzzle, kept: Remembered, turn: int, embedder: Embedder) -> Kept:
    """Return how far the agents' own memories are apart after that turn."""
    memories = kept.own[turn]
    words = [_words(memory) for memory in memories.values()]
    apart = [_apart(one, other) for one, other in combinations(words, 2)]
    role_kept = await _role_kept(puzzle, memories, embedder) if puzzle.roles_differ else None
    return Kept(fmean(apart), role_kept, _own_facts(puzzle, memories))


def _words(memory: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(word for entry in entries(memory) for word in WORD.findall(entry.casefold()))


def _apart(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of words that only one of two memories has; two that are empty do not differ."""
    return 1 - len(one & other) / len(one | other) if one | other else 0.0


async def _role_kept(puzzle: Puzzle, memories: Mapping[str, Any], embedder: Embedder) -> float:
    roles = await embedder.embed_documents([role.description for role in puzzle.roles.values()])
    held = await embedder.embed_documents([" ".join(entries(each)) or "-" for each in memories.values()])
    nearest = (np.array(held) @ np.array(roles).T).argmax(axis=1)
    return float(np.mean(nearest == np.arange(len(nearest))))


def _own_facts(puzzle: Puzzle, memories: Mapping[str, Any]) -> float | None:
    is_own = [
        fact.owner == agent
        for agent, memory in memories.items()
        for fact in puzzle.facts
        if fact.stands_in(text(memory))
    ]
    return fmean(is_own) if is_own else None
