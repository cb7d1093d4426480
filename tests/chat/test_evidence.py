"""Generated text beside its sources: quotes are located, and only what is surely different is doubted."""

import time
from contextlib import nullcontext

import pytest

from mneme.prompts.chat.evidence import (
    changed_number,
    left_out,
    located,
    names,
    rest,
    sentence_around,
    strange_name,
)
from mneme.prompts.chat.memory_agent.reading import Incoming, Read, Reading, read_message

MESSAGE = "Actually it’s Max, my dog — he's 5 and lives with my sister Emily. He loves Portland!"


@pytest.mark.parametrize(
    ("quote", "span"),
    [
        ("he's 5 and lives with my sister Emily.", "he's 5 and lives with my sister Emily."),
        ("it's Max, my dog - he's 5", "it’s Max, my dog — he's 5"),
        ("HE  LOVES\nPORTLAND", "He loves Portland!"),
        ("“He loves Portland!”", "He loves Portland!"),
        ("he's 5 and live with my sister Emily", "he's 5 and lives with my sister Emily"),
        ("Max, my dog … He loves Portland!", MESSAGE[MESSAGE.index("Max") :]),
        ("he's 6 and lives with my sister Emily", ""),
        ("He loves Portland! … Max, my dog", ""),
        ("she hates Boston", ""),
        ("ax", ""),
        ("…", ""),
        ("", ""),
    ],
)
def test_a_quote_is_found_as_the_message_has_it(quote: str, span: str) -> None:
    assert located(quote, MESSAGE).rstrip(".") == span.rstrip(".")


def test_a_long_message_is_searched_quickly() -> None:
    message = " ".join(f"word{number} is here and there again" for number in range(2000))
    began = time.process_time()
    assert located("word1999 is here, and there again", message) == "word1999 is here and there again"
    assert located("nothing of this kind was ever said by anybody", message) == ""
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    ("quote", "message"), [("我叫小明", "你好，我叫小明。"), ("İzmir'de", "Artık I\u0307zmir'de oturuyorum")]
)
def test_a_quote_in_any_script_is_found(quote: str, message: str) -> None:
    assert located(quote, message)


@pytest.mark.parametrize(
    ("content", "said", "doubted"),
    [
        ("The user's PIN is 4712.", "My PIN is 4711.", "4712"),
        ("Mia is 5 years old.", "Mia (4)", "5"),
        ("The user gets up at 7:30.", "I get up at half past seven.", ""),
        ("The user gets up at 19:00.", "7pm", ""),
        ("The user is 25.", "I'm twenty-five.", ""),
        ("The user earns 3000 euros.", "I earn 3k", ""),
        ("The user was born in 1998.", "born in '98", ""),
        ("The appointment is on 2026-03-14.", "it's on the 14th", ""),
        ("The user leaves on 2026-03-16.", "we leave in a fortnight", ""),
        ("The user flies on 9 March 2026.", "I fly in 7 days", ""),
        ("The user has 2 dogs.", "I have a dog and its twin", ""),
    ],
)
def test_a_number_is_doubted_only_in_place_of_another(content: str, said: str, doubted: str) -> None:
    assert changed_number(content, said) == doubted


@pytest.mark.parametrize(
    ("entity", "said", "doubted"),
    [
        ("Zoe", "I met her in Ulm.", True),
        ("Emily", "my sis emily came", False),
        ("User", "I like tea.", False),
        ("München", "Ich wohne in Muenchen, also München.", False),
        ("New York", "I moved to NYC", False),
        ("Christmas", "see you at christmas", False),
        ("王芳", "王芳是我妹妹", False),
        ("Krankenhaus", "Mein Termin im Krankenhaus", False),
    ],
)
def test_a_name_is_doubted_that_no_source_has(entity: str, said: str, doubted: bool) -> None:
    content = f"The user knows {entity}." if entity != "User" else "The user likes tea."
    assert bool(strange_name([entity], content, [said])) == doubted


@pytest.mark.parametrize(
    ("memory", "outdated", "content", "dropped"),
    [
        ("Max, an Arabian, loves apples.", "an Arabian", "Max, a Haflinger, loves apples.", ""),
        ("The user lives in Ulm. The user has a cat.", "lives in Ulm", "The user lives in Bern.", "cat"),
        ("The user lives in Ulm. The user has a cat.", "", "DELETED", "Ulm"),
        ("The user lives in Ulm.", "The user lives in Ulm.", "The user lives in Bern.", ""),
        ("The user works at Nokia as a baker.", "works at Nokia as a baker", "The user is retired.", ""),
        ("用户住在北京。用户养了一只猫。", "住在北京", "用户住在上海。", "猫"),
    ],
)
def test_a_clause_that_still_holds_must_be_kept(
    memory: str, outdated: str, content: str, dropped: str
) -> None:
    found = left_out(memory, outdated, content)
    assert dropped in found if dropped else found == ""


@pytest.mark.parametrize(
    ("memory", "outdated", "fact", "left"),
    [
        ("The user works at Google.", "Google", "The user works at Apple.", []),
        ("The user lives in Ulm with Ann.", "Ulm", "The user lives in Bern.", ["with", "ann"]),
        ("The user's dog Max is a beagle.", "is a beagle", "The user's dog Max has died.", []),
    ],
)
def test_a_fact_takes_the_place_of_a_memory_that_says_nothing_more(
    memory: str, outdated: str, fact: str, left: list[str]
) -> None:
    assert rest(memory, outdated, fact) == left


def test_names_are_those_of_the_reader_also_at_the_beginning_and_in_small_letters() -> None:
    assert names(["Emily", "San José", "Rex"], "emily moved to san jose") == {"emily", "san jose"}


@pytest.mark.parametrize(
    ("message", "content", "entities"),
    [
        ("I doesnt work there anymore", "The user no longer works there.", []),
        ("handed in my notice at Nokia", "The user no longer works at Nokia.", ["Nokia"]),
        ("packed it in w/ the smoking", "The user no longer smokes.", []),
        ("the Lisbon trip fell through", "The user's Lisbon trip is cancelled.", ["Lisbon"]),
        ("we outgrew the flat", "The user no longer lives in the flat.", []),
        ("llegué tarde pq ya dejé el curro", "El usuario ya no trabaja.", []),
        ('she said "Anna is moving in"', "Anna is moving in with the user.", ["Anna"]),
        ("Mrs. Lee teaches me piano", "Mrs. Lee teaches the user piano.", ["Mrs. Lee", "User"]),
        ("alarm at half past seven tmrw", "The user's alarm is at 7:30 on 2026-03-03.", []),
    ],
)
def test_an_honest_answer_is_neither_refused_nor_doubted(
    message: str, content: str, entities: list[str]
) -> None:
    given = Incoming(message=message, time="2026-03-02T12:00:00+00:00")
    memory = Read(content=content, quote=message, kind="semantic", entities=entities)
    answer = Reading(rationale="It is said.", route="store", memories=[memory])
    assert read_message.verify(given, answer) == answer
    for doubt in read_message.doubts:
        doubt(given, answer)


@pytest.mark.parametrize("known", [["The user's old flat is number 12."], ["The user likes tea."]])
def test_a_number_is_not_doubted_that_was_known_before(known: list[str]) -> None:
    message = "flat 3 is sold, we're back in the old one"
    memory = Read(content="The user lives in flat 12 again.", quote=message, kind="semantic")
    answer = Reading(rationale="It is said.", route="store", memories=[memory])
    (doubt,) = read_message.doubts
    with nullcontext() if "12" in known[0] else pytest.raises(ValueError, match="12"):
        doubt(Incoming(message=message, known=known), answer)


def test_the_sentence_around_a_quote_is_its_context() -> None:
    message = "Actually no. He moved to Rome, by the way. Bye"
    assert sentence_around("moved to Rome", message) == "He moved to Rome, by the way."
    assert sentence_around("never said", message) == "never said"
