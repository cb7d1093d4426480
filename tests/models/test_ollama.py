"""What Ollama is sent, and what its server does wrong, through the real client over real sockets."""

import asyncio
import json
import socket

import httpx
import pytest
from langchain_core.messages import AIMessage, HumanMessage

from mneme.core.errors import BadInput, MnemeError, ModelUnavailable, PromptTooLong
from mneme.core.settings import settings
from mneme.models.asking.asking import ask
from mneme.models.ollama import catalogue
from tests.doubles.ollama import Model, OllamaDouble, Reply, sent
from tests.doubles.served import GOOD, NOTE, WHO, Note, greet, point_at, served, sort_note
from tests.doubles.waiting import until

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
