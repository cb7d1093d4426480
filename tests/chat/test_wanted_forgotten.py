"""What a message wants forgotten is retired, and can be taken back."""

from collections.abc import Sequence

import pytest

from mneme.api.memories import Memories
from mneme.graphs.memory_agent import builder as memory_agent
from mneme.prompts.chat.memory_agent.forgetting import Forgetting, choose_forgotten
from mneme.prompts.chat.memory_agent.reading import Incoming, read_message
from mneme.rules.registry import answer as by_rule
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change
from mneme.stores.users.memories import UserMemories
from mneme.stores.users.memory import Memory, Past
from tests.doubles.remembering import (
    FACT,
    MEMORY,
    MESSAGE,
    NOTHING,
    RULES,
    contents,
    done,
    known,
    reading,
    script,
    tell,
)


async def test_what_is_to_be_forgotten_is_retired_and_can_be_taken_back(max_ledger: Ledger) -> None:
    memories = Memories(max_ledger, "local")
    other = await memories.add("The user sails.")
    (max_,) = [
        number
        for number, found in enumerate(await memories.recall(MESSAGE, 5, "dense"))
        if found.key != other.key
    ]
    said = script(
        read_message=reading(route="forget"),
        choose_forgotten={"rationale": "It is of Max.", "numbers": [max_, max_], "rest": []},
    )
    result = await tell(max_ledger, said)
    assert done(result) == ["retire"]
    assert await contents(max_ledger) == ["The user sails."]
    await memories.undo()
    assert MEMORY in await contents(max_ledger)


async def test_a_memory_keeps_what_it_says_beside_what_is_to_be_forgotten(max_ledger: Ledger) -> None:
    memories = UserMemories(max_ledger, "local")
    (old,) = await memories.all()
    changed = old.memory.model_copy(
        update={"past": [Past(content="Max is a puppy.")], "since": "2026-02", "is_change": True}
    )
    change = Change(reason="a test", actor="test")
    await memories.update(old.key, changed, change=change, expected_version=1)
    rest = {"memory": 0, "content": "The user sails."}
    said = script(
        read_message=reading(route="forget"),
        choose_forgotten={"rationale": "It is of Max.", "numbers": [0], "rest": [rest]},
    )
    result = await tell(max_ledger, said)
    assert done(result) == ["update"]
    assert await contents(max_ledger) == ["The user sails."]
    (left,) = await Memories(max_ledger, "local").list()
    assert not (left.memory.entities or left.memory.quote or left.memory.relations)
    assert left.memory.timed == "The user sails.", "neither what held before nor since when"


async def test_a_message_may_want_one_thing_forgotten_and_tell_another(max_ledger: Ledger) -> None:
    again = FACT | {"content": "The user wants Max forgotten."}
    said = script(
        read_message=reading(FACT, again, route="forget"),
        choose_forgotten={"rationale": "It is of Max.", "numbers": [0, 2], "rest": []},
        compare_memories=NOTHING,
    )
    result = await tell(max_ledger, said)
    assert done(result) == ["retire", "insert"]
    assert await contents(max_ledger) == [FACT["content"]], (
        "what says again what is to be forgotten is left out"
    )


async def test_what_held_before_a_change_can_be_forgotten_alone(edge_ledger: Ledger) -> None:
    past = [Past(content="The user lives in Ulm.", until="2026-01")]
    await known(edge_ledger, Memory(content="The user lives in Bern.", past=past))
    graph = memory_agent.compile(store=LedgerStore(edge_ledger))
    await graph.ainvoke({"message": "Forget that I lived in Ulm."}, context=RULES)
    (left,) = await Memories(edge_ledger, "local").list()
    assert left.memory.timed == "The user lives in Bern."


@pytest.mark.parametrize(
    ("message", "left"),
    [
        ("Please forget that I like jazz.", ["The user lives in Ulm."]),
        ("Forget I live in Ulm.", ["The user likes jazz."]),
        ("Forget where I live: Ulm.", ["The user likes jazz."]),
        ("Forget my shoe size.", ["The user likes jazz.", "The user lives in Ulm."]),
        ("Forget where I live. I play the cello.", ["The user likes jazz.", "I play the cello."]),
        ("I live in Bern now. Please forget where I live.", ["The user likes jazz.", "I live in Bern now."]),
    ],
)
async def test_rules_retire_what_says_all_that_is_to_be_forgotten(
    edge_ledger: Ledger, message: str, left: Sequence[str]
) -> None:
    for content in ("The user likes jazz.", "The user lives in Ulm."):
        await known(edge_ledger, Memory(content=content))
    graph = memory_agent.compile(store=LedgerStore(edge_ledger))
    await graph.ainvoke({"message": message}, context=RULES)
    assert await contents(edge_ledger) == left


@pytest.mark.parametrize(
    ("wish", "chosen"),
    [
        ("Forget where I live.", [0, 1]),
        ("Forget what I told you about this: Where do I live now?", [0, 1]),
        ("Please forget everything I ever told you about Maria.", [2]),
        ("Forget where Maria lives.", [2]),
        ("Forget about my job.", []),
        ("Oh, and please forget where Maria lives.", [2]),
        ("I'd like you to forget where I live.", [0, 1]),
    ],
)
def test_what_is_to_be_forgotten_of_oneself_is_no_memory_of_others(wish: str, chosen: list[int]) -> None:
    incoming = Incoming(message=wish)
    assert by_rule(read_message, incoming).route == "forget"
    memories = [
        "I live in Oslo.",
        "The user lives in Oslo.",
        "My dentist Maria lives in Nantes.",
        "Tom rows.",
    ]
    given_ = Forgetting(message=wish, memories=memories)
    assert choose_forgotten.verify(given_, by_rule(choose_forgotten, given_)).numbers == chosen


LISTED = "I am allergic to nuts, penicillin and eggs."


@pytest.mark.parametrize(
    ("memory", "wish", "rest"),
    [
        (
            "My sister Emily moved to Ghent. Her dog Max hates the trams. She bakes.",
            "Oh, forget what I said about Max.",
            ["My sister Emily moved to Ghent. She bakes."],
        ),
        ("I like jazz, and I row.", "Forget that I like jazz altogether.", ["I row."]),
        (
            "I live in Oslo, I have a cat, I work at Shell.",
            "Forget that I work at Shell.",
            ["I live in Oslo. I have a cat."],
        ),
        ("When I was in Oslo, I met Ann.", "Forget that I met Ann.", []),
        ("My wife and I live in Oslo.", "Forget where I live.", []),
        ("My wife and I live in Oslo, and we row.", "Forget that I live in Oslo.", ["we row."]),
        (LISTED, "Forget that I am allergic to penicillin.", ["I am allergic to nuts and eggs."]),
        (LISTED, "Forget that I am allergic to eggs.", ["I am allergic to nuts, penicillin."]),
        (LISTED, "Forget that I am allergic to nuts.", ["I am allergic to penicillin and eggs."]),
        (LISTED, "Forget that I am allergic to nuts, eggs and penicillin.", []),
        (LISTED, "Forget my allergies.", []),
        ("Max, a Labrador mix, loves fetch and balls.", "Forget everything about Max.", []),
        ("I live in Oslo and work at Shell.", "Forget that I work at Shell.", ["I live in Oslo."]),
    ],
)
def test_rules_forget_a_clause_and_keep_the_others_of_its_memory(
    memory: str, wish: str, rest: list[str]
) -> None:
    given_ = Forgetting(message=wish, memories=[memory])
    answer = choose_forgotten.verify(given_, by_rule(choose_forgotten, given_))
    assert answer.numbers == [0]
    assert [each.content for each in answer.rest] == rest


@pytest.mark.parametrize(
    ("memory", "wish"),
    [
        ("I play chess, golf and cards.", "Forget that I play chess."),
        ("I like red wine, beer and cheese.", "Forget that I like red wine."),
        ("I bought salt and pepper for fish and chips.", "Forget that I bought salt."),
    ],
)
def test_rules_leave_a_list_from_which_they_cannot_tell_what_to_take(memory: str, wish: str) -> None:
    given_ = Forgetting(message=wish, memories=[memory])
    answer = choose_forgotten.verify(given_, by_rule(choose_forgotten, given_))
    assert (answer.numbers, answer.rationale) == ([], "None says it by itself.")
