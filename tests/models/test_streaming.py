"""What of an answer is streamed, and what of it is traced."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, ClassVar

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.tracers import LangChainTracer
from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run
from langgraph.graph import END, START, MessagesState, StateGraph
from langsmith import Client

from mneme.core.errors import BadAnswer
from mneme.models.asking.asking import Lane, ask
from tests.doubles.ollama import Model, OllamaDouble, Reply
from tests.doubles.scripts import script
from tests.doubles.served import GOOD, NOTE, WHO, greet, served, sort_note


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
