"""Ask a typed question of whoever is to answer it, and accept no answer that does not hold.

An answer in JSON is constrained by its schema, read strictly and checked against what was given; what is
wrong with it is shown to the model, which is asked again, with another seed and more warmth. After
`REPAIRS` of these, `BadAnswer` carries the last reply. An answer in free text streams as it is written.
Where an attempt at one fails midway, the next is a message of its own (another id), and
`Answered.message_id` says which one holds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel

from mneme.errors import BadAnswer
from models.attempts import SEED, Asking, Tally, child, complete, repaired, traced
from models.gate import Lane
from models.replies import Unusable, read, without_thought
from models.responders import Wish, Words, auto_notice, forget, resolve
from models.schema import flat
from models.tool_calls import call_tools
from models.voices import Voice, line_of, script
from prompts.prompt import Prompt

__all__ = ["SEED", "Answered", "Lane", "ask", "auto_notice", "call_tools", "forget", "resolve", "script"]

G = TypeVar("G", bound=BaseModel)
A = TypeVar("A", bound=BaseModel | str)

JSON_TOKENS = 1024
TEXT_TOKENS = 4096


@dataclass(frozen=True)
class Answered(Generic[A]):
    """An answer, who gave it, and what it cost."""

    value: A
    responder: str
    attempts: int
    prompt_tokens: int = 0
    reply_tokens: int = 0
    message_id: str = ""


async def ask(  # noqa: PLR0913  (the interface of every node)
    prompt: Prompt[G, A],
    given: G,
    who: str,
    *,
    lane: Lane = "user",
    history: Sequence[BaseMessage] = (),
    config: RunnableConfig | None = None,
) -> Answered[A]:
    """Return the answer to a prompt by `auto`, `rules`, `scripted:…`, `ollama:…` or `<provider>:…`.

    Text that a person waits for streams to the graph's `messages`; nothing else does.
    Raises `BadAnswer` when every repair failed, `ModelUnavailable`, `PromptTooLong`, `BadInput`.
    """
    tally = Tally(prompt.name, await resolve(who))

    async def answer(run: RunnableConfig) -> A:
        if not tally.is_prepared:
            return await repaired(_asking(prompt, given, history, lane), tally, run)
        tally.attempts = 1
        value = _prepared(prompt, given, tally)
        if isinstance(value, str):
            await _speak(value, tally, child(run, tally, lane == "user"))
        return value

    value = await traced(tally, given, answer, config)
    cost = (tally.attempts, tally.prompt_tokens, tally.reply_tokens, tally.message_id)
    return Answered(value, tally.responder, *cost)


def _prepared(prompt: Prompt[G, A], given: G, tally: Tally) -> A:
    """Return the rule's or the script's answer, which is checked like any other."""
    answer = prompt.rule(given) if tally.responder == "rules" else _scripted(prompt, tally.responder)
    try:
        return prompt.verify(given, answer)
    except ValueError as error:
        wrong = f"{tally.responder} answered {prompt.name} wrongly: {error}"
        raise BadAnswer(wrong, str(answer)) from error


async def _speak(text: str, tally: Tally, config: RunnableConfig) -> None:
    """Say a text word by word, as a model would, for whoever listens to the graph's messages."""
    message = await Voice(text=text).ainvoke([], config)
    tally.message_id = message.id or ""


def _scripted(prompt: Prompt[G, A], responder: str) -> A:
    line = line_of(responder, prompt.name)
    if isinstance(line, str) and issubclass(prompt.answer, BaseModel):
        return _read_line(line, prompt.answer)
    if not isinstance(line, prompt.answer):
        raise BadAnswer(f"{responder} has no {prompt.answer.__name__} for {prompt.name}.", str(line))
    return line


def _read_line(line: str, answer: type[A]) -> A:
    try:
        return cast(A, read(line, cast(type[BaseModel], answer)))
    except Unusable as unusable:
        raise BadAnswer(f"The script's line cannot be used: {unusable}", line) from unusable


def _asking(prompt: Prompt[G, A], given: G, history: Sequence[BaseMessage], lane: Lane) -> Asking[A]:
    system, user = prompt.wording(given)
    free = prompt.answer is str
    wish = (
        Wish(TEXT_TOKENS, 0.7, SEED, spoken=True)
        if free
        else Wish(JSON_TOKENS, 0.0, SEED, schema=flat(cast(type[BaseModel], prompt.answer)))
    )
    return Asking(
        Words(system, history, [HumanMessage(user)]),
        wish,
        lambda message: _accepted(prompt, given, message),
        lane,
        free and lane == "user",
        "Answer again." if free else "Reply again, with the corrected JSON object only.",
    )


def _accepted(prompt: Prompt[G, A], given: G, message: AIMessage) -> A:
    """Return the answer that a reply holds; raise `Unusable` with the reason it holds none."""
    raw = complete(message)
    if prompt.answer is str:
        value: Any = without_thought(raw)
    else:
        value = read(raw, cast(type[BaseModel], prompt.answer))
    if value == "":
        raise Unusable("The reply is empty.", raw)
    try:
        return prompt.verify(given, value)
    except ValueError as error:
        raise Unusable(str(error), raw) from error
