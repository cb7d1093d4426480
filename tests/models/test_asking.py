"""Asking: who answers, what streams to the chat, what is traced, tools, the two lanes on a real socket."""

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import threading
import types
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langchain_core.tracers import LangChainTracer
from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run
from langgraph.graph import END, START, MessagesState, StateGraph
from langsmith import Client
from pydantic import BaseModel, Field

from mneme.core.errors import BadAnswer, BadInput, MnemeError, ModelUnavailable
from mneme.models.asking import responders
from mneme.models.asking.asking import Lane, ask, auto_notice, call_tools, resolve
from mneme.models.asking.budget import tokens
from mneme.models.asking.gate import gate
from mneme.prompts.prompt import Prompt
from mneme.rules.registry import answer as by_rule
from mneme.rules.registry import rule
from tests.doubles.ollama import Model, OllamaDouble, Reply, Request, by_rules
from tests.doubles.scripts import script
from tests.doubles.served import NOTE, STORED, Note, Sorting, greet, point_at, served, sort_note
from tests.doubles.waiting import until

WHO = "ollama:llama3.1:8b"
GOOD = json.dumps(STORED)
ROOT = Path(__file__).parents[2]


# Who answers.


async def test_rules_answer_by_the_rule() -> None:
    answered = await ask(sort_note, NOTE, "rules")
    assert answered.value == Sorting(reason="It speaks of me.", route="store")
    assert (answered.responder, answered.attempts) == ("rules", 1)
    assert answered.prompt_tokens == tokens("\n".join(sort_note.wording(NOTE))), "what a model would read"


async def test_a_rule_that_fails_its_own_check_is_not_believed() -> None:
    script("wrong", {"sort_note": [Sorting(reason="", route="store", quote="Bonn")]})
    with pytest.raises(BadAnswer, match="quote 'Bonn' is not in the note"):
        await ask(sort_note, NOTE, "scripted:wrong")


async def test_a_script_answers_in_order_and_says_when_it_is_over() -> None:
    script("two", {"sort_note": [Sorting(reason="a", route="store"), GOOD], "greet": ["Good day."]})
    assert (await ask(sort_note, NOTE, "scripted:two")).value.reason == "a"
    assert (await ask(sort_note, NOTE, "scripted:two")).value.reason == "home"
    assert (await ask(greet, NOTE, "scripted:two")).value == "Good day."
    with pytest.raises(BadInput, match="'two' has no answer left for 'sort_note'"):
        await ask(sort_note, NOTE, "scripted:two")
    with pytest.raises(BadInput, match="No provider is called 'scripted'"):
        await ask(sort_note, NOTE, "scripted:three")


async def test_a_script_can_fail_as_a_model_does() -> None:
    script("failing", {"sort_note": [ModelUnavailable("gone"), "{", 'no, "text"']})
    with pytest.raises(ModelUnavailable, match="gone"):
        await ask(sort_note, NOTE, "scripted:failing")
    with pytest.raises(BadAnswer) as failure:
        await ask(sort_note, NOTE, "scripted:failing")
    assert failure.value.raw == "{"


@pytest.mark.parametrize("who", ["", "llama3.1", "ollama:", ":x", "rules:x", "scripted:"])
async def test_an_unknown_form_is_refused_with_the_accepted_ones(who: str) -> None:
    with pytest.raises(BadInput) as refusal:
        await ask(sort_note, NOTE, who)
    assert "ollama:<model>" in refusal.value.hint


async def test_auto_is_ollama_where_it_has_the_model(double: OllamaDouble) -> None:
    double.chat.reply(GOOD)
    assert (await ask(sort_note, NOTE, "auto")).responder == WHO
    assert auto_notice() == ""


async def test_auto_is_rules_where_the_model_is_missing(
    double: OllamaDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEME_MODEL", "qwen3:4b")
    point_at(monkeypatch, double.url)
    assert (await ask(sort_note, NOTE, "auto")).responder == "rules"
    assert "has no qwen3:4b: answering by rules. Get a model: ollama pull qwen3:4b" in auto_notice()


async def test_auto_is_whom_the_settings_name(double: OllamaDouble, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEME_AUTO", "openai:some-model")
    point_at(monkeypatch, double.url)
    assert await resolve("auto") == "openai:some-model"
    assert await resolve("rules") == "rules"
    monkeypatch.setenv("MNEME_AUTO", "some-model")
    point_at(monkeypatch, double.url)
    with pytest.raises(BadInput):
        await resolve("auto")


async def test_auto_becomes_a_model_that_is_pulled_meanwhile(
    double: OllamaDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEME_MODEL", "qwen3:4b")
    point_at(monkeypatch, double.url)
    assert await resolve("auto") == "rules"
    double.models["qwen3:4b"] = Model("qwen3:4b")
    assert await resolve("auto") == "rules", "it does not look at each question"
    monkeypatch.setattr(responders, "LOOK_AGAIN_SECONDS", 0.0)
    assert await resolve("auto") == "ollama:qwen3:4b"
    assert auto_notice() == ""


async def test_auto_is_rules_where_nobody_answers_and_is_decided_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    silence = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{silence.getsockname()[1]}"
    point_at(monkeypatch, url)
    assert auto_notice() == ""
    with caplog.at_level("INFO", "mneme.models"):
        assert await resolve("auto") == "rules"
        assert calls_to(silence) > 0
        assert [await resolve("auto") for _ in range(100)] == ["rules"] * 100
    assert calls_to(silence) == 0
    line = auto_notice()
    assert line.startswith(f"{url} gives no answer in time: answering by rules. ")
    assert [record.getMessage() for record in caplog.records] == [line]
    silence.close()


def calls_to(server: socket.socket) -> int:
    """Count the connections that came to a server since the last count."""
    server.setblocking(False)
    count = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            server.accept()[0].close()
            count += 1
    return count


# Other providers.


class Spelled(FakeListChatModel):
    """A chat model of another provider, that remembers what it was shown."""

    seen: list[list[BaseMessage]] = Field(default_factory=list)

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        self.seen.append(messages)
        async for chunk in super()._astream(messages, *args, **kwargs):
            yield chunk


def provide(
    monkeypatch: pytest.MonkeyPatch, provider: str, chat: str, open_: Callable[..., BaseChatModel]
) -> None:
    """Install a package of a provider that LangChain knows; LangChain keeps it, so use each once."""
    package = types.ModuleType(f"langchain_{provider}")
    setattr(package, chat, open_)
    monkeypatch.setitem(sys.modules, package.__name__, package)


async def test_any_provider_is_told_the_schema_and_held_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Spelled(responses=["I think so.", GOOD])
    provide(monkeypatch, "groq", "ChatGroq", lambda **_: model)
    answered = await ask(sort_note, NOTE, "groq:some-model")
    assert (answered.value.route, answered.attempts) == ("store", 2)
    assert "JSON schema" in str(model.seen[0][0].content)
    assert "not a complete JSON object" in str(model.seen[1][-1].content)


async def test_a_providers_reply_that_goes_in_circles_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Spelled(responses=["round and " * 4000, GOOD])
    provide(monkeypatch, "xai", "ChatXAI", lambda **_: model)
    answered = await ask(sort_note, NOTE, "xai:some-model")
    assert (answered.value.route, answered.attempts) == ("store", 2)
    assert len(model.seen[1]) == len(model.seen[0]), "a circle is not shown back"


async def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain_openai", None)
    with pytest.raises(MnemeError) as failure:
        await ask(sort_note, NOTE, "openai:gpt-4o-mini")
    assert failure.value.hint == "Install it: pip install langchain-openai"


async def test_a_provider_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_key(**_: Any) -> BaseChatModel:
        raise ValueError("MISTRAL_API_KEY is not set")

    provide(monkeypatch, "fireworks", "ChatFireworks", lambda **_: Spelled(responses=[]))
    provide(monkeypatch, "mistralai", "ChatMistralAI", without_key)
    with pytest.raises(ModelUnavailable, match="fireworks:m does not answer") as failure:
        await ask(sort_note, NOTE, "fireworks:m")
    assert "key" in failure.value.hint
    with pytest.raises(ModelUnavailable, match="MISTRAL_API_KEY is not set"):
        await ask(sort_note, NOTE, "mistralai:m")


async def test_without_langchain_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain.chat_models", None)
    with pytest.raises(MnemeError) as failure:
        await ask(sort_note, NOTE, "openai:gpt-4o-mini")
    assert failure.value.hint.startswith('Install it: pip install "mneme-agents[providers]"')
    assert "ollama:openai:gpt-4o-mini" in failure.value.hint


async def test_an_unknown_provider_is_refused() -> None:
    with pytest.raises(BadInput, match="No provider is called 'nobody'"):
        await ask(sort_note, NOTE, "nobody:x")


# What streams.


async def streamed(who: str, lane: Lane = "user") -> tuple[list[str], str, set[str]]:
    """Run a graph that asks for both kinds of answers; return its stream's texts, its reply, the ids seen."""

    async def reply(state: MessagesState) -> dict[str, list[BaseMessage]]:
        await ask(sort_note, NOTE, who, lane=lane)
        answered = await ask(greet, NOTE, who, lane=lane)
        return {"messages": [AIMessage(answered.value, id=answered.message_id)]}

    builder = StateGraph(MessagesState)
    builder.add_node("reply", reply)
    builder.add_edge(START, "reply")
    builder.add_edge("reply", END)
    texts: list[str] = []
    ids: set[str] = set()
    start: MessagesState = {"messages": [HumanMessage("hi", id="1")]}
    final: Any = {}
    part: Any
    async for mode, part in builder.compile().astream(start, stream_mode=["messages", "values"]):
        if mode == "values":
            final = part
        elif isinstance(message := part[0], AIMessageChunk):
            texts += [str(message.text)] if message.text else []
            ids.add(str(message.id))
        else:
            texts.append(f"<whole: {message.text}>")
    return texts, str(final["messages"][-1].text), ids


async def test_rules_and_scripts_stream_like_models() -> None:
    texts, final, ids = await streamed("rules")
    assert "".join(texts) == final == "Hello, and thank you for: I live in Ulm."
    assert len(texts) == 9
    assert len(ids) == 1
    script("kind", {"sort_note": [GOOD], "greet": ["Good  day,\nmy friend. "]})
    texts, final, _ = await streamed("scripted:kind")
    assert "".join(texts) == final == "Good  day,\nmy friend. "
    assert len(texts) == 4


async def test_a_model_streams_its_text_and_nothing_else(double: OllamaDouble) -> None:
    double.chat.reply(GOOD, "Hello my dear friend.")
    texts, final, ids = await streamed(WHO)
    assert texts == ["Hello", " my", " dear", " friend."]
    assert final == "Hello my dear friend."
    assert len(ids) == 1


@pytest.mark.filterwarnings("ignore:The v3 streaming protocol:langchain_core._api.LangChainBetaWarning")
async def test_the_events_of_a_run_carry_the_same_tokens(double: OllamaDouble) -> None:
    async def reply(state: MessagesState) -> dict[str, list[BaseMessage]]:
        answered = await ask(greet, NOTE, WHO)
        return {"messages": [AIMessage(answered.value, id=answered.message_id)]}

    graph = StateGraph(MessagesState).add_node("reply", reply).add_edge(START, "reply").compile()
    double.chat.reply("<think>hm</think>Hello my dear friend.")
    start: MessagesState = {"messages": [HumanMessage("hi")]}
    run = await graph.astream_events(start, version="v3")
    tokens = [token async for message in run.messages async for token in message.text]
    assert tokens == ["Hello", " my", " dear", " friend."]


async def test_background_text_does_not_reach_the_chat(double: OllamaDouble) -> None:
    double.chat.reply(GOOD, "A summary.")
    texts, final, _ = await streamed(WHO, "background")
    assert texts == ["<whole: A summary.>"]
    assert final == "A summary."


async def test_tokens_arrive_as_they_are_made(double: OllamaDouble) -> None:
    """Make each token when the one before has arrived."""
    arrived = threading.Semaphore()

    def tokens() -> Iterator[str]:
        for letter in "abcdefghij":
            assert arrived.acquire(timeout=60), "a token is held back"
            yield f" {letter}"

    double.chat.reply(Reply(tokens()))
    texts: list[str] = []

    async def reply(state: MessagesState) -> dict[str, list[BaseMessage]]:
        return {"messages": [AIMessage((await ask(greet, NOTE, WHO)).value)]}

    graph = StateGraph(MessagesState).add_node("reply", reply).add_edge(START, "reply").compile()
    start: MessagesState = {"messages": [HumanMessage("hi")]}
    async for message, _ in graph.astream(start, stream_mode="messages"):
        if isinstance(message, AIMessageChunk) and message.text:
            texts.append(str(message.text))
            arrived.release()
    assert "".join(texts).split() == list("abcdefghij")


THOUGHTS = {
    "with tags": ["<think>", "she", " lives", "</think>", "\n\n", "Hello", " you"],
    "tags in pieces": ["<", "thi", "nk>", "a < b", "</th", "ink", ">Hel", "lo you"],
    "long tag": ["<Thinking>hm</Thinking>", "Hello", " you"],
    "in the middle": ["Hello", "<think>hm", "</think>", " you"],
    "no tags but like one": ["Hello", " you"],
    "a call in tags": ["<tool_call>", '{"name": "f"}', "</tool_call>", "Hello", " you"],
}


@pytest.mark.parametrize("tokens", THOUGHTS.values(), ids=THOUGHTS.keys())
async def test_thinking_is_never_shown(double: OllamaDouble, tokens: list[str]) -> None:
    double.chat.reply(GOOD, Reply(tokens))
    texts, final, _ = await streamed(WHO)
    assert "".join(texts) == final == "Hello you"


async def test_angle_brackets_that_are_no_tags_are_shown(double: OllamaDouble) -> None:
    double.chat.reply(GOOD, Reply(["if a <", " b and c <", "th", "d> e <thin"]))
    texts, final, _ = await streamed(WHO)
    assert "".join(texts) == final == "if a < b and c <thd> e <thin"


async def test_thinking_whose_opening_tag_is_in_the_template_is_held_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with served(monkeypatch, Model(template="<|user|>{{ .Prompt }}<|assistant|><think>")) as double:
        double.chat.reply(GOOD, "She greets me.\n</think>\n\nHello you")
        texts, final, _ = await streamed(WHO)
        assert texts == ["Hello", " you"]
        assert final == "Hello you"


async def test_unmarked_thinking_of_an_unknown_model_is_withdrawn_and_expected_from_then_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leak = "She greets me.\n</think>\n\nHello you"
    with served(monkeypatch, Model("leaky:1b")) as double:
        double.chat.reply(GOOD, leak, leak, GOOD, leak)
        _, final, _ = await streamed("ollama:leaky:1b")
        assert final == "Hello you"
        texts, final, _ = await streamed("ollama:leaky:1b")
        assert "".join(texts) == final == "Hello you"


@pytest.mark.parametrize(
    "call",
    [
        '{"name": "insert_memory", "parameters": {"content": "x"}}',
        '```json\n{"name": "insert_memory", "arguments": {}}\n```',
        '[TOOL_CALLS] [{"name": "insert_memory", "arguments": {"content": "x"}}]',
        '<|python_tag|>{"name": "insert_memory", "parameters": {}}',
        '<tool_call>{"name": "insert_memory", "arguments": {}}</tool_call>',
    ],
)
async def test_a_tool_call_written_as_text_is_never_shown(double: OllamaDouble, call: str) -> None:
    double.chat.reply(GOOD, Reply(list(call)), "Hello you")
    texts, final, _ = await streamed(WHO)
    assert "".join(texts) == final == "Hello you"


async def test_text_that_only_begins_like_a_call_is_shown(double: OllamaDouble) -> None:
    double.chat.reply(GOOD, '{"a": 1} is a JSON object.')
    texts, final, _ = await streamed(WHO)
    assert "".join(texts) == final == '{"a": 1} is a JSON object.'


async def test_an_attempt_that_broke_off_is_another_message(double: OllamaDouble) -> None:
    double.chat.reply(GOOD, Reply("Hello my", cut_after=2), "Hello you")
    texts, final, ids = await streamed(WHO)
    assert texts == ["Hello", " my", "Hello", " you"]
    assert final == "Hello you"
    assert len(ids) == 2


async def test_an_empty_reply_is_a_failure(double: OllamaDouble) -> None:
    double.chat.reply(Reply([""]), " ", "Hello.")
    answered = await ask(greet, NOTE, WHO)
    assert (answered.value, answered.attempts) == ("Hello.", 3)


# What is traced.


class Ears(BaseTracer):
    """A tracer that keeps every finished run, root and child."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: list[Run] = []

    def _persist_run(self, run: Run) -> None:
        """Keep nothing here: runs are kept when they end."""

    def _end_trace(self, run: Run) -> None:
        self.ended.append(run)
        super()._end_trace(run)


async def test_every_ask_is_one_run_named_after_its_prompt(double: OllamaDouble) -> None:
    ears = Ears()
    double.chat.reply("no", GOOD)
    await ask(sort_note, NOTE, WHO, config={"callbacks": [ears]})
    *attempts, run = ears.ended
    assert run.name == "sort_note"
    assert WHO in (run.tags or [])
    assert run.metadata["responder"] == WHO
    assert run.metadata["attempts"] == 2
    assert [child.metadata["attempt"] for child in attempts] == [1, 2]
    assert [child.name for child in attempts] == [WHO, WHO]
    assert all(child.parent_run_id == run.id for child in attempts)


async def test_the_attempts_of_a_failure_are_traced_too(double: OllamaDouble) -> None:
    ears = Ears()
    double.chat.reply("no", "no", "no")
    with pytest.raises(BadAnswer):
        await ask(sort_note, NOTE, WHO, config={"callbacks": [ears]})
    assert ears.ended[-1].metadata["attempts"] == 3
    assert "BadAnswer" in (ears.ended[-1].error or "")


async def test_rules_are_traced_as_rules() -> None:
    ears = Ears()
    await ask(sort_note, NOTE, "rules", config={"callbacks": [ears]})
    assert [(run.name, run.tags) for run in ears.ended] == [("sort_note", ["rules"])]


class Smithy(BaseHTTPRequestHandler):
    """What LangSmith's client takes for its server: it keeps what is sent of each run."""

    heard: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        self.heard.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(202)
        self.end_headers()

    do_PATCH = do_POST  # noqa: N815  (the names that http.server looks for)

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep silent."""


async def test_langsmith_is_told_name_tag_and_attempts(double: OllamaDouble) -> None:
    with HTTPServer(("127.0.0.1", 0), Smithy) as server:
        threading.Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
        client = Client(f"http://127.0.0.1:{server.server_port}", api_key="x", auto_batch_tracing=False)
        double.chat.reply("no", GOOD)
        tracer = LangChainTracer(client=client, project_name="test")
        await ask(sort_note, NOTE, WHO, config={"callbacks": [tracer]})
        client.flush()
        server.shutdown()
    last = Smithy.heard[-1]
    assert (last["name"], last["tags"]) == ("sort_note", [WHO])
    assert last["extra"]["metadata"]["attempts"] == 2
    assert last["outputs"]["output"]["route"] == "store"


# Tools.


@tool
def insert_memory(content: str, kind: str = "semantic") -> str:
    """Remember something new."""
    return content


@tool
def update_memory(index: int, content: str) -> str:
    """Replace a memory."""
    return content


TOOLS = [insert_memory, update_memory]
CALL = {"name": "insert_memory", "arguments": {"content": "The user lives in Ulm.", "kind": "semantic"}}


async def insert_what_was_said(messages: Sequence[BaseMessage]) -> AIMessage:
    """Insert what was said last."""
    args = {"content": str(messages[-1].content), "kind": "semantic"}
    return AIMessage("", tool_calls=[{"name": "insert_memory", "args": args, "id": "1", "type": "tool_call"}])


async def turn(who: str = WHO, *before: BaseMessage) -> AIMessage:
    messages = [HumanMessage("I live in Ulm."), *before]
    return await call_tools("You remember.", messages, TOOLS, who, rule=insert_what_was_said)


def calls(message: AIMessage) -> list[tuple[str, dict[str, Any]]]:
    return [(call["name"], call["args"]) for call in message.tool_calls]


async def test_tools_are_described_flat_and_called(double: OllamaDouble) -> None:
    double.chat.reply(Reply(tool_calls=(CALL,)))
    assert calls(await turn()) == [("insert_memory", CALL["arguments"])]
    body = double.chats[0].body
    (first, _) = [described["function"] for described in body["tools"]]
    assert first["name"] == "insert_memory"
    assert first["description"] == "Remember something new."
    assert first["parameters"]["required"] == ["content", "kind"]
    assert "format" not in body


async def test_calls_in_the_last_line_count_too(double: OllamaDouble) -> None:
    double.chat.reply(Reply(tool_calls=(CALL,), calls_in_last_line=True))
    assert calls(await turn()) == [("insert_memory", CALL["arguments"])]


async def test_rules_and_scripts_call_tools_too() -> None:
    assert calls(await turn("rules")) == [
        ("insert_memory", {"content": "I live in Ulm.", "kind": "semantic"})
    ]
    script("agent", {"call_tools": [await insert_what_was_said([HumanMessage("x")]), "Nothing to do."]})
    assert calls(await turn("scripted:agent")) == [("insert_memory", {"content": "x", "kind": "semantic"})]
    assert (await turn("scripted:agent")).text == "Nothing to do."


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(CALL),
        json.dumps(CALL).replace("arguments", "parameters"),
        f"<tool_call>{json.dumps(CALL)}</tool_call>",
        f"[TOOL_CALLS] [{json.dumps(CALL)}]",
        f"I will do this:\n```json\n{json.dumps(CALL)}\n```",
        json.dumps({"type": "function", "function": CALL}),
    ],
)
async def test_a_call_written_as_text_is_promoted_and_not_shown(double: OllamaDouble, text: str) -> None:
    double.chat.reply(text)
    message = await turn()
    assert calls(message) == [("insert_memory", CALL["arguments"])]
    assert message.text == ""


WRONG_CALLS = {
    "unknown tool": (
        {"name": "forget", "arguments": {}},
        "There is no tool 'forget'; there are: insert_memory",
    ),
    "missing argument": ({"name": "update_memory", "arguments": {"content": "x"}}, "lacks: index"),
    "wrong type": ({"name": "update_memory", "arguments": {"index": "first", "content": "x"}}, "index"),
}


@pytest.mark.parametrize(("call", "complaint"), WRONG_CALLS.values(), ids=WRONG_CALLS.keys())
async def test_a_wrong_call_is_shown_and_asked_again(
    double: OllamaDouble, call: dict[str, Any], complaint: str
) -> None:
    double.chat.reply(Reply(tool_calls=(call,)), Reply(tool_calls=(CALL,)))
    assert calls(await turn()) == [("insert_memory", CALL["arguments"])]
    messages = double.chats[1].body["messages"]
    assert complaint in messages[-1]["content"]
    assert call["name"] in messages[-2]["content"]


async def test_an_argument_with_a_default_may_be_left_out(double: OllamaDouble) -> None:
    @tool
    def explain(sql: str = "") -> str:
        """Show the plan of a query; without one, of the slow query."""
        return sql

    async def nothing(messages: Sequence[BaseMessage]) -> AIMessage:
        return AIMessage("")

    double.chat.reply(Reply(tool_calls=({"name": "explain", "arguments": {}},)))
    said = await call_tools("Look.", [HumanMessage("Why is it slow?")], [explain], WHO, rule=nothing)
    assert calls(said) == [("explain", {"sql": ""})]


async def test_a_check_of_the_turn_is_shown_and_asked_again(double: OllamaDouble) -> None:
    def names_the_place(message: AIMessage) -> None:
        if any("Ulm" not in call["args"]["content"] for call in message.tool_calls):
            raise ValueError("The memory must name the place.")

    async def checked(who: str) -> AIMessage:
        messages = [HumanMessage("I live there.")]
        return await call_tools(
            "You remember.", messages, TOOLS, who, rule=insert_what_was_said, check=names_the_place
        )

    vague = {"name": "insert_memory", "arguments": {"content": "The user lives.", "kind": "semantic"}}
    double.chat.reply(Reply(tool_calls=(vague,)), Reply(tool_calls=(CALL,)))
    assert calls(await checked(WHO)) == [("insert_memory", CALL["arguments"])]
    assert "must name the place" in double.chats[1].body["messages"][-1]["content"]
    with pytest.raises(BadAnswer, match="must name the place"):
        await checked("rules")


async def test_the_same_call_is_stopped_at_the_second(double: OllamaDouble) -> None:
    double.chat.reply(Reply(tool_calls=(CALL, CALL)))
    first = await turn()
    assert len(first.tool_calls) == 1
    double.chat.reply(Reply(tool_calls=(CALL,)))
    done = ToolMessage("done", tool_call_id=first.tool_calls[0]["id"] or "")
    assert (await turn(WHO, first, done)).tool_calls == []


async def test_a_model_without_tools_is_named(double: OllamaDouble, monkeypatch: pytest.MonkeyPatch) -> None:
    double.chat.reply(Reply(status=400, error="llama3.1:8b does not support tools"))
    with pytest.raises(ModelUnavailable, match="does not support tools") as failure:
        await turn()
    assert "with tools" in failure.value.hint
    with served(monkeypatch, Model("gemma:2b", ("completion",))) as other:
        with pytest.raises(ModelUnavailable, match="gemma:2b does not support tools"):
            await turn("ollama:gemma:2b")
        assert not other.chats


# The lanes, on a real socket.


@pytest.mark.parametrize("parallel", [1, 4])
async def test_a_hundred_background_calls_do_not_delay_a_user(
    monkeypatch: pytest.MonkeyPatch, parallel: int
) -> None:
    """Let background calls end only when all users were answered: a user who waited for one would hang."""
    background = Reply(GOOD, seconds=3600)
    with served(monkeypatch, parallel=parallel) as double:
        double.brain = lambda body: background if body.get("format") else "Hello my dear friend."
        tasks = [asyncio.create_task(ask(sort_note, NOTE, WHO, lane="background")) for _ in range(100)]
        for _ in range(7):
            await until(lambda: is_full(double, parallel))
            before = len(double.chats)
            assert (await ask(greet, NOTE, WHO)).value == "Hello my dear friend."
            assert kinds(double)[before] == "greeting", "it came before all that waited"
        assert not any(task.done() for task in tasks)
        await until(lambda: is_full(double, parallel))
        background.seconds = 0
        await asyncio.gather(*(ask(greet, NOTE, WHO) for _ in range(parallel)))
        assert {(await task).value.route for task in tasks} == {"store"}
        assert sum(request.aborted for request in double.chats) == 7 + parallel


async def test_one_owner_s_background_does_not_wait_for_all_of_another_s(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The owner is in the metadata of the run that asks."""
    with served(monkeypatch, parallel=1, brain=answering) as double:
        double.chat.reply(Reply(GOOD, seconds=3600))
        bobs = [asyncio.create_task(asked_for("bob")) for _ in range(3)]
        await until(lambda: double.chats)
        carols = asyncio.create_task(asked_for("carol"))
        await until(lambda: gate(double.url).waiting("background") == 3)
        await ask(greet, NOTE, WHO)  # in place of the one that never ends
        await carols
        assert not all(each.done() for each in bobs)
        await asyncio.gather(*bobs)


async def asked_for(owner: str) -> None:
    async def sort(_: None) -> None:
        await ask(sort_note, NOTE, WHO, lane="background")

    await RunnableLambda(sort).ainvoke(None, {"metadata": {"owner": owner}})


def unfinished(double: OllamaDouble) -> list[Request]:
    """Return the requests that the server is at."""
    return [request for request in double.chats if request.ended is None]


def is_full(double: OllamaDouble, parallel: int) -> bool:
    """Say whether the server is at as many notes as it takes, the last of them begun after the last greeting.

    A server notices late that a request was given up.
    """
    return kinds(double)[-1:] == ["note"] and len(unfinished(double)) == parallel


def kinds(double: OllamaDouble) -> list[str]:
    """Say of each chat request whether it sorts a note or greets."""
    return ["note" if request.body.get("format") else "greeting" for request in double.chats]


def answering(body: dict[str, Any]) -> str:
    return GOOD if body.get("format") else "Hello my dear friend."


async def test_preempted_work_is_done_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch, parallel=1, brain=answering) as double:
        double.chat.reply(Reply(GOOD, seconds=3600))
        work = asyncio.create_task(ask(sort_note, NOTE, WHO, lane="background"))
        await until(lambda: double.chats)
        await ask(greet, NOTE, WHO)
        assert (await work).value.route == "store"
        assert (await work).attempts == 1
        assert kinds(double) == ["note", "greeting", "note"]


# The double's brain.


async def test_the_double_answers_by_rules_what_it_recognises(monkeypatch: pytest.MonkeyPatch) -> None:
    notes = Notes(
        message="Line one.\nLine $two [0] x", before=["user: a\nb", "assistant: [1] c"], when="", n=3
    )
    with served(monkeypatch, brain=by_rules(sort_note, greet, repeat)):
        assert (await ask(sort_note, NOTE, WHO)).value == by_rule(sort_note, NOTE)
        assert (await ask(greet, NOTE, WHO)).value == by_rule(greet, NOTE)
        assert (await ask(repeat, notes, WHO)).value.notes == notes.model_dump_json()
        empty = Notes(message="x")
        assert (await ask(repeat, empty, WHO)).value.notes == empty.model_dump_json()


class Notes(BaseModel):
    """Everything that a wording may have to render."""

    message: str
    before: list[str] = []
    when: str = ""
    n: int = 0


class Repeated(BaseModel):
    """What was given, as JSON."""

    notes: str


repeat = Prompt(
    name="repeat",
    given=Notes,
    answer=Repeated,
    system="You repeat.",
    user="Before:\n$before\n\nAt ${when}, $n times:\n$message",
)


@rule(repeat)
def repeat_by_rule(given: Notes) -> Repeated:
    """Repeat what was given."""
    return Repeated(notes=given.model_dump_json())


# What is imported, and what blocks.


def test_nothing_blocks_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `langgraph dev` does, fail on any blocking call in the loop; in a process without warm imports."""
    pytest.importorskip("blockbuster", reason="the extra `serve` is not installed")
    code = (
        "import asyncio, os, sys\n"
        "from blockbuster import blockbuster_ctx\n"
        "from tests.doubles.served import NOTE, greet, sort_note\n"
        "from mneme.models.asking.asking import ask\n"
        "from mneme.models.embedding.embedders import open_embedder\n"
        "async def main():\n"
        "    for who in ('auto', 'rules', 'ollama:llama3.1:8b'):\n"
        "        print((await ask(greet, NOTE, who)).responder)\n"
        "        await ask(sort_note, NOTE, who, lane='background')\n"
        "    print(len(await (await open_embedder('ollama:nomic')).embed_query('x')))\n"
        "with blockbuster_ctx():\n"
        "    asyncio.run(main())\n"
        "sys.stdout.flush()\n"
        "os._exit(0)\n"  # what blockbuster patches does not always outlive the interpreter's end
    )
    with served(monkeypatch, Model(), Model("nomic", ("embedding",)), brain=answering):
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [WHO, "rules", WHO, "8"]


def test_importing_the_asking_is_light() -> None:
    heavy = ["torch", "transformers", "sentence_transformers", "onnxruntime", "langchain", "langchain_ollama"]
    code = f"import sys, mneme.models.asking.asking; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_no_tracing_means_no_client_of_langsmith() -> None:
    code = (
        "import asyncio, sys\n"
        "from tests.doubles.served import NOTE, sort_note\n"
        "from mneme.models.asking.asking import ask\n"
        "import socket\n"
        "socket.socket.connect = lambda *a: sys.exit('connected')\n"
        "print(asyncio.run(ask(sort_note, NOTE, 'rules')).value.route, 'langsmith.client' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == "store"


def test_every_kind_of_chat_model_is_one_to_langchain() -> None:
    from mneme.models.asking.fixed_reply import FixedReply  # noqa: PLC0415  (only here)

    assert issubclass(FixedReply, BaseChatModel)
    assert FixedReply(text="Good day.").invoke("x").text == "Good day."
    assert Note(message="x").message == "x"
