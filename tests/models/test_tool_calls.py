"""Tools that a model calls in its turn."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from mneme.core.errors import BadAnswer, ModelUnavailable
from mneme.models.asking.tool_calls import call_tools
from tests.doubles.ollama import Model, OllamaDouble, Reply
from tests.doubles.scripts import script
from tests.doubles.served import WHO, served


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
