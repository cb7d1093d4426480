"""Version 1 of the memory agent (§3.1): one agent that calls `insert_memory` and `update_memory`.

The agent sees the message beside all similar memories and decides in one turn whether to remember at all,
and which memory to touch; what it inserts or updates is written by a question of its own, as in the paper.
With `compose_first` the calls say what to write. With `retrieval` by the agent it is shown no memories
(§2.1): it searches with a tool until it decides.
"""

from asyncio import gather
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, tool

from mneme.models.asking.asking import by_rules, call_tools, resolve
from mneme.models.asking.wording import in_own_words
from mneme.nodes.chat.context import MemoryRuntime
from mneme.nodes.chat.memory_operations import Similar, judged
from mneme.nodes.chat.paper_versions import composed_of
from mneme.nodes.chat.remembering import Decision, State, Update, similar_to
from mneme.nodes.chat.writing_down import incoming
from mneme.nodes.costs import counted
from mneme.prompts.chat.paper_versions import (
    Composing,
    ToolCall,
    ToolCalls,
    ToolChoice,
    ToolGiven,
    choose_tools,
    manage_memory,
)
from mneme.prompts.prompt import Prompt

SEARCHES = 4
"""Turns in which the agent may search before it must decide."""

Calls = Sequence[ToolChoice | ToolCall]


@tool("insert_memory")
def insert_words(quote: str) -> None:
    """Remember what the quoted words of the message say, as a new memory."""


@tool("update_memory")
def update_by_words(index: int, quote: str) -> None:
    """Bring memory number `index` up to date with what the quoted words of the message say."""


@tool("insert_memory")
def insert_content(content: str, quote: str, kind: Literal["semantic", "episodic"]) -> None:
    """Remember a new fact that no memory is about."""


@tool("update_memory")
def replace_content(index: int, content: str, quote: str) -> None:
    """Replace memory number `index` by `content`, the whole new memory."""


@tool
def search_memories(query: str) -> None:
    """Find the memories that are most similar to a query."""


async def find_similar_to_message(state: State, runtime: MemoryRuntime) -> Update:
    """Search the user's memories with the message as the query, unless the agent searches itself."""
    by_agent = runtime.context.retrieval == "agent"
    return {"similar": [[] if by_agent else await similar_to(state["message"], runtime)]}


@counted
async def manage(state: State, runtime: MemoryRuntime) -> Update:
    """Let the agent call its tools on the message and the similar memories, after it has searched."""
    similar, who = list(state["similar"][0]), runtime.context.memory_agent
    chosen: Prompt[ToolGiven, Any] = manage_memory if runtime.context.compose_first else choose_tools
    prompt = await in_own_words(chosen)
    given = ToolGiven(**dict(incoming(state)), memories=[memory["content"] for memory in similar])
    messages: list[BaseMessage] = [HumanMessage(prompt.user_text(given))]
    turn = await turn_of(prompt, given, messages, who, searches=runtime.context.retrieval == "agent")
    for left in reversed(range(SEARCHES)):
        queries = [call for call in turn.tool_calls if call["name"] == search_memories.name]
        if not queries:
            break
        messages.append(turn.model_copy(update={"tool_calls": queries}))
        for call in queries:
            found = await similar_to(call["args"]["query"], runtime)
            messages.append(ToolMessage(_numbered(found, similar), tool_call_id=call["id"]))
        given = given.model_copy(update={"memories": [memory["content"] for memory in similar]})
        turn = await turn_of(prompt, given, messages, who, searches=left > 0)
    calls = calls_of(prompt, turn)
    return {
        "route": "store" if calls else "discard",
        "rationale": _rationale(turn),
        "model": await resolve(who),
        **_decided(calls, similar),
    }


def _numbered(found: Sequence[Similar], known: list[Similar]) -> str:
    """Add the memories found to those known, and list them by their numbers there."""
    numbers = {memory["key"]: number for number, memory in enumerate(known)}
    for memory in found:
        if memory["key"] not in numbers:
            numbers[memory["key"]] = len(known)
            known.append(memory)
    return "\n".join(f"[{numbers[each['key']]}] {each['content']}" for each in found) or "(none)"


async def turn_of(  # noqa: PLR0913  (as `call_tools`)
    prompt: Prompt[ToolGiven, Any],
    given: ToolGiven,
    messages: Sequence[BaseMessage],
    who: str,
    *,
    searches: bool = False,
    config: RunnableConfig | None = None,
) -> AIMessage:
    """Return what the agent says and which tools it calls after these messages; the first is the question."""
    writing = (
        (insert_content, replace_content) if prompt.answer is ToolCalls else (insert_words, update_by_words)
    )
    tools: Sequence[BaseTool] = (search_memories, *writing) if searches else writing
    return await call_tools(
        prompt.system_text(),
        messages,
        tools,
        who,
        rule=_by_rule(prompt, given, searches=searches and len(messages) == 1),
        check=_check(prompt, given),
        name=prompt.name,
        config=config,
    )


def _by_rule(
    prompt: Prompt[ToolGiven, Any], given: ToolGiven, *, searches: bool
) -> Callable[[Sequence[BaseMessage]], Awaitable[AIMessage]]:
    async def by_rule(_: Sequence[BaseMessage]) -> AIMessage:
        if searches:
            query = tool_call(name=search_memories.name, args={"query": given.message}, id="rule-search")
            return AIMessage("", tool_calls=[query])
        return _as_turn((await by_rules(prompt, given)).calls)

    return by_rule


def _as_turn(calls: Calls) -> AIMessage:
    """Return a rule's answer in the form in which a model calls tools."""
    made = [
        tool_call(name=call.name, args=call.model_dump(exclude={"name"}), id=f"rule-{number}")
        for number, call in enumerate(calls)
    ]
    return AIMessage("" if made else "There is nothing to remember.", tool_calls=made)


def calls_of(prompt: Prompt[ToolGiven, Any], turn: AIMessage) -> Calls:
    """Return the calls of a turn that write, as the question's answer has them."""
    kind = ToolCall if prompt.answer is ToolCalls else ToolChoice
    return [
        kind(name=call["name"], **call["args"])
        for call in turn.tool_calls
        if call["name"] != search_memories.name
    ]


def _check(prompt: Prompt[ToolGiven, Any], given: ToolGiven) -> Callable[[AIMessage], None]:
    """Reject calls that do not hold, and a call that is described in prose: nothing would be remembered."""

    def check(turn: AIMessage) -> None:
        calls = calls_of(prompt, turn)
        described = [name for name in ("insert_memory", "update_memory") if name in turn.text]
        if described and not turn.tool_calls:
            raise ValueError(f"You wrote about {described[0]} but did not call it: call the tool itself.")
        prompt.verify(given, prompt.answer(calls=calls))

    return check


def _rationale(turn: AIMessage) -> str:
    """Say what the agent did; where it called no tool, in its own words, so that a person can judge it."""
    if turn.tool_calls:
        return turn.text or f"The agent called {len(turn.tool_calls)} tools."
    return f"The agent called no tool. It wrote: {turn.text}"


def _decided(calls: Calls, similar: Sequence[Similar]) -> Update:
    """Return a decision for each call, and what it has written down or the words that say what to write."""
    updates: dict[bool, Literal["update", "replace"]] = {False: "update", True: "replace"}
    decisions = [
        Decision(
            candidate=number,
            action=updates[isinstance(call, ToolCall)] if call.name == "update_memory" else "insert",
            touched=[judged(number, similar[call.index])] if call.name == "update_memory" else [],
            rationale=f"The agent called {call.name}.",
        )
        for number, call in enumerate(calls)
    ]
    undated = {"since": "", "until": ""}
    written_down = [call.model_dump(exclude={"name", "index"}) | undated for call in calls]
    return {"decisions": decisions, "candidates": written_down}


@counted
async def compose_quoted(state: State, runtime: MemoryRuntime) -> Update:
    """Write down what the quoted words of each call say (the paper's insert and update functions)."""
    if runtime.context.compose_first:
        return {}
    who = runtime.context.memory_agent
    found = await gather(*(_composed(state, each["quote"], who) for each in state["candidates"]))
    pairs = [
        (candidate, decision)
        for candidates, decision in zip(found, state["decisions"], strict=True)
        for candidate in candidates
    ]
    return {
        "candidates": [candidate for candidate, _ in pairs],
        "decisions": [{**decision, "candidate": number} for number, (_, decision) in enumerate(pairs)],
    }


async def _composed(state: State, quote: str, who: str) -> list[dict[str, Any]]:
    before = [*state["preceding"], f"user: {state['message']}"]
    return await composed_of(Composing(message=quote, preceding=before, time=state["time"]), who)
