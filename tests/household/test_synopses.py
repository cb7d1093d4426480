"""Synopses: what they say, and what is dropped of older ones."""

import json
import re
from collections.abc import Sequence
from typing import Any, cast

import pytest

from mneme.environments.household.beliefs import Beliefs, Sighting
from mneme.nodes.household.mita_memory import RECENT_SYNOPSES, kept_short, outdated_in
from mneme.nodes.household.mita_state import DatedSynopsis, State, in_words
from mneme.prompts.household.household import Container
from mneme.prompts.household.synopsis import Found, Passage, Synopsis, summarise_passage
from mneme.rules.registry import answer as by_rule
from tests.doubles.household import item, passage, seen


@pytest.mark.parametrize(("narrative", "wrong"), [
    ("Bob opened <fridge> (17) and found <wine> (72); <stove> (18) remains unchecked.", None),
    ("Bob found <wine> (99).", "has the number 99"),
    ("Bob found <juice> (72).", "(72) is <wine>"),
    ("On its way to <fridge> (17) Bob passed <cabinet> (33).", None),
    ("Bob examined <stove> (18): it is empty.", "nobody looked into <stove> (18)"),
    ("Bob checked <stove> (18), which contained nothing.", "nobody looked into <stove> (18)"),
    ("There is nothing inside <stove> (18).", "nobody looked into <stove> (18)"),
    ("Bob holds nothing and goes to <stove> (18).", None),
    ("Bob passed <cabinet> (33), which was empty.", "nobody looked into <cabinet> (33)"),
    ("Bob opened <fridge> (17): it is empty. Nobody knows whether <stove> (18) is empty.", None),
])  # fmt: skip
def test_a_narrative_that_contradicts_the_record_is_refused(narrative: str, wrong: str | None) -> None:
    told = "<fridge> (17) <stove> (18) <table> (9) <wine> (72) <apple> (73)"
    passage = Passage(
        task="", actions=told, beliefs="", change="", progress="",
        items=[item(72, 1, 1, 1), item(73, 1, 1, 1, "apple").model_copy(update={"placed": True})],
        places={72: 17, 73: 9},
        containers=[
            Container(id=17, name="fridge", room=1, x=0, z=0, is_open=True, checked=3),
            Container(id=18, name="stove", room=1, x=0, z=0),
        ],
        names={33: "cabinet"}, unopened=[18, 33],
    )  # fmt: skip
    synopsis = Synopsis(narrative=narrative)
    if wrong is None:
        assert summarise_passage.verify(passage, synopsis) == synopsis
    else:
        with pytest.raises(ValueError, match=re.escape(wrong)):
            summarise_passage.verify(passage, synopsis)


def test_a_synopsis_says_all_that_was_found_checked_and_is_under_way() -> None:
    made = summarise_passage.verify(passage(), by_rule(summarise_passage, passage()))
    assert made.found == [Found(thing=61, place=40)]
    assert (made.checked, made.unchecked, made.explored) == ([40], [41], [1])
    for words in ("+1 wine", "<wine> (61) is inside <fridge> (40).", "<kitchen> (1) was searched by M0."):
        assert words in made.narrative
    assert "unchecked" not in made.narrative.lower() and "stove" not in made.narrative


def dated(step: int, narrative: str, *things: Sighting) -> DatedSynopsis:
    known = Beliefs(agent=-1, step=step, rooms={1: "kitchen"}, things={each.id: each for each in things})
    told = Synopsis(narrative=narrative).model_dump(mode="json")
    return DatedSynopsis(step=step, change="c", synopsis=told, known=known.model_dump(mode="json"))


NOTHING = re.compile(r"(?!)")


def test_sentences_that_the_world_contradicts_are_dropped_from_older_synopses() -> None:
    wine, plum = seen(61, "wine", 3, holder=40), seen(62, "plum", 3, holder=40)
    said = (
        "<wine> (61) is inside <fridge> (40). <plum> (62) is inside <fridge> (40). "
        "Bob found <wine> (61) at step 3."
    )
    taken = seen(61, "wine", 9, relation="held by", holder=0)
    now = Beliefs(agent=-1, step=9, rooms={1: "kitchen"}, things={61: taken})
    both = [dated(3, said, wine, plum), dated(9, "Alice holds <wine> (61).", taken)]
    older, latest = kept_short(both, now, NOTHING)
    assert (
        older["synopsis"]["narrative"]
        == "<plum> (62) is inside <fridge> (40). Bob found <wine> (61) at step 3."
    )
    assert latest["synopsis"]["narrative"] == "Alice holds <wine> (61)."
    many = [
        older,
        *(dated(9 + n, f"<kitchen> (1) was searched by M{n}.") for n in range(RECENT_SYNOPSES + 1)),
    ]
    assert in_words(kept_short(many, now, NOTHING)[0]) == (
        "Up to step 9, put together: <plum> (62) is inside <fridge> (40). <kitchen> (1) was searched by M0."
    )


PLATES = """{"id": "p", "source": "test", "apartment": "p", "category": "Wash Dishes",
"goals": [{"relation": "inside", "name": "plate", "target": 7, "count": 2, "target_name": "dishwasher"},
{"relation": "inside", "name": "waterglass", "target": 7, "count": 1, "target_name": "dishwasher"},
{"relation": "on", "name": "apple", "target": 4, "count": 1, "target_name": "coffeetable"}],
"starts": [{"room": 1, "position": [2, 2], "placed": "recorded"}],
"things": [[1, "kitchen", "room", [2, 1, 2], [4, 2, 4]], [4, "coffeetable", "surface", [1, 1, 1], [1, 1, 1]],
[5, "plate", "object", [1, 1, 1], [0, 0, 0]], [6, "waterglass", "object", [1, 1, 1], [0, 0, 0]],
[7, "dishwasher", "container", [3, 1, 3], [1, 1, 1]], [9, "apple", "object", [1, 1, 1], [0, 0, 0]],
[11, "plate", "object", [1, 1, 1], [0, 0, 0]]],
"places": {"4": ["inside", 1], "5": ["on", 4], "6": ["on", 4], "7": ["inside", 1], "9": ["on", 4],
"11": ["on", 4]}, "doors": [], "open": [], "seed": 0}"""


def outdated(*things: Sighting, did: Sequence[str] = ()) -> re.Pattern[str]:
    """Return what of a narrative is outdated where the team knows these things, and who did last what."""
    team, episode = Beliefs(agent=0, things={each.id: each for each in things}), json.loads(PLATES)
    members = [
        {
            "beliefs": team.model_dump(mode="json"),
            "plan": None,
            "history": [f"from step 1 to 2: {each}: done"],
        }
        for each in did
    ] or [{"beliefs": team.model_dump(mode="json"), "plan": None, "history": []}]
    state = {"episode": episode, "digest": PLATES, "members": members}
    return outdated_in(cast(State, state))


SECOND, IN, ON = seen(11, "plate", 4), {"holder": 7}, {"relation": "on", "holder": 4}
GLASS, APPLE = seen(6, "waterglass", 4, **ON), seen(9, "apple", 4, holder=8)
ONLY_THE_GLASS = "Alice waits; only <waterglass> (6) is left, which must not go into the dishwasher."


@pytest.mark.parametrize(("sentence", "things", "is_kept"), [
    ("The second plate and the apple are not found.", [seen(5, "plate", 4), GLASS], True),
    ("The second plate and the apple are not found.", [seen(5, "plate", 4), APPLE], False),
    ("Two plates have not yet been found.", [seen(5, "plate", 4), GLASS], True),
    ("Two plates have not yet been found.", [seen(5, "plate", 4), SECOND], False),
    ("Nobody has found the apple.", [APPLE], False),
    ("Bob took <pear> (3) and the apple is missing.", [APPLE], False),
    ("The plate is there; a second plate is not found.", [seen(5, "plate", 4), SECOND], False),
    ("At step 2 the apple was not found.", [APPLE], True),
    ("Only the waterglass is left.", [GLASS], True),
    ("Only the waterglass is left.", [seen(6, "waterglass", 9, **IN)], False),
    (ONLY_THE_GLASS, [GLASS], True),
    (ONLY_THE_GLASS, [seen(6, "waterglass", 9, relation="held by", holder=1)], True),
    (ONLY_THE_GLASS, [seen(6, "waterglass", 9, **IN)], False),
    ("The apple is in place and only the waterglass is left.", [seen(9, "apple", 4, **ON), GLASS], True),
    ("<plate> (5) is left.", [seen(5, "plate", 4, **IN), SECOND], False),
    ("<plate> (11) is left.", [seen(5, "plate", 4, **IN), SECOND], True),
    ("Alice waits for the apple.", [APPLE], True),
    ("Alice waits for the apple.", [seen(9, "apple", 4, **ON)], False),
])  # fmt: skip
def test_what_was_open_is_dropped_whole_once_it_is_not(
    sentence: str, things: Sequence[Sighting], is_kept: bool
) -> None:
    team = Beliefs(agent=-1, step=9, rooms={1: "kitchen"}, things={each.id: each for each in things})
    told = dated(4, f"It rained. {sentence}", *([GLASS] if sentence == ONLY_THE_GLASS else []))
    older, _ = kept_short([told, dated(9, "So it is.")], team, outdated(*things, did=["wait"]))
    assert older["synopsis"]["narrative"] == (f"It rained. {sentence}" if is_kept else "It rained.")


def test_who_is_said_to_wait_and_acts_again_waits_no_longer() -> None:
    told, now = dated(4, "Alice waits in <kitchen> (1). Bob is waiting."), Beliefs(agent=-1, step=9)
    acts = outdated(did=["goexplore <kitchen> (1)", "wait"])
    assert kept_short([told, told], now, acts)[0]["synopsis"]["narrative"] == "Bob is waiting."


@pytest.mark.parametrize(
    "wrong",
    [
        {"placed": [7]},
        {"checked": [7]},
        {"explored": [40]},
        {"found": [{"thing": 7, "place": 40}]},
        {"narrative": " "},
    ],
)
def test_a_synopsis_names_nothing_that_was_not_told(wrong: dict[str, Any]) -> None:
    made = Synopsis.model_validate_json(json.dumps({"narrative": "So it was.", **wrong}))
    with pytest.raises(ValueError, match=r"is 7|is 40|empty"):
        summarise_passage.verify(passage(), made)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"checked": [41]}, "is 41: choose 40"),
        ({"unchecked": [40]}, "is 40: choose 41"),
        ({"placed": [61]}, "is 61: choose none"),
        ({"found": [{"thing": 61, "place": 41}]}, "61 was not seen at 41"),
        ({"found": [{"thing": 61, "place": 4712}]}, "61 was not seen at 4712"),
    ],
)
def test_a_synopsis_claims_nothing_that_was_not_so(wrong: dict[str, Any], why: str) -> None:
    made = Synopsis.model_validate_json(json.dumps({"narrative": "So it was.", **wrong}))
    with pytest.raises(ValueError, match=why):
        summarise_passage.verify(passage(), made)
    by_its_room = made.model_copy(update={"found": [Found(thing=61, place=1)], "placed": []})
    allowed = by_its_room.model_copy(update={"checked": [40], "unchecked": [41]})
    assert summarise_passage.verify(passage(), allowed) == allowed
