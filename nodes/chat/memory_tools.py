"""Version 1 of the memory agent (§3.1): one agent that calls `insert_memory` and `update_memory`.

The agent sees the message beside all similar memories and decides everything in one turn: whether
to remember at all, which memory to touch, and the new wording.
"""

from collections.abc import Sequence
from functools import partial
from typing import Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.messages.tool import tool_call
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, tool

from mneme.models.asking.asking import by_rules, call_tools, resolve
from mneme.nodes.chat.context import MemoryRuntime
from mneme.nodes.chat.memory_agent import Decision, State, Update, similar_to
from mneme.nodes.chat.memory_operations import Similar, Touched
from mneme.nodes.counted import counted
from mneme.prompts.chat.memory_agent import ToolCall, ToolCalls, ToolGiven, manage_memory


@tool
def insert_memory(content: str, quote: str, kind: Literal["semantic", "episodic"]) -> None:
    """Remember a new fact that no memory is about."""


@tool
def update_memory(index: int, content: str, quote: str) -> None:
    """Replace memory number `index` by `content`, the whole new memory."""


TOOLS: Sequence[BaseTool] = (insert_memory, update_memory)


async def find_similar_to_message(state: State, runtime: MemoryRuntime) -> Update:
    """Search the user's memories by cosine with the message itself as the query."""
    return {"similar": [await similar_to(state["message"], runtime)]}


@counted
async def manage(state: State, runtime: MemoryRuntime) -> Update:
    """Let the agent call its tools, once, on the message and all similar memories."""
    (similar,) = state["similar"]
    given = ToolGiven(
        message=state["message"],
        preceding=state["preceding"],
        time=state["time"],
        memories=[memory["content"] for memory in similar],
    )
    who = runtime.context.memory_agent
    turn = await turn_of(given, who)
    calls = calls_of(turn)
    return {
        "route": "store" if calls else "discard",
        "rationale": _rationale(turn),
        "model": await resolve(who),
        "candidates": [call.model_dump(include={"content", "quote", "kind"}) for call in calls],
        "decisions": [_decision(number, call, similar) for number, call in enumerate(calls)],
    }


async def turn_of(given: ToolGiven, who: str, config: RunnableConfig | None = None) -> AIMessage:
    """Return what the agent says and which tools it calls, once, on what is given."""
    system, question = manage_memory.wording(given)

    async def by_rule(_: Sequence[BaseMessage]) -> AIMessage:
        return _as_turn(await by_rules(manage_memory, given))

    return await call_tools(
        system,
        [HumanMessage(question)],
        TOOLS,
        who,
        rule=by_rule,
        check=partial(_check, given),
        name=manage_memory.name,
        config=config,
    )


def _as_turn(answer: ToolCalls) -> AIMessage:
    """Return a rule's answer in the form in which a model calls tools."""
    calls = [
        tool_call(name=call.name, args=call.model_dump(exclude={"name"}), id=f"rule-{number}")
        for number, call in enumerate(answer.calls)
    ]
    return AIMessage("" if calls else "There is nothing to remember.", tool_calls=calls)


def calls_of(turn: AIMessage) -> list[ToolCall]:
    """Return the calls of a turn, as the question's answer has them."""
    return [ToolCall(name=call["name"], **call["args"]) for call in turn.tool_calls]


def _check(given: ToolGiven, turn: AIMessage) -> None:
    """Reject calls that do not hold, and a call that is described in prose: nothing would be remembered."""
    calls = calls_of(turn)
    described = [each.name for each in TOOLS if each.name in turn.text]
    if described and not calls:
        raise ValueError(f"You wrote about {described[0]} but did not call it: call the tool itself.")
    manage_memory.verify(given, ToolCalls(calls=calls))


def _rationale(turn: AIMessage) -> str:
    """Say what the agent did; where it called no tool, in its own words, so that a person can judge it."""
    if turn.tool_calls:
        return turn.text or f"The agent called {len(turn.tool_calls)} tools."
    return f"The agent called no tool. It wrote: {turn.text}"


def _decision(number: int, call: ToolCall, similar: list[Similar]) -> Decision:
    is_update = call.name == "update_memory"
    return Decision(
        candidate=number,
        action="update" if is_update else "insert",
        memories=[_touched(similar[call.index])] if is_update else [],
        rationale=f"The agent called {call.name}.",
    )


def _touched(memory: Similar) -> Touched:
    """The agent does not say what becomes false, so anything of the memory may."""
    return Touched(**memory, outdated=memory["content"])
