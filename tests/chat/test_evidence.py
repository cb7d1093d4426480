"""What is written of a message is held to it: quotes, words nobody said, statements left out."""

import time

import pytest

from mneme.prompts.chat.evidence import left_out, located, says, unsupported

MESSAGE = "Actually it’s Max, my dog — he's 5 and lives with my sister Emily. He loves Portland!"


@pytest.mark.parametrize(
    ("quote", "span"),
    [
        ("he's 5 and lives with my sister Emily.", "he's 5 and lives with my sister Emily."),
        ("it's Max, my dog - he's 5", "it’s Max, my dog — he's 5"),
        ("HE  LOVES\nPORTLAND", "He loves Portland!"),
        ("“He loves Portland!”", "He loves Portland!"),
        ("he's 5 and live with my sister Emily", "he's 5 and lives with my sister Emily."),
        ("Max, my dog … He loves Portland!", MESSAGE[MESSAGE.index("Max") :]),
        ("he's 6 and lives with my sister Emily", ""),
        ("He loves Portland! … Max, my dog", ""),
        ("she hates Boston", ""),
        ("…", ""),
        ("", ""),
    ],
)
def test_a_quote_is_found_as_the_message_has_it(quote: str, span: str) -> None:
    assert located(quote, MESSAGE) == span


def test_a_long_message_is_searched_quickly() -> None:
    message = " ".join(f"word{number} is here and there again" for number in range(2000))
    began = time.process_time()
    assert located("word1999 is here, and their again", message) == "word1999 is here and there again"
    assert located("nothing of this kind was ever said by anybody", message) == ""
    assert time.process_time() - began < 2


def test_a_quote_without_spaces_between_words_is_found() -> None:
    assert located("我叫小明", "你好，我叫小明。") == "我叫小明"


@pytest.mark.parametrize(
    ("content", "said", "strange"),
    [
        ("The user's PIN is 4711.", "My card was stolen.", "4711"),
        ("The user's PIN ends in 11.", "My PIN is 4711.", "11"),
        ("The user earns 1,000 euros.", "I earn 1000 euros.", ""),
        ("The user earns 1000 euros.", "I earn 1.000 euros, not 500.", ""),
        ("The user has 0 debts.", "I have 100 debts.", "0"),
        ("The user has 3 cats.", "I have 2 cats.", "3"),
        ("The user has 3 cats.", "I have three cats.", ""),
        ("The user flies to Rome on 3 March 2026.", "I fly to Rome tomorrow. 2026-03-02", ""),
        ("The user flies to Rome on 3 March 2026.", "I fly to Rome.", "3"),
        ("The user met Ann in Ulm.", "I met her in Ulm.", "Ann"),
        ("The user met Ann in Ulm.", "user: Ann is my boss. I met her in Ulm.", ""),
        ("The user speaks German.", "I grew up in Germany and speak the language.", ""),
        ("Max is a Labrador mix.", "Max is a labrador mix", ""),
        ("The user does not like tea.", "I like tea.", "not"),
        ("The user does not like tea.", "I can't stand tea.", ""),
        ("The user no longer works at Nokia.", "I quit my job at Nokia.", ""),
        ("The user no longer works at Nokia.", "I work at Nokia.", "no"),
    ],
)
def test_a_number_a_name_or_a_negation_that_nobody_said_is_named(
    content: str, said: str, strange: str
) -> None:
    found = unsupported(content, [said])
    assert f"{strange!r}" in found if strange else found == ""


@pytest.mark.parametrize(
    ("memory", "outdated", "content", "dropped"),
    [
        ("Max, an Arabian, loves apples.", "an Arabian", "Max, a Haflinger, loves apples.", ""),
        (
            "The user lives in Ulm. The user has a cat.",
            "The user lives in Ulm.",
            "The user lives in Bern.",
            "cat",
        ),
        ("The user lives in Ulm. The user has a cat.", "", "DELETED", "Ulm"),
        ("The user lives in Ulm.", "The user lives in Ulm.", "The user lives in Bern.", ""),
        ("The user sails and plays chess.", "", "The user sails, and plays chess on Mondays.", ""),
        ("The user's aunt Mia bakes; her uncle paints.", "", "The user's aunt Mia bakes bread.", "uncle"),
    ],
)
def test_a_statement_that_still_holds_must_be_kept(
    memory: str, outdated: str, content: str, dropped: str
) -> None:
    found = left_out(memory, outdated, content)
    assert dropped in found if dropped else found == ""


def test_a_content_says_a_fact_that_most_of_its_words_tell() -> None:
    assert says("The user lives in Berlin.", "The user moved to Berlin.")
    assert not says("The user likes tea.", "The user was born in Kraków in 1980.")
