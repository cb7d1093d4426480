"""The chatbot (§2.2, Figure 1): recall, hand the message to the memory agent, reply, wake the agent.

The reply never waits for memory: handing over is one small write, and the memory agent works in the
background, after the reply. Only the user's messages are handed over (§2.2 assumes that the assistant's words
repeat what the user said), so neither recalled memories nor replies are stored back.
"""

from typing import Annotated, Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, trim_messages
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.graph.message import add_messages
from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from mneme.errors import BadInput
from models.asking import ask
from nodes.background import wake_memory_agent
from nodes.context import ChatContext, inbox_of, memories_of, user_of
from nodes.memory_agent import Message, pending_of
from prompts.chatbot import Turn, reply

PRECEDING = 6
"""How many earlier messages the memory agent sees, to resolve what a message refers to."""


class Conversation(TypedDict):
    """The conversation so far; the last message is the user's."""

    messages: Annotated[list[AnyMessage], add_messages]


class State(Conversation, total=False):
    """The conversation and what was recalled for its last message."""

    recalled: list[str]


Update = dict[str, Any]
Context = Runtime[ChatContext]


async def recall(state: State, runtime: Context) -> Update:
    """Recall the memories most similar to the user's message."""
    message = _last_words(state)
    must_fit(message, runtime.context.window)
    if runtime.context.recall == 0:
        return {"recalled": []}
    found = await memories_of(runtime).similar(message, k=runtime.context.recall, mode=runtime.context.search)
    return {"recalled": [each.memory.content for each in found]}


async def respond(state: State, runtime: Context) -> Update:
    """Answer at once, token by token, from the latest turns and what was recalled."""
    turn = Turn(message=_last_words(state), memories=state["recalled"])
    history = _window(state["messages"], runtime.context.window)[:-1]
    answered = await ask(reply, turn, runtime.context.chatbot, history=history)
    return {"messages": [AIMessage(answered.value, id=answered.message_id)]}


async def hand_over(state: State, runtime: Context) -> Update:
    """Put the user's message into the inbox, where it is safe whatever becomes of the reply."""
    messages = state["messages"]
    before = messages[-1 - PRECEDING : -1]
    message = Message(
        message=messages[-1].text,
        message_id=str(messages[-1].id),
        preceding=[f"{_speaker(message)}: {message.text}" for message in before],
        thread=(runtime.execution_info and runtime.execution_info.thread_id) or "",
    )
    await inbox_of(runtime).add(user_of(runtime), pending_of(message))
    return {}


async def wake(state: State, runtime: Context) -> Update:
    """Wake the memory agent and return; the reply has not waited for it."""
    await wake_memory_agent(runtime)
    return {}


def _last_words(state: State) -> str:
    message = state["messages"][-1] if state["messages"] else None
    if not isinstance(message, HumanMessage) or not message.text.strip():
        raise BadInput("There is no message to answer.", "Send a user message with some text in it.")
    return message.text


def must_fit(message: str, window: int) -> None:
    """Raise BadInput for a message that is longer than the window."""
    tokens = count_tokens_approximately([HumanMessage(message)])
    if tokens > window:
        raise BadInput(
            f"The message has about {tokens} tokens; the window holds {window}.",
            "Send it in parts.",
        )


def _window(messages: list[AnyMessage], tokens: int) -> list[BaseMessage]:
    """Keep the latest whole turns that fit in the window, the system's words among them (§2.2)."""
    return trim_messages(
        messages,
        max_tokens=tokens,
        token_counter=count_tokens_approximately,
        strategy="last",
        start_on="human",
        include_system=True,
    )


def _speaker(message: BaseMessage) -> str:
    return "user" if isinstance(message, HumanMessage) else "assistant"
