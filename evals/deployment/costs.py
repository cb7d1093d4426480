"""What one message of a chat costs: questions and tokens, our own seconds of processor, bytes that stay.

The same chat is held twice, each time with the memory agent after each turn: with a server that speaks
Ollama's protocol and is answered by rules, which counts what a model is asked and reads; and with rules in
the process itself, which times our own work. Sizes are the growth between two moments, so that what is there
from the start counts for nothing; SQLite's own log is emptied before.
"""

import asyncio
import random
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_origin

from langchain_core.messages import HumanMessage

from mneme.core.settings import settings
from mneme.evals.chat.scripted_answers import is_chat, prompt_tokens
from mneme.evals.engine.corpus import sentences
from mneme.evals.measuring import in_environment
from mneme.evals.report import Row
from mneme.evals.stand_in import Answer, Brain, Json, Reply, StandIn
from mneme.graphs import chatbot, remember
from mneme.models.embedding.embedders import Embedder
from mneme.nodes.chat.context import ChatContext
from mneme.prompts.chat.memory_agent.comparing import compare_memories
from mneme.prompts.chat.memory_agent.forgetting import choose_forgotten
from mneme.prompts.chat.memory_agent.reading import read_message
from mneme.prompts.chat.memory_agent.rewriting import rewrite_memory
from mneme.prompts.prompt import FORM, Prompt
from mneme.rules import registry
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.journal import JOURNAL
from mneme.stores.ledger.ledger import open_ledger
from mneme.stores.users.memories import UserMemories

LEDGER, CHECKPOINTS = "ledger", "checkpoints.sqlite"
ADDRESS = "MNEME_OLLAMA_URL"
KINDS = ("ledger", "ledger's log", "checkpoints")


def _by_rules(*prompts: Prompt[Any, Any]) -> Brain:
    """Make a brain that recognises prompts by their wording and answers by their rules.

    So a whole workflow runs over the wire, with valid answers, and without a language model. What was
    given is read back from the wording; lists and numbers are recognised as the prompt rendered them.
    """
    known = {
        system: prompt
        for prompt in prompts
        for system in (prompt.system, prompt.system_text(with_examples=True))
    }

    def answer(body: Json) -> Answer:
        system, user = (_said(body, role) for role in ("system", "user"))
        prompt = known[system]
        ruled = registry.answer(prompt, _given(prompt, user))
        return ruled if isinstance(ruled, str) else Reply(ruled.model_dump_json())

    return answer


def _said(body: Json, role: str) -> str:
    """Return what the last message of a role says."""
    said = [str(message["content"]) for message in body["messages"] if message["role"] == role]
    return said[-1] if said else ""


def _given(prompt: Prompt[Any, Any], user: str) -> Any:
    """Read what was given out of the wording that it was put into."""
    parts = re.split(r"\$\{?(\w+)\}?", prompt.user)
    groups = [f"(?P<{part}>.*?)" if at % 2 else re.escape(part) for at, part in enumerate(parts)]
    found = re.fullmatch("".join(groups), user.rpartition(f"\n\n{FORM}")[0] or user, re.DOTALL)
    if found is None:
        raise ValueError(f"The wording of {prompt.name} is not recognised in: {user}")
    fields = prompt.given.model_fields
    values = {name: _unrendered(text, fields[name].annotation) for name, text in found.groupdict().items()}
    return prompt.given.model_validate(values)


def _unrendered(text: str, kind: Any) -> Any:
    """Undo how a prompt renders a list and an absent value."""
    if get_origin(kind) in {list, tuple}:
        return re.split(r"(?:\A|\n)\[\d+\] ", text)[1:]
    return "" if text == "(none)" else text


KNOWN = _by_rules(read_message, choose_forgotten, compare_memories, rewrite_memory)


async def cost(messages: int, embedder: Embedder) -> Row:
    """Chat and remember so many messages, half of which only warm up; return what one of the others costs."""
    with _protocol() as double:
        asked = await _chat(messages, embedder, f"ollama:{settings().model}", double)
    ruled = await _chat(messages, embedder, "rules", None)
    return {**ruled, **{name: asked[name] for name in ("calls", "prompt_tokens")}}


@contextmanager
def _protocol() -> Iterator[StandIn]:
    """Run the server, and make it the Ollama of this process's settings."""
    with StandIn(brain=_answer) as double, in_environment({ADDRESS: double.url}):
        yield double


def _answer(body: Json) -> Answer:
    return "I see." if is_chat(body) else KNOWN(body)


async def _chat(messages: int, embedder: Embedder, who: str, double: StandIn | None) -> Row:
    with TemporaryDirectory(prefix="mneme-cost-") as name:
        folder, saved = Path(name), Path(name) / CHECKPOINTS
        ledger = await open_ledger(str(folder / LEDGER), embedder)
        async with open_checkpointer(str(saved), settings().checkpoint_turns) as saver:
            given: dict[str, Any] = {"checkpointer": saver, "store": LedgerStore(ledger)}
            graphs = chatbot.builder.compile(**given), remember.builder.compile(**given)
            said = sentences(messages, random.Random(0))  # noqa: S311 (no secrets)
            await _say(said[: messages // 2], graphs, who)
            before, seen, cpu, began = (
                await _sizes(folder, saver),
                _calls(double),
                time.process_time(),
                time.time(),
            )
            await _say(said[messages // 2 :], graphs, who)
            count = messages - messages // 2
            seconds, cpu = time.time() - began, time.process_time() - cpu
            after, calls = await _sizes(folder, saver), _calls(double)[len(seen) :]
        kept = await UserMemories(ledger, "ann").count()
        await ledger.close()
    bytes_each = {kind: (after[kind] - before[kind]) / count for kind in KINDS}
    tokens = sum(prompt_tokens(request.body) for request in calls)
    return {
        "messages": messages,
        "memories": kept,
        "seconds": seconds / count,
        "cpu_seconds": cpu / count,
        "bytes": bytes_each,
        "calls": len(calls) / count,
        "prompt_tokens": tokens / count,
    }


async def _say(said: list[str], graphs: tuple[Any, Any], who: str) -> None:
    """Say something, get a reply, let it be remembered; one after the other."""
    context = ChatContext(user="ann", chatbot=who, memory_agent=who)
    for text in said:
        for graph, given, thread in zip(
            graphs, ({"messages": [HumanMessage(text)]}, {}), ("chat", "memory"), strict=True
        ):
            config: Any = {"configurable": {"thread_id": thread}, "recursion_limit": 100}
            await graph.ainvoke(given, config, context=context)


def _calls(double: StandIn | None) -> list[Any]:
    return list(double.chats) if double else []


async def _sizes(folder: Path, saver: Any) -> dict[str, int]:
    """Return the bytes of all files by what they are for; of sparse ones, what the disk holds."""
    await saver.conn.execute_fetchall("PRAGMA wal_checkpoint(TRUNCATE)")
    return await asyncio.to_thread(_sizes_now, folder)


def _sizes_now(folder: Path) -> dict[str, int]:
    sizes = dict.fromkeys(KINDS, 0)
    for path in (each for each in folder.rglob("*") if each.is_file()):
        is_log = path.name == JOURNAL
        kind = "ledger's log" if is_log else "ledger" if LEDGER in path.parts else "checkpoints"
        sizes[kind] += min(path.stat().st_blocks * 512, path.stat().st_size)
    return sizes
