"""Which pairs of a fact and a memory are compared: none that matters is left out, and many others are."""

from statistics import fmean

import numpy as np
import pytest

from mneme.evals.chat.contradictions import DEFAULT, Case, load
from mneme.models.embedding.embedders import open_embedder
from mneme.nodes.chat.comparing import pairs
from mneme.nodes.chat.memory_operations import Similar
from mneme.prompts.chat.memory_agent.reading import Incoming, read_message
from mneme.rules.registry import answer as by_rule

NOON = "2026-03-02T12:00:00+00:00"


def facts_of(case: Case) -> list[str]:
    read = by_rule(read_message, Incoming(message=case.message, preceding=case.preceding, time=NOON))
    return [memory.content for memory in read.memories] or [case.message]


async def test_no_memory_that_must_change_is_left_out_among_everybodys_memories() -> None:
    embedder = await open_embedder("bundled")
    cases = [case for case in load(DEFAULT) if any(each.target is not None for each in case.expect)]
    known = list(dict.fromkeys(memory for case in load(DEFAULT) for memory in case.memories))
    vectors = np.array(await embedder.embed_documents(known))
    compared, lost = list[float](), list[str]()
    for case in cases:
        facts = facts_of(case)
        cosines = np.array(await embedder.embed_documents(facts)) @ vectors.T
        found = [_ten(row, known) for row in cosines]
        kept = {memory["key"] for _, memory in pairs([{"content": each} for each in facts], found)}
        compared.append(len(kept) / len(facts))
        wanted = {case.memories[each.target] for each in case.expect if each.target is not None}
        offered = {memory["key"] for similar in found for memory in similar}
        lost += [case.id for memory in wanted & offered if memory not in kept]
    assert lost == []
    assert fmean(compared) < 7, "most of ten similar memories have nothing to do with the fact"


def _ten(cosines: np.ndarray, known: list[str]) -> list[Similar]:
    return [
        Similar(key=known[n], version=1, content=known[n], similarity=float(cosines[n]), closed=False)
        for n in np.argsort(-cosines)[:10]
    ]


@pytest.mark.parametrize(
    ("similarity", "memory", "is_compared"),
    [(0.5, "x", True), (0.3, "Max sails.", True), (0.3, "x", False), (0.1, "Max", False), (None, "x", True)],
)
def test_a_pair_is_compared_that_is_alike_or_shares_a_word(
    similarity: float | None, memory: str, is_compared: bool
) -> None:
    nearest = [Similar(key=k, version=1, content="y", similarity=0.9, closed=False) for k in "ab"]
    other = Similar(key="c", version=1, content=memory, similarity=similarity, closed=False)
    found = pairs([{"content": "Max is a poodle."}], [[*nearest, other]])
    assert [memory["key"] for _, memory in found] == ["a", "b", *(["c"] if is_compared else [])]
