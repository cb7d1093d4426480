"""Ask a typed question of whoever is to answer it, and accept no answer that does not hold.

An answer in JSON is constrained by its schema, read strictly and checked against what was given; what is
wrong with it is shown to the model, which is asked again, with another seed and more warmth. After
`REPAIRS` of these, `BadAnswer` carries the last reply. An answer in free text streams as it is written.
Where an attempt at one fails midway, the next is a message of its own (another id), and
`Answered.message_id` says which one holds.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar, cast

from langchain_core.callbacks import AsyncCallbackManagerForChainRun
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.runnables.config import ensure_config, merge_configs
from langchain_core.tools import BaseTool
from langchain_core.tracers.base import BaseTracer
from pydantic import BaseModel, ValidationError

from mneme.errors import BadAnswer, PromptTooLong
from models.gate import Lane
from models.replies import CutShort, Endless, Leaked, Unusable, calls_in, read, without_thought
from models.responders import Model, Wish, Words, auto_notice, forget, model_of, resolve
from models.schema import Json, flat
from models.voices import Line, Voice, script, script_called
from prompts.prompt import Prompt

__all__ = ["Answered", "Lane", "ask", "auto_notice", "call_tools", "forget", "resolve", "script"]

G = TypeVar("G", bound=BaseModel)
A = TypeVar("A", bound=BaseModel | str)
T = TypeVar("T")

REPAIRS = 2
SEED = 7
JSON_TOKENS = 1024
TEXT_TOKENS = 4096
MORE = 4
WARMER = 0.3
SHOWN_BACK = 2000
INTERNAL = RunnableConfig(tags=["nostream", "langsmith:nostream"])  # LangGraph 1.2 heeds the first alone

Rule = Callable[[Sequence[BaseMessage]], AIMessage]
Check = Callable[[AIMessage], object]


@dataclass(frozen=True)
class Answered(Generic[A]):
    """An answer, who gave it, and what it cost."""

    value: A
    responder: str
    attempts: int
    prompt_tokens: int = 0
    reply_tokens: int = 0
    message_id: str = ""


@dataclass
class Tally:
    """What the attempts at one answer cost so far."""

    attempts: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0
    message_id: str = ""

    def add(self, message: AIMessage) -> None:
        used = message.usage_metadata
        self.prompt_tokens += used["input_tokens"] if used else 0
        self.reply_tokens += used["output_tokens"] if used else 0
        self.message_id = message.id or ""


@dataclass(frozen=True)
class Asking(Generic[T]):
    """One question on its way to a model: the words, what is wished, and what makes a reply acceptable."""

    name: str
    words: Words
    wish: Wish
    accept: Callable[[AIMessage], T]
    lane: Lane
    shown: bool
    again: str
    tally: Tally = field(default_factory=Tally)


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
    responder = await resolve(who)
    tally = Tally()

    async def answer(run: RunnableConfig) -> A:
        if responder == "rules" or responder.startswith("scripted:"):
            return await _prepared(prompt, given, responder, lane, run, tally)
        asking = _asking(prompt, given, history, lane, tally)
        return await _repaired(model_of(responder), responder, asking, run)

    value = await _traced(prompt.name, responder, given, answer, tally, config)
    cost = (tally.attempts, tally.prompt_tokens, tally.reply_tokens, tally.message_id)
    return Answered(value, responder, *cost)


async def call_tools(  # noqa: PLR0913  (the interface of every node)
    system: str,
    messages: Sequence[BaseMessage],
    tools: Sequence[BaseTool],
    who: str,
    *,
    rule: Rule,
    check: Check = lambda _: None,
    lane: Lane = "background",
    name: str = "call_tools",
    config: RunnableConfig | None = None,
) -> AIMessage:
    """Return one turn of a model that may call tools: known ones, with valid arguments, none twice.

    `check` raises `ValueError` with a sentence that a model can act on, where a turn does not hold.
    `messages` end with what the model is to react to; of them only those before the last human
    message may be dropped. `rule` answers for `rules`. Nothing of the turn streams.
    Raises `BadAnswer` when every repair failed, `ModelUnavailable` where the model has no tools.
    """
    responder = await resolve(who)
    tally = Tally()

    async def answer(run: RunnableConfig) -> AIMessage:
        tally.attempts = 1
        if responder == "rules" or responder.startswith("scripted:"):
            turn = rule(messages) if responder == "rules" else _as_message(_line(responder, name))
            return _believed(responder, name, _without_repeats(turn, messages), check)
        asking = _tool_asking(name, system, messages, tools, check, lane, tally)
        return await _repaired(model_of(responder), responder, asking, run)

    return await _traced(name, responder, list(messages), answer, tally, config)


async def _prepared(  # noqa: PLR0913, PLR0917  (the parts of one ask)
    prompt: Prompt[G, A], given: G, responder: str, lane: Lane, run: RunnableConfig, tally: Tally
) -> A:
    """Return the rule's or the script's answer; text is said word by word."""
    tally.attempts = 1
    answer = prompt.rule(given) if responder == "rules" else _scripted(prompt, responder)
    try:
        prompt.verify(given, answer)
    except ValueError as error:
        raise BadAnswer(f"{responder} answered {prompt.name} wrongly: {error}", str(answer)) from error
    if isinstance(answer, str):
        message = await Voice(text=answer).ainvoke([], _child(run, responder, 1, lane == "user"))
        tally.message_id = message.id or ""
    return answer


def _scripted(prompt: Prompt[G, A], responder: str) -> A:
    line = _line(responder, prompt.name)
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


def _line(responder: str, name: str) -> Line:
    return script_called(responder.partition(":")[2]).next(name)


def _as_message(line: Line) -> AIMessage:
    return line if isinstance(line, AIMessage) else AIMessage(str(line))


def _asking(
    prompt: Prompt[G, A], given: G, history: Sequence[BaseMessage], lane: Lane, tally: Tally
) -> Asking[A]:
    system, user = prompt.wording(given)
    free = prompt.answer is str
    wish = (
        Wish(TEXT_TOKENS, 0.7, SEED, spoken=True)
        if free
        else Wish(JSON_TOKENS, 0.0, SEED, schema=flat(cast(type[BaseModel], prompt.answer)))
    )
    return Asking(
        prompt.name,
        Words(system, history, [HumanMessage(user)]),
        wish,
        lambda message: _accepted(prompt, given, message),
        lane,
        free and lane == "user",
        "Answer again." if free else "Reply again, with the corrected JSON object only.",
        tally,
    )


def _accepted(prompt: Prompt[G, A], given: G, message: AIMessage) -> A:
    """Return the answer that a reply holds; raise `Unusable` with the reason it holds none."""
    raw = _complete(message)
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


def _complete(message: AIMessage) -> str:
    """Return the text of a reply that its model ended by itself; look before parsing anything."""
    raw = str(message.text)
    reason = message.response_metadata.get("done_reason") or message.response_metadata.get("finish_reason")
    if reason in {"length", "max_tokens"}:
        raise CutShort("The reply was cut off at its limit of tokens.", raw)
    return raw


async def _repaired(model: Model, responder: str, asking: Asking[T], run: RunnableConfig) -> T:
    """Return the first acceptable reply; after each other one, ask again in a way that may help."""
    failure = Unusable("It was never asked.")
    words, wish = asking.words, asking.wish
    for attempt in range(1, REPAIRS + 2):
        asking.tally.attempts = attempt
        try:
            message = await model.say(words, wish, asking.lane, _child(run, responder, attempt, asking.shown))
            asking.tally.add(message)
            return asking.accept(message)
        except Unusable as unusable:
            failure = unusable
        except PromptTooLong:
            if words is asking.words:
                raise
            words = asking.words  # there is no room to show what was wrong
            continue
        words, wish = _mended(asking, failure), _varied(asking.wish, wish, failure, attempt)
    raise BadAnswer(
        f"{responder} gave no usable answer to {asking.name} in {asking.tally.attempts} attempts: {failure}",
        failure.raw,
        "Choose a stronger model for this role, or `rules`.",
    ) from failure


def _mended(asking: Asking[T], failure: Unusable) -> Words:
    """Show the model what was wrong, where seeing it can help."""
    if isinstance(failure, CutShort | Endless | Leaked) or not failure.raw.strip():
        return asking.words
    complaint = HumanMessage(f"That reply cannot be used. {failure} {asking.again}")
    shown = AIMessage(failure.raw[:SHOWN_BACK])
    return replace(asking.words, task=[*asking.words.task, shown, complaint])


def _varied(first: Wish, last: Wish, failure: Unusable, attempt: int) -> Wish:
    """Draw the next reply in another way, with more room where the last one was cut."""
    more = MORE if isinstance(failure, CutShort) else 1
    return replace(
        last,
        num_predict=last.num_predict * more,
        temperature=first.temperature + WARMER * attempt,
        seed=first.seed + attempt,
    )


def _child(run: RunnableConfig, responder: str, attempt: int, shown: bool) -> RunnableConfig:
    """Return the config of one attempt; tokens that are not for the chat stay out of it."""
    mark = RunnableConfig(run_name=responder, metadata={"attempt": attempt})
    return merge_configs(run, mark) if shown else merge_configs(run, mark, INTERNAL)


def _tool_asking(  # noqa: PLR0913, PLR0917  (the parts of one ask)
    name: str,
    system: str,
    messages: Sequence[BaseMessage],
    tools: Sequence[BaseTool],
    check: Check,
    lane: Lane,
    tally: Tally,
) -> Asking[AIMessage]:
    by_name = {tool.name: tool for tool in tools}

    def accept(message: AIMessage) -> AIMessage:
        turn = _without_repeats(_checked_calls(message, by_name), messages)
        try:
            check(turn)
        except ValueError as error:
            raise Unusable(str(error), _complete(message) or str(turn.tool_calls)) from error
        return turn

    at = max((i for i, m in enumerate(messages) if isinstance(m, HumanMessage)), default=0)
    return Asking(
        name,
        Words(system, messages[:at], messages[at:]),
        Wish(JSON_TOKENS, 0.0, SEED, tools=tuple(map(_described, tools))),
        accept,
        lane,
        False,
        "Call a tool again, or answer in plain words.",
        tally,
    )


def _believed(responder: str, name: str, turn: AIMessage, check: Check) -> AIMessage:
    """Return the turn of a rule or a script, which are not asked again."""
    try:
        check(turn)
    except ValueError as error:
        raise BadAnswer(f"{responder} answered {name} wrongly: {error}", str(turn.tool_calls)) from error
    return turn


def _described(tool: BaseTool) -> Json:
    """Describe a tool with a flat schema of its arguments; Ollama loses anything deeper."""
    parameters = flat(_arguments(tool))
    function = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return {"type": "function", "function": function}


def _arguments(tool: BaseTool) -> type[BaseModel]:
    return cast(type[BaseModel], tool.tool_call_schema)


def _checked_calls(message: AIMessage, tools: dict[str, BaseTool]) -> AIMessage:
    """Return a turn whose tool calls are known and valid; those written as text are made real."""
    text = _complete(message)
    spelled = [] if message.tool_calls else calls_in(text)
    calls = [(call["name"], call["args"], call["id"]) for call in message.tool_calls]
    calls += [(name, args, f"spelled-{number}") for number, (name, args) in enumerate(spelled)]
    said = "" if spelled else without_thought(text)
    if not calls and not said:
        raise Unusable("The reply is empty.", text)
    checked = [
        {"name": name, "args": _valid(name, args, tools, text), "id": call_id, "type": "tool_call"}
        for name, args, call_id in calls
    ]
    return message.model_copy(update={"content": said, "tool_calls": checked})


def _valid(name: str, args: Json, tools: dict[str, BaseTool], text: str) -> Json:
    spelled = text or f"{name}({args})"
    if name not in tools:
        raise Unusable(f"There is no tool {name!r}; there are: {', '.join(tools)}.", spelled)
    schema = _arguments(tools[name])
    missing = [field for field in flat(schema).get("required", ()) if field not in args]
    if missing:
        raise Unusable(f"The call of {name} lacks: {', '.join(missing)}.", spelled)
    try:
        return schema.model_validate(args).model_dump(mode="json")
    except ValidationError as error:
        raise Unusable(f"The call of {name} is invalid: {error}", spelled) from error


def _without_repeats(message: AIMessage, messages: Sequence[BaseMessage]) -> AIMessage:
    """Drop calls that were made before with the same arguments: the second time ends the circle."""
    made = [(c["name"], c["args"]) for m in messages if isinstance(m, AIMessage) for c in m.tool_calls]
    kept = []
    for call in message.tool_calls:
        if (call["name"], call["args"]) not in made:
            made.append((call["name"], call["args"]))
            kept.append(call)
    return message.model_copy(update={"tool_calls": kept})


async def _traced(  # noqa: PLR0913, PLR0917  (the parts of one run)
    name: str,
    responder: str,
    given: object,
    work: Callable[[RunnableConfig], Awaitable[T]],
    tally: Tally,
    config: RunnableConfig | None,
) -> T:
    """Do the work as one run named after its prompt, tagged with who answers, with the attempts counted."""

    async def run(_: object, run_manager: AsyncCallbackManagerForChainRun, config: RunnableConfig) -> T:
        try:
            return await work(config)
        finally:
            _note(run_manager, tally.attempts)

    marks = RunnableConfig(run_name=name, tags=[responder], metadata={"responder": responder})
    return await RunnableLambda(run).ainvoke(given, merge_configs(ensure_config(config), marks))


def _note(run: AsyncCallbackManagerForChainRun, attempts: int) -> None:
    """Write the attempt count into the run, which LangSmith receives when the run ends."""
    for handler in run.handlers:
        if isinstance(handler, BaseTracer) and (traced := handler.run_map.get(str(run.run_id))):
            traced.add_metadata({"attempts": attempts})
