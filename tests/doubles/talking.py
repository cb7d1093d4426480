"""What is said to a server's chat, and what it remembered of it."""

from typing import Any

from langgraph_sdk.client import LangGraphClient

RULES: dict[str, Any] = {"chatbot": "rules", "memory_agent": "rules", "debounce": 0}


def said(text: str) -> Any:
    return [{"role": "user", "content": text}]


async def say(client: LangGraphClient, text: str, **context: Any) -> tuple[str, list[str]]:
    """Say something on a new thread; return the thread and the pieces of the reply."""
    thread = await client.threads.create()
    pieces = []
    async for part in client.runs.stream(
        thread["thread_id"],
        "chatbot",
        input={"messages": said(text)},
        context={**RULES, **context},
        stream_mode="messages-tuple",
    ):
        assert part.event != "error", part.data
        if part.event == "messages":
            pieces.append(part.data[0]["content"])
    return thread["thread_id"], [piece for piece in pieces if piece]


async def remembered(client: LangGraphClient, user: str) -> list[str]:
    found = await client.store.search_items(["users", user, "memories"], limit=100)
    return [item["value"]["content"] for item in found["items"]]
