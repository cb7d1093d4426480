"""Ask a typed question of a model or of rules, and accept no answer that fails its checks.

An answer in JSON is constrained by its schema, read strictly and checked against what was given; what is
wrong with it is shown to the model, which is asked again, with another seed and a higher temperature. After
`REPAIRS` of these, `BadAnswer` carries the last reply. An answer in free text streams as it is written.
Where an attempt at one fails midway, the next is a message of its own (another id), and
`Answered.message_id` says which one holds.
"""

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel

from mneme.core.errors import BadAnswer
from mneme.models.asking.attempts import (
    SEED,
    AskRecord,
    Question,
    as_one_run,
    ask_with_repairs,
    attempt_config,
    complete_text,
    cut_off,
    was_cut,
)
from mneme.models.asking.budget import tokens
from mneme.models.asking.gate import Lane
from mneme.models.asking.lazily import by_rules
from mneme.models.asking.replies import Copied, Doubtful, Unusable, copied, read, without_thought
from mneme.models.asking.responders import (
    CallOptions,
    ModelRequest,
    as_drawn,
    auto_notice,
    clear_endpoints,
    prepared,
    resolve,
)
from mneme.models.asking.schema import bounded, flat, room_for
from mneme.models.asking.streaming import countable
from mneme.models.asking.tool_calls import call_tools
from mneme.models.asking.wording import in_own_words
from mneme.prompts.prompt import Prompt

__all__ = [
    "SEED",
    "Answered",
    "Lane",
    "ask",
    "auto_notice",
    "call_tools",
    "clear_endpoints",
    "resolve",
]

G = TypeVar("G", bound=BaseModel)
A = TypeVar("A", bound=BaseModel | str)

JSON_TOKENS = 8192
"""Tokens of a JSON reply at most, however much its type allows."""
KEPT_FREE = 2048
"""Tokens of the context that a prompt leaves at least for a JSON reply that may be long."""
TEXT_TOKENS = 4096
"""Tokens of a reply in free text."""


@dataclass(kw_only=True)
class Answered(AskRecord, Generic[A]):
    """An answer, who gave it, what it cost, and the doubt that was left when it was given again."""

    value: A


async def ask(  # noqa: PLR0913  (the interface of every node)
    prompt: Prompt[G, A],
    given: G,
    who: str,
    *,
    lane: Lane = "user",
    history: Sequence[BaseMessage] = (),
    config: RunnableConfig | None = None,
) -> Answered[A]:
    """Return the answer to a prompt by `auto`, `rules`, `ollama:…` or `<provider>:…`.

    Text that a person waits for streams to the graph's `messages`; nothing else does.
    Raises `BadAnswer` when every repair failed, `ModelUnavailable`, `PromptTooLong`, `BadInput`.
    """
    record = AskRecord(prompt.name, await resolve(who))
    prepare = prepared.get(record.responder)
    async with as_one_run(record, given, config) as run:
        if record.responder != "rules" and prepare is None:
            own = await in_own_words(prompt)
            record.value = await ask_with_repairs(_question(own, given, history, lane), record, run)
            return Answered(**vars(record))
        # What a rule says, or what was prepared, is checked and counted like any other answer.
        record.attempts = 1
        value = cast(A, prepare(prompt.name, prompt.answer)) if prepare else await by_rules(prompt, given)
        raw = value.model_dump_json() if isinstance(value, BaseModel) else value
        record.value, record.reply_tokens = value, tokens(raw)
        record.prompt_tokens = tokens("\n".join(prompt.wording(given)))
        try:
            prompt.verify(given, value)
        except ValueError as error:
            raise BadAnswer(f"{record.responder} answered {prompt.name} wrongly: {error}", raw) from error
        if isinstance(value, str):
            message = await FixedReply(text=value).ainvoke([], attempt_config(run, record, lane == "user"))
            record.message_id = message.id or ""
    return Answered(**vars(record))


class FixedReply(BaseChatModel):
    """A chat model whose reply is a given text, word by word: what rules say streams like any other reply."""

    text: str

    @property
    def _llm_type(self) -> str:
        return "fixed_reply"

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.text))])

    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        for word in re.findall(r"\s*\S+\s*$|\s*\S+|\s+", self.text):
            yield ChatGenerationChunk(message=AIMessageChunk(content=word))


def _question(prompt: Prompt[G, A], given: G, history: Sequence[BaseMessage], lane: Lane) -> Question[A]:
    system, user = prompt.wording(given)
    free, message = prompt.answer is str, HumanMessage(user)
    if prompt.picture:  # which a model sees before it reads the question
        url = f"data:image/png;base64,{getattr(given, prompt.picture)}"
        picture = {"type": "image_url", "image_url": {"url": url}}
        message = HumanMessage([picture, {"type": "text", "text": user}])
    options = CallOptions(TEXT_TOKENS, 0.7, SEED, free_text=True)
    if not free:  # its schema, narrowed by what was asked, and room for it
        schema = bounded(flat(cast(type[BaseModel], prompt.answer)), prompt.bounds_of(given))
        room = min(room_for(schema), JSON_TOKENS)
        options = CallOptions(room, 0.0, SEED, schema=schema, kept_free=min(room, KEPT_FREE))
    return Question(
        ModelRequest(system, history, [message]),
        as_drawn(options),
        lambda message: _accepted(prompt, given, prompt.example_texts, user, message),
        lane,
        free and lane == "user",
        "Answer again." if free else "Reply again, with the corrected JSON object only.",
        prompt.system_text(with_examples=False),
        lambda message: _accepted(prompt, given, (), user, message),  # what it was not shown it did not copy
        prompt.repairs,
    )


def _accepted(prompt: Prompt[G, A], given: G, shown: Sequence[str], asked: str, message: AIMessage) -> A:
    """Return the answer that a reply holds; raise `Unusable` with the reason it holds none."""
    raw, value = str(message.text), cast(Any, None)
    if prompt.answer is not str:
        value = _object(prompt, shown, asked, message)
    elif not (value := without_thought(complete_text(message))):
        raise Unusable("The reply is empty.", raw)
    try:
        prompt.verify(given, value)
    except ValueError as error:
        raise Unusable(str(error), raw) from error
    try:
        for doubt in prompt.doubts:
            doubt(given, value)
    except ValueError as error:
        raise Doubtful(str(error), raw, value) from error
    return cast(A, value)


def _object(prompt: Prompt[G, A], shown: Sequence[str], asked: str, message: AIMessage) -> BaseModel:
    """Read a reply in JSON that copies none of the examples that the model was shown.

    One that is complete may have reached its limit of tokens after its end.
    """
    raw, kind = str(message.text), cast(type[BaseModel], prompt.answer)
    try:
        value = read(raw, kind)
    except Unusable as unusable:
        raise (cut_off(raw, countable(flat(kind))) if was_cut(message) else unusable) from unusable
    if sentence := copied(shown, asked, raw):
        raise Copied(f"The reply repeats the example: {sentence!r}.", raw)
    return value
