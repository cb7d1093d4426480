"""Version 1 of the memory agent (§3.1): one agent that calls `insert_memory` and `update_memory`.

The agent sees the message beside all similar memories and decides in one turn whether to remember at all,
and which memory to touch; what it inserts or updates is written by a question of its own, as in the paper.
With `retrieval` by the agent it is shown no memories (§2.1): it searches with a tool until it decides.
"""

from asyncio import gather
from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool

from mneme.models.asking.asking import resolve
from mneme.models.asking.lazily import by_rules
from mneme.models.asking.tool_calls import call_tools
from mneme.models.asking.wording import in_own_words
from mneme.nodes.chat.context import MemoryRuntime
from mneme.nodes.chat.memory_operations import Judged
from mneme.nodes.chat.message_lifecycle import Decision, State, incoming, similar_to
from mneme.nodes.chat.paper_versions import composed_of
from mneme.nodes.workflow import Update, counted
from mneme.prompts.chat.paper_versions import Composing, ToolChoice, ToolChoices, ToolGiven, choose_tools
from mneme.prompts.prompt import Prompt
from mneme.stores.users.memory import Memory, MemoryRecord

SEARCHES = 4
"""Turns in which the agent may search before it must decide."""


@tool("insert_memory")
def insert_words(quote: str) -> None:
    """Remember what the quoted words of the message say, as a new memory."""


@tool("update_memory")
def update_by_words(index: int, quote: str) -> None:
    """Bring memory number `index` up to date with what the quoted words of the message say."""


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
    prompt = await in_own_words(choose_tools)
    given = incoming(state, ToolGiven, memories=[each.memory.content for each in similar])
    messages: list[BaseMessage] = [HumanMessage(prompt.user_text(given))]
    turn = await turn_of(prompt, given, messages, who, searches=runtime.context.retrieval == "agent")
    for left in reversed(range(SEARCHES)):
        queries = [call for call in turn.tool_calls if call["name"] == search_memories.name]
        if not queries:
            break
        # Its writing calls are left out: it decides anew, and providers refuse a call without a result.
        messages.append(turn.model_copy(update={"tool_calls": queries}))
        for call in queries:
            found = await similar_to(call["args"]["query"], runtime)
            messages.append(ToolMessage(_numbered(found, similar), tool_call_id=call["id"]))
        given = given.model_copy(update={"memories": [each.memory.content for each in similar]})
        turn = await turn_of(prompt, given, messages, who, searches=left > 0)  # the last one must decide
    calls = calls_of(turn)
    rationale = f"The agent called no tool. It wrote: {turn.text}"
    if turn.tool_calls:
        rationale = turn.text or f"The agent called {len(turn.tool_calls)} tools."
    return {
        "route": "store" if calls else "discard",
        "rationale": rationale,
        "model": await resolve(who),
        "candidates": [Memory(content=each.quote, quote=each.quote) for each in calls],
        "decisions": [_decided(number, each, similar) for number, each in enumerate(calls)],
    }


def _numbered(found: Sequence[MemoryRecord], known: list[MemoryRecord]) -> str:
    """Add the memories found to those known, and list them by their numbers there."""
    numbers = {memory.key: number for number, memory in enumerate(known)}
    for memory in found:
        if memory.key not in numbers:
            numbers[memory.key] = len(known)
            known.append(memory)
    return "\n".join(f"[{numbers[each.key]}] {each.memory.content}" for each in found) or "(none)"


async def turn_of(  # noqa: PLR0913  (as `call_tools`)
    prompt: Prompt[ToolGiven, ToolChoices],
    given: ToolGiven,
    messages: Sequence[BaseMessage],
    who: str,
    *,
    searches: bool = False,
    config: RunnableConfig | None = None,
) -> AIMessage:
    """Return the agent's words and tool calls after these messages; the first is the question."""

    async def by_rule(_: Sequence[BaseMessage]) -> AIMessage:
        if searches and len(messages) == 1:
            query = tool_call(name=search_memories.name, args={"query": given.message}, id="rule-search")
            return AIMessage("", tool_calls=[query])
        made = [
            tool_call(name=call.name, args={"quote": call.quote, "index": call.index}, id=f"rule-{number}")
            for number, call in enumerate((await by_rules(prompt, given)).calls)
        ]
        return AIMessage("" if made else "There is nothing to remember.", tool_calls=made)

    def check(turn: AIMessage) -> None:
        """Reject calls that do not hold, and a call described in prose: nothing would be remembered."""
        described = [name for name in ("insert_memory", "update_memory") if name in turn.text]
        if described and not turn.tool_calls:
            raise ValueError(f"You wrote about {described[0]} but did not call it: call the tool itself.")
        prompt.verify(given, ToolChoices(calls=calls_of(turn)))

    return await call_tools(
        prompt.system_text(),
        messages,
        [*([search_memories] if searches else []), insert_words, update_by_words],
        who,
        rule=by_rule,
        check=check,
        name=prompt.name,
        config=config,
    )


def calls_of(turn: AIMessage) -> list[ToolChoice]:
    """Return the calls of a turn that write, as the question's answer has them."""
    return [
        ToolChoice(name=call["name"], **call["args"])
        for call in turn.tool_calls
        if call["name"] != search_memories.name
    ]


def _decided(number: int, call: ToolChoice, similar: Sequence[MemoryRecord]) -> Decision:
    why = f"The agent called {call.name}."
    if call.name == "insert_memory":
        return Decision(candidate=number, action="insert_memory", rationale=why)
    touched = [Judged(candidate=number, memory=similar[call.index])]
    return Decision(candidate=number, action="update_memory", touched=touched, rationale=why)


@counted
async def compose_quoted(state: State, runtime: MemoryRuntime) -> Update:
    """Write down what the quoted words of each call say (the paper's insert and update functions)."""
    before = [*state["preceding"], f"user: {state['message']}"]
    given = Composing(message="", preceding=before, time=state["time"])
    quoted = [given.model_copy(update={"message": each.quote}) for each in state["candidates"]]
    found = await gather(*(composed_of(each, runtime.context.memory_agent) for each in quoted))
    pairs = [
        (candidate, decision)
        for candidates, decision in zip(found, state["decisions"], strict=True)
        for candidate in candidates
    ]
    return {
        "candidates": [candidate for candidate, _ in pairs],
        "decisions": [each.model_copy(update={"candidate": n}) for n, (_, each) in enumerate(pairs)],
    }
