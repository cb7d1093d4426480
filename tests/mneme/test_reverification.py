"""What the roles file has become of records that are out of date: cards are tried, others retired or left."""

from pathlib import Path

import pytest

from mneme.api.memories import Memories
from mneme.api.shared_memory import SharedMemory
from mneme.core.errors import Forbidden
from mneme.core.settings import settings
from mneme.prompts.learning.compound_learning.research import Draft, File
from mneme.stores.access import roles
from mneme.stores.cards.card import Card, Lesson, Rule, TaskOutcome
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.metrics import TaskRecord
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change, Source
from mneme.stores.users.memory import Memory
from mneme.stores.users.promotion import TeamFacts
from tests.doubles.scripts import script

WHY = Change(reason="a test", actor="test")
SHORT, LONG = "hello", "hello, hello, hello and hello again"
TASKS = ("one", "two", "three")


async def learned(ledger: Ledger, source: str, claim: str, world: str) -> Card:
    """Make a card of a fact, which served three tasks of a world."""
    cards, rules = KnowledgeCards(ledger, "local"), [Rule(condition="a long text", pattern="say it once")]
    change = WHY.model_copy(update={"source": Source(records=[source])})
    for name in TASKS:
        outcome = TaskOutcome(task=f"{claim} {name}", success=True, confidence=0.8)
        made = await cards.create(Lesson(claim=claim, rules=rules), outcome, change=change)
        given = {"world": world, "posed": {"case": name}}
        await cards.tasks.add(TaskRecord(id=outcome.task, solved=True, seconds=1, iterations=1, **given))
    return made.card


def carried_out(*texts: str) -> str:
    files = [[File(path="a.txt", text=each)] for each in texts]
    drafts = [Draft(rationale="As it says.", files=each).model_dump_json() for each in files]
    script("advocate", {"carry_out": drafts})
    return "scripted:advocate"


async def test_a_card_holds_or_is_deprecated_by_what_it_does_on_the_tasks_that_it_served(
    bundled: Ledger, world: str
) -> None:
    memories, shared, cards = (
        Memories(bundled, "local"),
        SharedMemory(bundled, "local"),
        KnowledgeCards(bundled, "local"),
    )
    told = await memories.add("Letters are read aloud.")
    source = (await bundled.records(("users", "local", "memories")))[0].reference
    first, second = [await learned(bundled, source, each, world) for each in ("Say it once.", "Be brief.")]
    await shared.promote(told.key, "local")
    await memories.update(told.key, "Letters are printed.")
    assert {each.key for each in await shared.stale()} >= {first.id, second.id}
    waiting = await shared.reverify(agents="rules")
    assert len(waiting) == 3 and all(each.stale for each in waiting), "rules carry out no words"
    done = await shared.reverify(agents=carried_out(SHORT, SHORT, LONG), limit=1)
    assert [each.key for each in done if not each.stale] == [first.id], "one at a time, and the rest later"
    assert next(each.made for each in done if each.key == first.id).endswith("serves 2 of them.")
    done = await shared.reverify(agents=carried_out(LONG, SHORT, LONG), limit=1)
    assert (await cards.records.get(first.id)).status == "provisional"
    failed = await cards.records.get(second.id)
    assert failed.status == "deprecated" and "serves 1 of them" in failed.deprecated_because
    assert [each.kind for each in await shared.stale()] == ["fact"], "which waits for a person"
    await memories.update(told.key, "Letters are sung.")
    assert first.id in {each.key for each in await shared.stale()}, "it was tried under what held then"


async def test_a_card_that_cannot_be_tried_waits_and_one_in_dispute_too(bundled: Ledger) -> None:
    memories, shared = Memories(bundled, "local"), SharedMemory(bundled, "local")
    told = await memories.add("Letters are read aloud.")
    source = (await bundled.records(("users", "local", "memories")))[0].reference
    card = await learned(bundled, source, "Say it once.", "a world that is gone")
    await memories.retire(told.key)
    (waiting,) = await shared.reverify(agents=carried_out())
    assert waiting.key == card.id and "was retired" in waiting.stale


async def test_the_roles_file_says_what_becomes_of_which_kind(
    bundled: Ledger, world: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "roles.yaml").write_text(
        "teams: {local: {ann: [read, write], rob: [read, write, promote, review]}}\n"
        "stale: {local: {fact: retire, card: review}}"
    )
    monkeypatch.setenv("MNEME_AUTH", str(tmp_path / "users.json"))
    monkeypatch.setenv("MNEME_ROLES", str(tmp_path / "roles.yaml"))
    settings.cache_clear()
    assert roles().when_stale("local", "agreement") == roles().when_stale("local", "card") == "review"
    memories, shared = Memories(bundled, "rob"), SharedMemory(bundled, "rob")
    told = await memories.add("Letters are read aloud.")
    copy = await shared.promote(told.key, "local")
    source = (await bundled.records(("users", "rob", "memories")))[0].reference
    card = await learned(bundled, source, "Say it once.", world)
    await TeamFacts(bundled, "local").insert(Memory(content="The lake is cold."), change=WHY)
    await memories.update(told.key, "Letters are printed.")
    with pytest.raises(Forbidden, match="ann may not review"):
        await SharedMemory(bundled, "ann").reverify("local")
    done = {each.key: each for each in await shared.reverify("local")}
    assert done.keys() == {copy.key, card.id} and done[card.id].stale
    assert not done[copy.key].stale and "by the team's policy" in done[copy.key].made
    assert [each.key for each in await shared.stale("local")] == [card.id]
    assert [each.memory.content for each in await TeamFacts(bundled, "local").all()] == ["The lake is cold."]
