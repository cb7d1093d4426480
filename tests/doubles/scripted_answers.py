"""Valid answers to every question of the chat and its memory agents, for the double of Ollama.

They are fixed, so that a run measures what is around the model: of the similar memories, the one that
names the old breed is in conflict, and the agents with tools call one tool once, then answer.
"""

import re
from collections.abc import Callable

from mneme.evals.chat.latency import MEMORIES, MESSAGE
from mneme.prompts.chat.chatbot import reply
from mneme.prompts.chat.memory_agent.comparing import compare_memories
from mneme.prompts.chat.memory_agent.reading import read_message
from mneme.prompts.chat.memory_agent.rewriting import rewrite_memory
from mneme.prompts.chat.paper_versions import check_conflict, compose_memories, route_message, route_upsert
from tests.doubles.ollama_streams import Answer, Reply
from tests.doubles.stand_in import Json

FACT = "Max is a Labrador mix."
OLD = "golden retriever"
SPOKEN = "Noted: Max is a Labrador mix, and he still loves playing fetch."


def answer(body: Json) -> Answer:
    """Answer a chat request as a model would that never errs."""
    if body.get("tools"):
        return _with_tools(body)
    return _ANSWERS[str(body["messages"][0]["content"])](str(body["messages"][-1]["content"]))


def _between(tag: str, text: str) -> str:
    found = re.search(rf"<{tag}[^>]*>\n?(.*?)\n?</{tag}>", text, re.DOTALL)
    return found[1] if found else ""


def _composed(user: str) -> Json:
    memory = {
        "content": FACT,
        "quote": _between("message", user),
        "kind": "semantic",
        "entities": ["Max"],
        "relations": ["Max | is a | Labrador mix"],
    }
    return {"memories": [memory]}


def _read(user: str) -> Json:
    (memory,) = _composed(user)["memories"]
    read = {**memory, "since": "", "until": "", "unclear": ""}
    return {"rationale": "It corrects a fact.", "route": "store", "memories": [read]}


def _compared(user: str) -> Json:
    """Name the memory of the old breed, with its new text."""
    memories = re.findall(r"^\[(\d+)\] (.*)$", _between("memories", user), re.MULTILINE)
    return {
        "look": "",
        "judgements": [_judged(int(number), memory) for number, memory in memories if OLD in memory],
    }


def _judged(number: int, memory: str) -> Json:
    return {
        "fact": 0,
        "memory": number,
        "reason": "By the breed of Max.",
        "relation": "correction",
        "outdated": OLD,
        "updated": memory.replace(f"a {OLD}", "a Labrador mix"),
    }


def _checked(user: str) -> Json:
    if OLD in _between("memory", user):
        return {"rationale": "Max cannot be both breeds.", "relation": "conflict", "outdated": OLD}
    return {"rationale": "It says nothing about the breed.", "relation": "unrelated", "outdated": ""}


def _rewritten(user: str) -> Json:
    memory = _between("memory", user).replace(f"a {OLD}", "a Labrador mix")
    return {"content": f"{memory} His breed was corrected.", "entities": ["Max"], "relations": []}


def _upserted(user: str) -> Json:
    place = re.search(rf"^\[(\d+)\] .*{OLD}", user, re.MULTILINE)
    index = int(place[1]) if place else -1
    route = "update" if place else "insert"
    return {"rationale": "It gives the same dog another breed.", "route": route, "index": index}


def _with_tools(body: Json) -> Reply:
    """Update the memory that names the old breed, by the tool that can; then speak."""
    if body["messages"][-1]["role"] == "tool":
        return Reply(SPOKEN)
    function = body["tools"][-1]["function"]
    wanted = function["parameters"]["properties"]
    shown = "\n".join(str(message["content"]) for message in body["messages"])
    place = re.search(rf"^\[(\S+)\]:? .*{OLD}", shown, re.MULTILINE)
    given = {
        "content": MEMORIES[0].replace(f"a {OLD}", "a Labrador mix"),
        "quote": MESSAGE,
        "context": "The user corrected it.",
        "index": int(place[1]) if place and place[1].isdigit() else -1,
        "memory_id": place[1] if place else "",
    }
    arguments = {name: given[name] for name in wanted}
    return Reply(tool_calls=({"name": function["name"], "arguments": arguments},))


_ANSWERS: dict[str, Callable[[str], Answer]] = {
    read_message.system_text(): _read,
    compare_memories.system_text(): _compared,
    route_message.system_text(): lambda user: {"rationale": "It corrects a fact.", "route": "store"},
    compose_memories.system_text(): _composed,
    check_conflict.system_text(): _checked,
    rewrite_memory.system_text(): _rewritten,
    route_upsert.system_text(): _upserted,
    reply.system_text(): lambda user: SPOKEN,
}
