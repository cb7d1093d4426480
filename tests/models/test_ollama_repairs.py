"""What small models do to JSON, and how they are asked again."""

import itertools
import json
import random
from collections.abc import Iterator

import pytest

from mneme.core.errors import BadAnswer
from mneme.core.settings import settings
from mneme.models.asking.asking import ask
from tests.doubles.ollama import OllamaDouble, Reply, sent
from tests.doubles.served import GOOD, NOTE, STORED, WHO, Note, greet, served, sort_note
from tests.doubles.waiting import until

# What small models do to JSON.

MENDED_AT_ONCE = {
    "fence": f"```json\n{GOOD}\n```",
    "prose": f"Sure! Here is the JSON you {{wanted}}:\n{GOOD}\nI hope this helps.",
    "trailing commas": '{"reason": "a, }", "route": "store", "names": ["x",], "quote": "",}',
    "case and spaces of an enum": '{"reason": "", "route": " Store\\n", "names": [], "quote": ""}',
    "thought with tags": f'<think>{{maybe}} {{"route": 1}}</think>\n{GOOD}',
    "thought without opening tag": f'Let me see {{"route": "discard"}}\n</think>\n\n{GOOD}',
    "line breaks in strings": '{"reason": "one\ntwo\t", "route": "store", "names": [], "quote": ""}',
    "the same object twice": f"{GOOD}\n{GOOD}",
}


@pytest.mark.parametrize("reply", MENDED_AT_ONCE.values(), ids=MENDED_AT_ONCE.keys())
async def test_what_loses_nothing_is_mended_without_asking_again(double: OllamaDouble, reply: str) -> None:
    double.chat.reply(reply)
    answered = await ask(sort_note, NOTE, WHO)
    assert (answered.value.route, answered.attempts) == ("store", 1)


ASKED_AGAIN = {
    "empty enum": ('{"reason": "", "route": "", "names": [], "quote": ""}', "route: Input should be 'store'"),
    "word outside": ('{"reason": "", "route": "keep", "names": [], "quote": ""}', "route: Input should be"),
    "truncated": ('{"reason": "r", "route": "store", "names": ["a"', "not a complete JSON object"),
    "truncated list": ('{"names": [{"city": "Ulm"}, {"ci', "looks cut off"),
    "field left out": ('{"reason": "r", "route": "store", "quote": ""}', "Missing field: names"),
    "null for a list": ('{"reason": "r", "route": "store", "names": null, "quote": ""}', "names"),
    "inner field": (
        '{"reason": "r", "route": "store", "names": [], "quote": "", "place": {}}',
        "Missing field in place: city",
    ),
    "two objects": (f'{GOOD} or {{"route": "discard"}}', "more than one JSON object"),
    "a field twice": (
        '{"reason": "", "route": "store", "names": [], "quote": "", "route": "discard"}',
        "The field 'route' is given twice",
    ),
    "no object": ("I would store it.", "not a complete JSON object"),
    "a list": ("[]", "not a complete JSON object"),
    "check": ('{"reason": "r", "route": "store", "names": [], "quote": "Bonn"}', "quote 'Bonn' is not in"),
    "call as text": ('{"name": "store", "arguments": {}}', "Missing field: reason"),
}


@pytest.mark.parametrize(("reply", "complaint"), ASKED_AGAIN.values(), ids=ASKED_AGAIN.keys())
async def test_what_is_wrong_is_shown_and_asked_again(
    double: OllamaDouble, reply: str, complaint: str
) -> None:
    double.chat.reply(reply, GOOD)
    answered = await ask(sort_note, NOTE, WHO)
    first, second = sent(double)
    assert (answered.value.route, answered.attempts) == ("store", 2)
    assert second["messages"][:2] == first["messages"]
    assert second["messages"][2]["content"] == reply
    assert complaint in second["messages"][3]["content"]
    assert second["options"]["seed"] != first["options"]["seed"]
    assert second["options"]["temperature"] > first["options"]["temperature"]


WORDS = ["".join(letters) for letters in itertools.islice(itertools.product("abcdefgh", repeat=4), 1010)]


@pytest.mark.parametrize(
    "reply", ["".join(f'{{"{word}": ' for word in WORDS), "", "   \n", "{}", "[]", "null", '{"route": ""}']
)
async def test_no_reply_becomes_a_silent_default(double: OllamaDouble, reply: str) -> None:
    double.chat.reply(reply, reply, reply)
    with pytest.raises(BadAnswer, match="in 3 attempts") as failure:
        await ask(sort_note, NOTE, WHO)
    assert failure.value.raw == reply
    assert failure.value.hint
    assert len(sent(double)) == 3


async def test_json_cut_by_length_is_asked_again_with_more_room(double: OllamaDouble) -> None:
    double.chat.reply(Reply(GOOD[:-1], done_reason="length"), GOOD)
    answered = await ask(sort_note, NOTE, WHO)
    first, second = (body["options"]["num_predict"] for body in sent(double))
    assert answered.attempts == 2
    assert second == 2 * first
    assert len(sent(double)[1]["messages"]) == 2


async def test_thinking_that_eats_the_budget_is_a_failure(double: OllamaDouble) -> None:
    eaten = Reply("", thinking="round and round", done_reason="length")
    leaked = "<think>round and round"
    double.chat.reply(eaten, leaked, GOOD)
    assert (await ask(sort_note, NOTE, WHO)).attempts == 3
    double.chat.reply(eaten, leaked, leaked)
    with pytest.raises(BadAnswer):
        await ask(greet, NOTE, WHO)


SPACES = random.Random(7)
CIRCLES = {
    "one token": itertools.repeat("la "),
    "white space in any order": (SPACES.choice(["\n", " ", "\t", "\n\n"]) for _ in itertools.count()),
    "line breaks in JSON": itertools.chain(['{"reason": "'], itertools.repeat("\n")),
    "a phrase": itertools.cycle(["and", " so", " it", " goes", ",", " "]),
    "a long phrase": itertools.cycle([f" {n}" for n in range(25)]),
}


@pytest.mark.parametrize("tokens", CIRCLES.values(), ids=CIRCLES.keys())
async def test_endless_repetition_is_ended_by_us_and_drawn_anew(
    double: OllamaDouble, tokens: Iterator[str]
) -> None:
    double.chat.reply(Reply(tokens), GOOD)
    answered = await ask(sort_note, NOTE, WHO)
    first, second = sent(double)
    assert answered.attempts == 2
    assert second["options"]["seed"] != first["options"]["seed"]
    assert second["options"]["temperature"] > 0
    assert second["options"]["repeat_penalty"] > 1 and "repeat_penalty" not in first["options"]
    assert len(second["messages"]) == 2


async def test_an_endless_reply_is_carried_by_the_error(double: OllamaDouble) -> None:
    whole = "".join(WORDS[:400])
    double.chat.reply(*[Reply(["Well: ", whole] + ["la "] * 100)] * 3)
    with pytest.raises(BadAnswer, match="repeats itself") as failure:
        await ask(greet, NOTE, WHO)
    assert failure.value.raw.startswith(f"Well: {whole}la la la")


async def test_what_was_said_until_time_ran_out_is_carried_by_the_error(
    double: OllamaDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEME_REPLY_SECONDS", "0.2")
    settings.cache_clear()
    double.chat.reply(*[Reply((f"{word} " for word in WORDS), token_seconds=0.01) for _ in range(3)])
    with pytest.raises(BadAnswer, match="MNEME_REPLY_SECONDS") as failure:
        await ask(greet, NOTE, WHO)
    assert failure.value.raw.startswith(WORDS[0])


async def test_a_stream_that_is_given_up_is_closed(double: OllamaDouble) -> None:
    double.chat.reply(Reply(itertools.cycle(["and", " so", " on", " "]), token_seconds=0.0005), "Hello.")
    assert (await ask(greet, NOTE, WHO)).attempts == 2
    await until(lambda: double.chats[0].aborted)


async def test_a_reply_that_never_ends_is_ended(
    double: OllamaDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEME_REPLY_SECONDS", "0.2")
    settings.cache_clear()
    words = (f"{word} " for word in WORDS)
    double.chat.reply(Reply(words, token_seconds=0.01), "Hello.")
    assert (await ask(greet, NOTE, WHO)).attempts == 2
    await until(lambda: double.chats[0].aborted)


async def test_a_copied_example_is_asked_again_without_examples(double: OllamaDouble) -> None:
    copy = STORED | {"reason": "It says who the aunt is."}
    double.chat.reply(json.dumps(copy), GOOD)
    answered = await ask(sort_note, NOTE, WHO)
    first, second = sent(double)
    assert (answered.value.reason, answered.attempts) == ("home", 2)
    assert "aunt" in first["messages"][0]["content"]
    assert "aunt" not in second["messages"][0]["content"]
    assert second["messages"][1:] == first["messages"][1:], "a copy is not shown back"


async def test_what_an_example_says_too_is_taken_where_none_was_shown(double: OllamaDouble) -> None:
    own = json.dumps(STORED | {"reason": "It says who the aunt is."})
    double.chat.reply(own, own)
    answered = await ask(sort_note, NOTE, WHO)
    assert (answered.value.reason, answered.attempts) == ("It says who the aunt is.", 2)


async def test_a_question_that_failed_for_good_is_drawn_anew(double: OllamaDouble) -> None:
    double.chat.reply(*["nonsense"] * 6)
    for _ in range(2):
        with pytest.raises(BadAnswer):
            await ask(sort_note, NOTE, WHO)
    drawn = [(body["options"]["seed"], body["options"]["temperature"]) for body in sent(double)]
    assert drawn[0] == drawn[3], "the first attempt can be repeated"
    assert len({seed for seed, _ in drawn}) == 5
    assert drawn[0][1] < drawn[1][1] < drawn[2][1]


async def test_ordinary_lists_and_tables_are_not_taken_for_circles(double: OllamaDouble) -> None:
    table = "| a | b | c |\n|---|---|---|\n" + "".join(f"| {n} | {n * n} | yes |\n" for n in range(40))
    double.chat.reply(table)
    answered = await ask(greet, NOTE, WHO)
    assert (answered.value, answered.attempts) == (table.strip(), 1)


async def test_a_repair_that_has_no_room_for_the_complaint_asks_the_question_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MNEME_NUM_CTX", "2048")
    with served(monkeypatch) as double:
        double.chat.reply(" ".join(WORDS[:150]), GOOD)
        answered = await ask(sort_note, Note(message="Ulm " + "word " * 1060), WHO)
        first, second = sent(double)
    assert (answered.value.route, answered.attempts) == ("store", 3)
    assert second["messages"] == first["messages"]
    assert second["options"]["seed"] != first["options"]["seed"]
