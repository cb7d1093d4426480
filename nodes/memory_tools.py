"""Version 1 of the memory agent (§3.1): one agent that calls `insert_memory` and `update_memory`.

The agent sees the message beside all similar memories and decides everything in one turn: whether
to remember at all, which memory to touch, and the new wording.
"""

from collections.abc import Sequence
from typing import Literal

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.messages.tool import tool_call
from langchain_core.tools import BaseTool, tool

from models.asking import call_tools, resolve
from nodes.memory_agent import Context, Decision, State, Update, similar_to
from nodes.memory_operations import Similar
from prompts.memory_agent import Candidate, ToolCall, ToolCalls, ToolGiven, manage_memory


@tool
def insert_memory(content: str, quote: str, kind: Literal["semantic", "episodic"]) -> None:
    """Remember a new fact that no memory is about."""


@tool
def update_memory(index: int, content: str, quote: str) -> None:
    """Replace memory number `index` by `content`, the whole new memory."""


TOOLS: Sequence[BaseTool] = (insert_memory, update_memory)


async def find_similar_to_message(state: State, runtime: Context) -> Update:
    """Search the user's memories by cosine with the message itself as the query."""
    return {"similar": [await similar_to(state["message"], runtime)]}


async def manage(state: State, runtime: Context) -> Update:
    """Let the agent call its tools, once, on the message and all similar memories."""
    (similar,) = state["similar"]
    given = ToolGiven(
        message=state["message"],
        preceding=state["preceding"],
        time=state["time"],
        memories=[memory["content"] for memory in similar],
    )
    who = runtime.context.memory_agent
    system, question = manage_memory.wording(given)
    turn = await call_tools(
        system,
        [HumanMessage(question)],
        TOOLS,
        who,
        rule=lambda _: _as_turn(manage_memory.rule(given)),
        check=lambda turn: manage_memory.verify(given, _as_calls(turn)),
        name=manage_memory.name,
    )
    calls = _as_calls(turn).calls
    return {
        "route": "store" if calls else "discard",
        "rationale": turn.text or f"The agent called {len(calls)} tools.",
        "model": await resolve(who),
        "candidates": [_candidate(call).model_dump() for call in calls],
        "decisions": [_decision(number, call, similar) for number, call in enumerate(calls)],
    }


def _as_turn(answer: ToolCalls) -> AIMessage:
    """Let the rule speak as a model with tools does."""
    calls = [
        tool_call(name=call.name, args=call.model_dump(exclude={"name"}), id=f"rule-{number}")
        for number, call in enumerate(answer.calls)
    ]
    return AIMessage("" if calls else "There is nothing to remember.", tool_calls=calls)


def _as_calls(turn: AIMessage) -> ToolCalls:
    calls = [ToolCall(name=call["name"], **call["args"]) for call in turn.tool_calls]
    return ToolCalls(calls=calls)


def _candidate(call: ToolCall) -> Candidate:
    return Candidate(content=call.content, quote=call.quote, kind=call.kind)


def _decision(number: int, call: ToolCall, similar: list[Similar]) -> Decision:
    is_update = call.name == "update_memory"
    return Decision(
        candidate=number,
        action="update" if is_update else "insert",
        memories=[similar[call.index]] if is_update else [],
        rationale=f"The agent called {call.name}.",
    )
