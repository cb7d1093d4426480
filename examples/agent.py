"""An agent that remembers. Run it twice: by a script, or with `--model ollama:llama3.1:8b`."""

import argparse
import asyncio
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage

import mneme

SAID = ("I live in Oslo and have a dog called Max.", "Where do I live?")
SEARCH = {"name": "search_memories", "args": {"query": "Where does the user live?"}, "id": "1"}
SCRIPT = (AIMessage("Noted."), AIMessage("", tool_calls=[SEARCH]), AIMessage("See what I found."))


class Scripted(GenericFakeChatModel):
    """A model that says what the script has, whatever it is asked."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> BaseChatModel:  # type: ignore[override]
        return self


async def main(user: str, model: str | BaseChatModel) -> None:
    memory = mneme.MemoryMiddleware(user, wait=60)  # a short program waits for what is remembered
    agent = create_agent(model, mneme.tools(user), system_prompt="Be brief.", middleware=[memory])
    for said in SAID:  # each is a conversation of its own
        result = await agent.ainvoke({"messages": [{"role": "user", "content": said}]})
        for message in result["messages"]:
            message.pretty_print()


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--user", default="ann")
parser.add_argument("--model", default="", help="such as ollama:llama3.1:8b; none: the script")
given = parser.parse_args()
asyncio.run(main(given.user, given.model or Scripted(messages=iter(SCRIPT))))
