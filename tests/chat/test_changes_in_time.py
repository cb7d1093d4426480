"""From when to when a memory holds, after changes that a message tells."""

from datetime import date

from mneme.api.rendering import row_of
from mneme.stores.access import Asker
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.recall import recall
from mneme.stores.users.memories import UserMemories
from mneme.stores.users.memory import Memory
from tests.doubles.remembering import FACT, HOME, contents, done, judged, known, reading, script, tell

MOVES = {"content": "The user lives in Bergen.", "quote": "I live in Bergen", "entities": ["Bergen"]}


async def moved(
    ledger: Ledger, relation: str = "change", outdated: str = "lives in Porto", **when: str
) -> list[str]:
    """Tell of a move on 2 March 2026, and return what was done."""
    changes = judged({"relation": relation, "outdated": outdated})
    said = script(read_message=reading(FACT | MOVES | when), compare_memories=changes)
    return done(await tell(ledger, said, "I live in Bergen.", time="2026-03-02T10:00:00+00:00"))


async def valid_at(ledger: Ledger, *day: int) -> list[str]:
    found = await UserMemories(ledger, "local").valid_at(date(*day))
    return [each.memory.content for each in found]


async def test_a_change_ends_what_was_true_until_then(edge_ledger: Ledger) -> None:
    await known(edge_ledger, Memory(content=HOME))
    assert await moved(edge_ledger) == ["update"]
    assert await valid_at(edge_ledger, 2026, 3, 1) == [HOME]
    assert await valid_at(edge_ledger, 2026, 3, 2) == await contents(edge_ledger) == [MOVES["content"]]


async def test_what_held_before_a_change_is_recalled_with_it(edge_ledger: Ledger) -> None:
    await known(edge_ledger, Memory(content=HOME, since="2024"))
    assert await moved(edge_ledger) == ["update"]
    before = f"Until 2026-03-01: {HOME}"
    assert await recalled(edge_ledger) == [f"{MOVES['content']} (from 2026-03-02) {before}"]
    wrong = {"relation": "correction", "outdated": "Bergen"}
    assert await moved(edge_ledger, **wrong, content="The user lives in Bodø.") == ["update"]
    assert await recalled(edge_ledger) == [f"The user lives in Bodø. (from 2026-03-02) {before}"]
    (found,) = await UserMemories(edge_ledger, "local").similar("home")
    assert before in str(row_of(found)["note"]), "tools and tables show it, too"
    shared = [each.text for each in await recall(edge_ledger, "Where does the user live?", Asker("local"))]
    assert shared == ["The user lives in Bodø.", before], "what holds comes first"


async def recalled(ledger: Ledger) -> list[str]:
    """Return what the chatbot is shown of the memories."""
    return [each.memory.timed for each in await UserMemories(ledger, "local").similar("home")]


async def test_a_future_change_leaves_the_memory_and_limits_it(edge_ledger: Ledger) -> None:
    key = await known(edge_ledger, Memory(content=HOME))
    assert await moved(edge_ledger, "later", since="2026-06") == ["insert", "update"]
    assert await contents(edge_ledger) == [HOME, MOVES["content"]]
    assert (await UserMemories(edge_ledger, "local").get(key)).memory.until == "2026-05-31"
    assert await valid_at(edge_ledger, 2026, 5, 31) == [HOME]
    assert await valid_at(edge_ledger, 2026, 6, 1) == [MOVES["content"]]


async def test_a_temporary_change_leaves_the_memory_as_it_is(edge_ledger: Ledger) -> None:
    key = await known(edge_ledger, Memory(content=HOME))
    assert await moved(edge_ledger, "later", until="2026-04") == ["insert"]
    assert len(await UserMemories(edge_ledger, "local").history(key)) == 1
    assert await valid_at(edge_ledger, 2026, 4, 30) == [HOME, MOVES["content"]]
    assert await valid_at(edge_ledger, 2026, 5, 1) == [HOME]


async def test_what_says_when_a_memory_ends_or_ended_changes_it(edge_ledger: Ledger) -> None:
    await known(edge_ledger, Memory(content=HOME))
    ends = "The user lives in Porto until April."
    assert await moved(edge_ledger, until="2026-04", content=ends) == ["update"]
    assert await valid_at(edge_ledger, 2026, 4, 30) == [ends]
    assert await valid_at(edge_ledger, 2026, 5, 1) == []
    over = "The user had a flat in Porto until May 2025."
    assert await moved(edge_ledger, until="2025-05", content=over) == ["update"]


async def test_a_new_date_in_place_of_another_one_changes_the_memory(edge_ledger: Ledger) -> None:
    await known(
        edge_ledger, Memory(content="The auditors come on 5 May.", since="2026-05-05", until="2026-05-05")
    )
    put_off = {"content": "The auditors come on 26 May.", "since": "2026-05-26", "until": "2026-05-26"}
    changes = judged({"relation": "change", "outdated": "5 May", "updated": put_off["content"]})
    said = script(read_message=reading(FACT | MOVES | put_off), compare_memories=changes)
    told = await tell(edge_ledger, said, "I live in Bergen.", time="2026-03-02T10:00:00+00:00")
    assert done(told) == ["update"]
    assert await valid_at(edge_ledger, 2026, 5, 5) == []
    assert await valid_at(edge_ledger, 2026, 5, 26) == [put_off["content"]]
