"""`mneme share ask` and `mneme share grow`: agents that answer after, and add to, what all remember."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from rich.markup import escape

from agents.agent import AGENTS
from agents.reading import text_of
from mneme.sharing import SharingSession, Training, open_sharing
from mneme.show import console, print_json
from mneme.talk import show_notice

Context = dict[str, Any]
ASKING = ("memory_sharing", "retriever_training")
SHOWN = ("answer", "score", "stored", "why", "key", "pool", "shown", "retriever", "answered_by", "scored_by")


def agent_text(name_or_file: str) -> str:
    """Return what the context takes: a shipped agent's name, or the text of a user's own YAML file."""
    if name_or_file in AGENTS or Path(name_or_file).suffix not in {".yaml", ".yml"}:
        return name_or_file
    return text_of(Path(name_or_file))


async def ask(question: str, context: Context, thread: str, train: bool, as_json: bool) -> None:
    """Ask an agent; the answer is there before anything is scored, stored or learned."""
    await show_notice(context["answerer"], context["scorer"])
    async with open_sharing(context["team"], *ASKING) as session:
        config = await session.conversation(thread or uuid4().hex)
        await _finish_what_was_left(session, config, context)
        async for piece in _spoken(session, {"question": question}, config, context):
            if not as_json:
                console.print(escape(piece), end="", soft_wrap=True)
        _, values = await session.flows.left_at("memory_sharing", config)
        _print_outcome(values, as_json)
        if values["stored"] and train:
            await _learn(session, values["pool"], context, as_json)


async def _finish_what_was_left(session: SharingSession, config: RunnableConfig, context: Context) -> None:
    """Do the rest of a question that a killed process left on this thread."""
    left, _ = await session.flows.left_at("memory_sharing", config)
    if left:
        await session.flows.invoke("memory_sharing", None, config, context)


async def _spoken(
    session: SharingSession, given: Context, config: RunnableConfig, context: Context
) -> AsyncIterator[str]:
    """Yield the answer piece by piece; an attempt that broke off is followed by a new line and the next."""
    said = ""
    async for chunk, _ in session.flows.stream("memory_sharing", given, config, context, "messages"):
        part = chunk.model_dump() if isinstance(chunk, BaseMessage) else chunk
        if said not in {"", part["id"]}:
            yield "\n\n"
        said = part["id"]
        yield str(part["content"])


def _print_outcome(values: Context, as_json: bool) -> None:
    if as_json:
        print_json({name: values.get(name) for name in SHOWN})
        return
    scored = "not scored" if values["score"] is None else f"{values['score']} of 100 by {values['scored_by']}"
    console.print(f"\n\n[dim]{scored}: {escape(values['rationale'])}[/]", soft_wrap=True)
    examples = ", ".join(f"{each['agent']} {each['key'][:8]}" for each in values["shown"]) or "none"
    served = f"retriever {values['retriever']}" if values["retriever"] else "the embedder"
    console.print(f"[dim]examples, by {served}: {examples}[/]", soft_wrap=True)
    console.print(f"{escape(values['why'])} [dim]{values['pool']} {values['key'][:8]}[/]")


async def _learn(session: SharingSession, pool: str, context: Context, as_json: bool) -> None:
    """Let the retriever learn from what was stored; Ctrl-C leaves that to the next time."""
    training = Training(session, context)
    training.wake(pool)
    for told in await training.finish():
        if not as_json:
            console.print(f"[dim]training {escape(told)}[/]", soft_wrap=True)
