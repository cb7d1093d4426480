"""What is written of a message is held to it: quotes, words nobody said, statements left out."""

import time

import pytest

from mneme.core.evidence import left_out, located, says, uncovered, unsupported
from mneme.nodes.chat.statements import around
from mneme.prompts.chat.memory_agent.rewriting import Pair, Rewritten, rewrite_memory

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


@pytest.mark.parametrize(
    ("content", "holds"),
    [
        ("The user's brother Andrés no longer works in accounting and lives in Seville.", True),
        ("The user's brother Andrés works as an accountant in Seville, happily.", False),
    ],
)
def test_a_rewrite_may_say_the_fact_in_the_memorys_own_language(content: str, holds: bool) -> None:
    given = Pair(
        fact="Andrés ya no trabaja como contable.",
        message="Andrés ya no trabaja como contable.",
        memory="The user's brother Andrés works as an accountant in Seville.",
        outdated="works as an accountant",
    )
    answer = Rewritten(content=content)
    if holds:
        assert rewrite_memory.verify(given, answer) == answer
    else:
        with pytest.raises(ValueError, match="does not say the fact"):
            rewrite_memory.verify(given, answer)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("The user no longer takes lisinopril.", "I'm off the lisinopril for good"),
        ("L'utilisateur part le vendredi 27 février 2026.", "je pars vendredi"),
        ("Der Nutzer trinkt keinen Kaffee mehr.", "Ich trinke keinen Kaffee mehr"),
    ],
)
def test_ends_and_days_are_understood_in_other_words(content: str, said: str) -> None:
    assert unsupported(content, [said]) == ""


def test_a_sentence_with_a_name_that_nothing_keeps_is_uncovered() -> None:
    message = "My sis Emily moved to Porto, she's 34 now! Is it warm in Rome? I like tea"
    assert uncovered(message, [("The user likes tea.", "I like tea")]).startswith("My sis")
    assert uncovered(message, [("Emily, the user's sister, is 34.", "she's 34 now")]) == ""


def test_the_sentence_around_a_quote_is_its_context() -> None:
    message = "Actually no. He moved to Rome, by the way. Bye"
    assert around("moved to Rome", message) == "He moved to Rome, by the way."
    assert around("never said", message) == "never said"


def test_a_german_noun_is_no_name() -> None:
    said = "Mein Termin im Krankenhaus ist am 3. Mai"
    assert unsupported("Der Nutzer hat am 3. Mai eine Untersuchung in der Klinik.", [said]) == ""
    assert unsupported("Der Nutzer hat am 4. Mai einen Termin.", [said]) == "the number '4'"
