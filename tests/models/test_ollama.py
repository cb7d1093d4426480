"""What small models and their server do wrong, through the real client over real sockets."""

import asyncio
import itertools
import json
import random
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from langchain_core.messages import AIMessage, HumanMessage

from mneme.core.errors import BadAnswer, BadInput, MnemeError, ModelUnavailable, PromptTooLong
from mneme.core.settings import settings
from mneme.models.asking.asking import ask
from mneme.models.ollama import catalogue
from tests.doubles.ollama import Model, OllamaDouble, Reply
from tests.doubles.served import GOOD, NOTE, STORED, WHO, Note, greet, point_at, served, sort_note
from tests.doubles.waiting import until


def sent(double: OllamaDouble) -> list[dict[str, Any]]:
    return [request.body for request in double.chats]


# The request: everything is set on purpose.


async def test_every_option_is_set_on_purpose(double: OllamaDouble) -> None:
    double.chat.reply(GOOD)
    answered = await ask(sort_note, NOTE, WHO)
    (body,) = sent(double)
    assert answered.value.route == "store"
    assert (answered.responder, answered.attempts) == (WHO, 1)
    assert answered.prompt_tokens > 0
    assert answered.reply_tokens > 0
    assert body["options"] == {"num_ctx": 16384, "num_predict": 256, "temperature": 0.0, "seed": 7}
    assert body["keep_alive"] == "30m"
    assert "think" not in body
    assert [m["role"] for m in body["messages"]] == ["system", "user"]


async def test_the_schema_is_sent_flat(double: OllamaDouble) -> None:
    double.chat.reply(GOOD)
    await ask(sort_note, NOTE, WHO)
    schema = sent(double)[0]["format"]
    text = json.dumps(schema)
    assert not [word for word in ("$ref", "$defs", "anyOf", "null", "pattern", "default") if word in text]
    assert list(schema["properties"]) == ["reason", "route", "names", "place", "quote"]
    assert schema["additionalProperties"] is False, "else a newer llama.cpp lets the model invent fields"
    assert schema["properties"]["route"]["enum"] == ["store", "discard"]
    assert schema["required"] == ["reason", "route", "names", "quote"]


async def test_one_context_for_all_calls_so_that_the_model_is_loaded_once(double: OllamaDouble) -> None:
    double.chat.reply(GOOD, "Hello.", Reply(["{"], done_reason="length"), GOOD)
    await ask(sort_note, NOTE, WHO)
    await ask(greet, NOTE, WHO)
    await ask(sort_note, NOTE, WHO, lane="background")
    assert {body["options"]["num_ctx"] for body in sent(double)} == {16384}
    assert double.loads == 1


async def test_the_context_is_capped_by_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch, Model(context_length=2048)) as double:
        double.chat.reply(GOOD)
        await ask(sort_note, NOTE, WHO)
        assert sent(double)[0]["options"]["num_ctx"] == 2048


async def test_thinking_is_switched_off_only_where_the_model_can(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch, Model(capabilities=("completion", "thinking"))) as double:
        double.chat.reply(Reply(GOOD, thinking="Hm."))
        assert (await ask(sort_note, NOTE, WHO)).value.route == "store"
        assert sent(double)[0]["think"] is False


async def test_the_key_is_sent_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch, api_key="secret") as double:
        with pytest.raises(ModelUnavailable, match="does not let us in") as refusal:
            await ask(sort_note, NOTE, WHO)
        assert "OLLAMA_API_KEY" in refusal.value.hint
        monkeypatch.setenv("OLLAMA_API_KEY", "secret")
        double.chat.reply(GOOD)
        assert (await ask(sort_note, NOTE, WHO)).value.route == "store"


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


# What the server does.

PASSING = {
    "429": Reply(status=429, error="too many"),
    "499": Reply(status=499, error="closed"),
    "500": Reply(status=500, error="llama runner process has terminated: out of memory"),
    "502": Reply(status=502, error="bad gateway"),
    "503": Reply(status=503, error="server busy, please try again.  maximum pending requests exceeded"),
    "error in the stream": Reply(GOOD, error="unexpected EOF", error_after=2),
    "cut socket": Reply(GOOD, cut_after=2),
    "cut before the first token": Reply(GOOD, cut_after=0),
    "broken line": Reply(GOOD, broken_after=2),
    "empty stream": Reply(empty=True),
    "only loaded": Reply("", done_reason="load"),
    "no done line": Reply(GOOD, done=False),
}


@pytest.mark.parametrize("accident", PASSING.values(), ids=PASSING.keys())
async def test_what_passes_is_repeated(double: OllamaDouble, accident: Reply) -> None:
    double.chat.reply(accident, accident, GOOD)
    answered = await ask(sort_note, NOTE, WHO)
    assert (answered.value.route, answered.attempts) == ("store", 1)
    assert len(sent(double)) == 3


@pytest.mark.parametrize("accident", PASSING.values(), ids=PASSING.keys())
async def test_what_does_not_pass_ends_in_a_typed_error(double: OllamaDouble, accident: Reply) -> None:
    double.chat.reply(*[accident] * 20)
    with pytest.raises(ModelUnavailable) as failure:
        await ask(sort_note, NOTE, WHO)
    assert failure.value.hint
    assert len(sent(double)) == 5


FINAL: dict[str, tuple[Reply, type[MnemeError]]] = {
    "400": (Reply(status=400, error="invalid options"), BadInput),
    "401": (Reply(status=401, error="unauthorized"), ModelUnavailable),
    "403": (Reply(status=403, error="forbidden"), ModelUnavailable),
    "404": (Reply(status=404, error="model 'llama3.1:8b' not found"), ModelUnavailable),
}


@pytest.mark.parametrize(("refusal", "kind"), FINAL.values(), ids=FINAL.keys())
async def test_what_cannot_pass_is_never_repeated(
    double: OllamaDouble, refusal: Reply, kind: type[MnemeError]
) -> None:
    double.chat.reply(refusal)
    with pytest.raises(kind):
        await ask(sort_note, NOTE, WHO)
    assert len(sent(double)) == 1


async def test_an_absent_model_is_named_with_the_command_that_gets_it(double: OllamaDouble) -> None:
    with pytest.raises(ModelUnavailable, match="no model 'qwen3:4b'") as failure:
        await ask(sort_note, NOTE, "ollama:qwen3:4b")
    assert failure.value.hint == "Get it: ollama pull qwen3:4b"


async def test_no_server_is_named_with_the_command_that_starts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        point_at(monkeypatch, f"http://127.0.0.1:{unused.getsockname()[1]}")
        with pytest.raises(ModelUnavailable, match="No Ollama answers") as failure:
            await ask(sort_note, NOTE, WHO)
    assert failure.value.hint == "Start it: ollama serve"


async def test_a_server_that_dies_later_is_named_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch) as double:
        double.chat.reply(GOOD)
        await ask(sort_note, NOTE, WHO)
        double.stop()
        with pytest.raises(ModelUnavailable, match="No Ollama answers"):
            await ask(sort_note, NOTE, WHO)


async def test_something_else_at_the_address_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(hello, "127.0.0.1", 0) as server:
        point_at(monkeypatch, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        with pytest.raises(ModelUnavailable, match="is not Ollama"):
            await ask(sort_note, NOTE, WHO)


# Waiting.


async def test_a_cold_load_is_waited_for_but_silence_between_tokens_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MNEME_IDLE_SECONDS", "1")
    monkeypatch.setenv("MNEME_RETRIES", "1")
    with served(monkeypatch, load_seconds=1.5) as double:
        double.chat.reply(GOOD)
        assert (await ask(sort_note, NOTE, WHO)).attempts == 1
        double.chat.reply(Reply("Hello my dear friend", token_seconds=3600), "Hello.")
        assert (await ask(greet, NOTE, WHO)).value == "Hello."


async def test_a_first_token_that_never_comes_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEME_FIRST_TOKEN_SECONDS", "0.2")
    with served(monkeypatch) as double:
        double.chat.reply(*[Reply(GOOD, seconds=3600)] * 9)
        with pytest.raises(ModelUnavailable, match="ReadTimeout") as late:
            await ask(sort_note, NOTE, WHO)
    assert "MNEME_FIRST_TOKEN_SECONDS" in late.value.hint


# The context.


async def test_the_oldest_turns_are_dropped_and_system_and_task_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MNEME_NUM_CTX", "2048")
    history = [
        message
        for n in range(50)
        for message in (HumanMessage(f"question {n} " + "word " * 20), AIMessage(f"answer {n}"))
    ]
    with served(monkeypatch) as double:
        double.chat.reply("Hello.")
        await ask(greet, NOTE, WHO, history=history)
        messages = sent(double)[0]["messages"]
    assert (messages[0]["role"], messages[0]["content"]) == ("system", "You are kind.")
    assert messages[1]["content"].startswith("question ")
    assert messages[-2]["content"] == "answer 49"
    assert messages[-1]["content"] == NOTE.message
    assert 10 < len(messages) < 60


async def test_a_task_that_cannot_fit_is_an_error_before_anything_is_sent(double: OllamaDouble) -> None:
    with pytest.raises(PromptTooLong, match="tokens") as failure:
        await ask(sort_note, Note(message="word " * 20000), WHO)
    assert "MNEME_NUM_CTX" in failure.value.hint
    assert not double.chats


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


@pytest.mark.parametrize("overflow", ["cut", "error"])
async def test_a_server_with_a_smaller_context_than_it_says_is_found_out(
    monkeypatch: pytest.MonkeyPatch, overflow: str
) -> None:
    reply = Reply(GOOD, prompt_tokens=512)
    refusal = Reply(status=400, error='{"error":{"type":"exceed_context_size_error"}}')
    with served(monkeypatch) as double:
        double.chat.reply(reply if overflow == "cut" else refusal)
        with pytest.raises(PromptTooLong):
            await ask(sort_note, Note(message="Ulm has a tall church " * 300), WHO)
        assert len(double.chats) == 1


# What `mneme doctor` is told.


async def test_the_survey_tells_models_capabilities_and_the_share_on_the_gpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small = Model("nomic-embed-text:latest", ("embedding",), 2048, 768)
    big = Model("qwen3:32b", ("completion", "tools", "thinking"), 40960, size=100, size_vram=60)
    with served(monkeypatch, small, big) as double:
        double.chat.reply(GOOD)
        await ask(sort_note, NOTE, "ollama:qwen3:32b")
        server = await catalogue.survey(double.url)
    assert server.version == "0.33.0"
    assert [m.name for m in server.models] == ["nomic-embed-text:latest", "qwen3:32b"]
    assert server.models[0].embedding_length == 768
    assert server.models[1].thinks
    assert server.models[1].quantization == "Q4_K_M"
    assert [(m.name, m.gpu_share, m.context_length) for m in server.loaded] == [("qwen3:32b", 0.6, 16384)]


# The double itself: what the real server is known to do.


async def test_the_double_speaks_the_protocol(double: OllamaDouble) -> None:
    async with httpx.AsyncClient(base_url=double.url) as client:
        assert (await client.get("/")).text == "Ollama is running"
        assert (await client.get("/api/version")).json() == {"version": "0.33.0"}
        assert (await client.get("/api/tags")).json()["models"][0]["name"] == "llama3.1:8b"
        shown = (await client.post("/api/show", json={"model": "llama3.1:8b"})).json()
        assert shown["model_info"]["llama.context_length"] == 131072
        assert (await client.post("/api/show", json={"model": "no"})).status_code == 404
        pulled = (await client.post("/api/pull", json={"model": "no"})).text.splitlines()
        assert json.loads(pulled[-1]) == {"error": "pull model manifest: file does not exist"}
        pulled = (await client.post("/api/pull", json={"model": "llama3.1:8b"})).text.splitlines()
        assert json.loads(pulled[-1]) == {"status": "success"}
        assert (await client.get("/nothing")).status_code == 404


async def test_the_double_queues_for_its_places_and_refuses_what_overflows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    body = {"model": "llama3.1:8b", "messages": [{"role": "user", "content": "x"}]}
    with OllamaDouble(parallel=1, queue=1, brain=lambda body: "Yes.") as double:
        double.chat.reply(Reply("Yes.", seconds=3600))
        async with httpx.AsyncClient(base_url=double.url) as client:
            held = asyncio.create_task(client.post("/api/chat", json=body))
            await until(lambda: len(double.chats) == 1)
            queued = asyncio.create_task(client.post("/api/chat", json=body))
            await until(lambda: len(double.chats) == 2)
            assert (await client.post("/api/chat", json=body)).status_code == 503
            held.cancel()
            assert (await queued).status_code == 200


async def test_the_double_cuts_or_refuses_what_overflows_its_context() -> None:
    body = {"messages": [{"role": "user", "content": "word " * 4000}], "options": {"num_ctx": 1000}}
    models = (Model("cuts"), Model("refuses", overflow="error"))
    with OllamaDouble(*models, brain=lambda body: "Yes.") as double:
        async with httpx.AsyncClient(base_url=double.url) as client:
            cut = await client.post("/api/chat", json=body | {"model": "cuts"})
            refused = await client.post("/api/chat", json=body | {"model": "refuses"})
    assert json.loads(cut.text.splitlines()[-1])["prompt_eval_count"] == 500
    assert refused.status_code == 400
    assert "exceed_context_size_error" in refused.json()["error"]


def test_settings_are_read_again_after_a_double(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch) as double:
        assert settings().ollama_url == double.url
