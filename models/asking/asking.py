"""Ask a typed question of a model or of rules, and accept no answer that fails its checks.

An answer in JSON is constrained by its schema, read strictly and checked against what was given. An answer in
free text streams as it is written.

Each repair has a better chance than the attempt before: the model is shown what was wrong if that can help,
and asked with other options. After `REPAIRS` repairs, `BadAnswer` carries the last reply.
"""

import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from random import randrange
from typing import Any, Generic, TypeVar, cast

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import (
    ensure_config,
    get_async_callback_manager_for_config,
    merge_configs,
    patch_config,
)
from langchain_core.tracers.base import BaseTracer
from pydantic import BaseModel

from mneme.core.errors import BadAnswer, PromptTooLong
from mneme.models.asking.counting import count, tokens
from mneme.models.asking.gate import Lane
from mneme.models.asking.lazily import by_rules
from mneme.models.asking.replies import (
    CopiedExample,
    CutShort,
    Doubtful,
    Endless,
    Unusable,
    copied,
    read,
    without_thought,
)
from mneme.models.asking.responders import (
    CallOptions,
    ModelRequest,
    as_drawn,
    auto_notice,
    clear_endpoints,
    prepared,
    resolve,
    say,
)
from mneme.models.asking.schema import flat, narrowed_schema, room_for
from mneme.models.asking.streaming import countable, repeats
from mneme.models.asking.wording import in_own_words
from mneme.prompts.prompt import REPAIRS, Prompt

__all__ = [
    "SEED",
    "Answered",
    "Lane",
    "ask",
    "auto_notice",
    "clear_endpoints",
    "resolve",
]

G = TypeVar("G", bound=BaseModel)
A = TypeVar("A", bound=BaseModel | str)
T = TypeVar("T")

JSON_TOKENS = 8192
"""Maximum tokens of a JSON reply, even if its type allows more."""
MIN_REPLY_ROOM = 2048
"""Minimum tokens of the context that a prompt leaves for a JSON reply that may be long."""
TEXT_TOKENS = 4096
"""Maximum tokens of a reply in free text."""
SEED = 7
ROOM_FACTOR = 2
"""Factor by which the next reply may be longer after one was cut off."""
TEMPERATURE_STEP = 0.3
"""Increase of the temperature at each repair, so that the same reply does not come again."""
REPEAT_PENALTY = 1.1
"""Repeat penalty after a reply in circles: a small model repeats itself again at any temperature."""
MAX_RAW_CHARS = 2000
"""Maximum characters of a wrong reply that the model is shown again."""
INTERNAL = RunnableConfig(tags=["nostream", "langsmith:nostream"])  # LangGraph 1.2 reads only the first


@dataclass
class Answered(Generic[T]):
    """A question to one responder: its answer (once there is one), its cost, and the remaining doubt."""

    name: str
    responder: str
    attempts: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0
    message_id: str = ""
    doubt: str = ""
    value: T = cast(Any, None)  # noqa: RUF009

    def add(self, message: AIMessage) -> None:
        """Count the cost of a reply."""
        used = message.usage_metadata
        self.prompt_tokens += used["input_tokens"] if used else 0
        self.reply_tokens += used["output_tokens"] if used else 0
        self.message_id = message.id or ""  # the last attempt's: one that failed midway has another id


@dataclass(frozen=True)
class Question(Generic[T]):
    """A request to a model, its sampling options, and the check of its reply.

    `accept` returns the answer or raises `Unusable`; `shown` tells whether the reply streams to the chat;
    `again` ends the message that tells the model what was wrong. `bare` is the system text without worked
    examples, for a model that copies them, and `accept_bare` what makes a reply to it acceptable.
    """

    request: ModelRequest
    options: CallOptions
    accept: Callable[[AIMessage], T]
    lane: Lane
    shown: bool
    again: str
    bare: str = ""
    accept_bare: Callable[[AIMessage], T] | None = None
    repairs: int = REPAIRS


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

    Free text in the lane `user` streams to the graph's `messages`; nothing else does. Raises `BadAnswer` when
    every repair failed, `ModelUnavailable`, `PromptTooLong`, `BadInput`.
    """
    record = Answered[A](prompt.name, await resolve(who))
    prepare = prepared.get(record.responder)
    async with as_one_run(record, given, config) as run:
        if record.responder != "rules" and prepare is None:
            own = await in_own_words(prompt)
            record.value = await ask_with_repairs(_question(own, given, history, lane), record, run)
            return record
        # Answers of rules and prepared answers are checked and counted like any other.
        record.attempts = 1
        value = cast(A, prepare(prompt.name, prompt.answer)) if prepare else await by_rules(prompt, given)
        raw = value.model_dump_json() if isinstance(value, BaseModel) else value
        record.value, record.reply_tokens = value, tokens(raw)
        record.prompt_tokens = tokens("\n".join(prompt.wording(given)))
        try:
            prompt.verify(given, value)
        except ValueError as error:
            raise BadAnswer(f"{record.responder} answered {prompt.name} wrongly: {error}", raw) from error
        if isinstance(value, str):  # by a chat model: LangGraph streams the tokens of nothing else
            message = await FixedReply(text=value).ainvoke([], attempt_config(run, record, lane == "user"))
            record.message_id = message.id or ""
    return record


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
    if prompt.picture:  # first, so that the model sees it before the question
        url = f"data:image/png;base64,{getattr(given, prompt.picture)}"
        picture = {"type": "image_url", "image_url": {"url": url}}
        message = HumanMessage([picture, {"type": "text", "text": user}])
    options = CallOptions(TEXT_TOKENS, 0.7, SEED, free_text=True)
    if not free:  # its schema, narrowed by what was asked, and room for it
        schema = narrowed_schema(flat(cast(type[BaseModel], prompt.answer)), prompt.bounds_of(given))
        room = min(room_for(schema), JSON_TOKENS)
        # Few replies are as long as their schema allows: the prompt need not leave all of that free.
        options = CallOptions(room, 0.0, SEED, schema=schema, kept_free=min(room, MIN_REPLY_ROOM))
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
    """Return the answer in a reply; raise `Unusable` with the reason if it has none."""
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
    """Read a reply in JSON that copies none of the examples that the model was shown."""
    raw, kind = str(message.text), cast(type[BaseModel], prompt.answer)
    try:
        value = read(raw, kind)  # a complete object counts, even if the reply then ran into its limit
    except Unusable as unusable:
        raise (cut_off(raw, countable(flat(kind))) if was_cut(message) else unusable) from unusable
    if sentence := copied(shown, asked, raw):
        raise CopiedExample(f"The reply repeats the example: {sentence!r}.", raw)
    return value


async def ask_with_repairs(question: Question[T], record: Answered[T], run: RunnableConfig) -> T:
    """Return the first acceptable answer; after an unusable reply, ask again in a way that may help."""
    failure = Unusable("It was never asked.")
    doubted: Doubtful | None = None
    request, options = question.request, question.options
    for attempt in range(1, question.repairs + 2):
        record.attempts = attempt
        try:
            config = attempt_config(run, record, question.shown)
            message = await say(record.responder, request, options, question.lane, config)
            record.add(message)
            record.doubt = ""
            return question.accept(message)
        except Doubtful as doubtful:
            record.doubt = str(doubtful)
            if doubted:  # it was asked once more: what it says now stands
                return cast(T, doubtful.answer)
            failure = doubted = doubtful
        except Unusable as unusable:
            failure = unusable
        except PromptTooLong:
            if request is question.request:  # nothing was added that could be left out again
                raise
            request = question.request  # no room to show what was wrong
            continue
        if isinstance(failure, CopiedExample):  # the model copies examples: it is shown none from now on
            bare = replace(question.request, system=question.bare)
            question = replace(question, request=bare, accept=question.accept_bare or question.accept)
        request = _with_complaint(question, failure)
        options = _redrawn(question.options, options, failure, attempt)
    if doubted:  # usable, where every later attempt was not
        record.doubt = str(doubted)
        return cast(T, doubted.answer)
    raise BadAnswer(
        f"{record.responder} gave no usable answer to {record.name} in {record.attempts} attempts: {failure}",
        failure.raw,
        "Choose a stronger model for this role, or `rules`.",
    ) from failure


def _with_complaint(question: Question[T], failure: Unusable) -> ModelRequest:
    """Add to the request what was wrong with the reply, if seeing it can help."""
    if not failure.shown_back or not failure.raw.strip():
        return question.request
    fault = str(failure)
    ended = fault if fault.endswith((".", "!", "?")) else f"{fault}."  # a library's message has no full stop
    complaint = HumanMessage(" ".join(filter(None, [failure.verdict, ended, failure.again, question.again])))
    shown = AIMessage(failure.raw[:MAX_RAW_CHARS])
    return replace(question.request, task=[*question.request.task, shown, complaint])


def _redrawn(first: CallOptions, last: CallOptions, failure: Unusable, attempt: int) -> CallOptions:
    """Return options for another reply: another seed, a higher temperature, and more room after a cut."""
    more = ROOM_FACTOR if isinstance(failure, CutShort) else 1
    return replace(
        last,
        num_predict=last.num_predict * more,
        temperature=first.temperature + TEMPERATURE_STEP * attempt,
        # Random: a resumed run asks a failed question in the same words, and would fail for ever by one seed.
        seed=randrange(1 << 31),  # noqa: S311  (a sample, no secret)
        repeat_penalty=REPEAT_PENALTY if isinstance(failure, Endless) else last.repeat_penalty,
    )


def attempt_config(run: RunnableConfig, record: Answered[Any], shown: bool) -> RunnableConfig:
    """Return the config of one attempt; tokens that are not for the chat are not streamed."""
    mark = RunnableConfig(run_name=record.responder, metadata={"attempt": record.attempts})
    return merge_configs(run, mark) if shown else merge_configs(run, mark, INTERNAL)


def complete_text(message: AIMessage) -> str:
    """Return the text of a reply; raise `CutShort` or `Endless` if its limit of tokens cut it off."""
    raw = str(message.text)
    if was_cut(message):
        raise cut_off(raw)
    return raw


def was_cut(message: AIMessage) -> bool:
    """Return whether a reply reached its limit of tokens."""
    said = message.response_metadata
    return (said.get("done_reason") or said.get("finish_reason")) in {"length", "max_tokens"}


def cut_off(raw: str, counted: int | None = None) -> Unusable:
    """Return the error for a reply that was cut off at its limit of tokens, or that goes in circles."""
    if repeats(raw, counted):  # more room would be filled in the same way
        return Endless("The reply repeats itself.", raw)
    return CutShort("The reply was cut off at its limit of tokens.", raw)


@asynccontextmanager
async def as_one_run(
    record: Answered[Any], given: object, config: RunnableConfig | None
) -> AsyncIterator[RunnableConfig]:
    """Yield the config of one traced run: named after its prompt, tagged with the responder; then count it.

    In LangSmith its metadata has its attempts, and the root run's the numbers of repaired and refused ones.
    """
    who, failure = record.responder, cast(BaseException | None, None)
    marks = RunnableConfig(tags=[who], metadata={"responder": who})
    config = merge_configs(ensure_config(config), marks)
    callbacks = get_async_callback_manager_for_config(config)
    run = await callbacks.on_chain_start(None, given, name=record.name, run_id=config.pop("run_id", None))
    try:
        yield patch_config(config, callbacks=run.get_child())
    except BaseException as error:  # noqa: BLE001  (it is raised again after the run is counted)
        failure = error  # cancelled ones are counted, too: they cost tokens as well
    count(record.attempts, failure is None, record.prompt_tokens, record.reply_tokens)
    told = {"repaired": failure is None and record.attempts > 1, "refused": failure is not None}
    for runs in [each.run_map for each in run.handlers if isinstance(each, BaseTracer)]:
        if question := runs.get(str(run.run_id)):
            question.add_metadata({"attempts": record.attempts})
            if (root := runs.get(str(question.trace_id))) and root is not question:
                root.add_metadata({name: root.metadata.get(name, 0) + n for name, n in told.items()})
    if failure is not None:
        await run.on_chain_error(failure)
        raise failure
    await run.on_chain_end(record.value)
