"""Which memories a fact is compared with: the touched one is among them, others are not."""

from datetime import UTC, datetime

import pytest

from mneme.nodes.chat.compared import compared
from mneme.nodes.chat.memory_agent import worth_comparing
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change
from mneme.stores.users.memories import UserMemories
from mneme.stores.users.memory import Memory, MemoryRecord


def similar(content: str, similarity: float | None) -> MemoryRecord:
    memory = Memory(content=content)
    return MemoryRecord(
        key="k", version=1, live=True, at=datetime.now(UTC), memory=memory, similarity=similarity
    )


@pytest.mark.parametrize(
    ("similarity", "memory", "is_compared"),
    [(0.5, "x", True), (0.05, "Max sails.", True), (0.05, "She sails", False), (None, "x", True)],
)
def test_a_memory_is_compared_that_is_alike_or_shares_a_word(
    similarity: float | None, memory: str, is_compared: bool
) -> None:
    found = worth_comparing("Max is a poodle.", [similar(memory, similarity)])
    assert bool(found) == is_compared


MANY = [f"The user's neighbour {number} has a garden with roses and a pond." for number in range(30)]


@pytest.mark.parametrize(
    ("memory", "content", "said", "names"),
    [
        ("The user works at Nokia.", "The user no longer has a job.", "handed in my notice at Nokia", []),
        ("Kullanıcı İzmir'de oturuyor.", "Kullanıcı Ankara'ya taşındı.", "İzmir'den ayrıldım", ["Ankara"]),
        ("Пользователь живёт в Казани.", "Пользователь уехал из Казани.", "уехали из казани", []),
        ("La hermana Ana vive en Lima.", "Ana se mudó.", "ana se mudó", ["Ana"]),
    ],
)
async def test_a_touched_memory_is_found_by_content_words_or_names(
    bundled: Ledger, memory: str, content: str, said: str, names: list[str]
) -> None:
    memories, change = UserMemories(bundled, "ann"), Change(reason="known", actor="test")
    for each in [memory, *MANY]:
        await memories.insert(Memory(content=each), change=change)
    found = await memories.related(content, said, names, 5)
    assert memory in [each.memory.content for each in found]
    assert found[0].similarity is not None
    await bundled.close()


@pytest.mark.parametrize(("since", "is_linked"), [("", False), ("2026-11-28", True)])
async def test_events_without_a_time_contradict_no_other(
    bundled: Ledger, since: str, is_linked: bool
) -> None:
    memories = UserMemories(bundled, "ann")
    first = Memory(content="Worked on proj: asked “Widen the wing.”; changed wing.py.", kind="episodic")
    await memories.insert(first, change=Change(reason="known", actor="test"))
    content = "Worked on proj: asked “Note the wing.”; ran make."
    repeated, beside = await compared(Memory(content=content, kind="episodic", since=since), memories)
    assert repeated is None and bool(beside) == is_linked
    await bundled.close()
