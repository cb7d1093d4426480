"""Let a model call tools: one turn, with known tools, valid arguments, and no call made twice."""

from collections.abc import Awaitable, Callable, Sequence
from typing import cast
from uuid import uuid4

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from pydantic import BaseModel, ValidationError

from mneme.core.errors import BadAnswer
from mneme.models.asking.asking import (
    SEED,
    Answered,
    Question,
    as_one_run,
    ask_with_repairs,
    complete_text,
)
from mneme.models.asking.gate import Lane
from mneme.models.asking.replies import Unusable, calls_in, without_thought
from mneme.models.asking.responders import CallOptions, ModelRequest, prepared, resolve
from mneme.models.asking.schema import Json, flat

Rule = Callable[[Sequence[BaseMessage]], Awaitable[AIMessage]]
Check = Callable[[AIMessage], object]

CALL_TOKENS = 1024


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
    record = Answered[AIMessage](name, await resolve(who))
    prepare = prepared.get(record.responder)
    async with as_one_run(record, list(messages), config) as run:
        if not prepare and record.responder != "rules":
            question = _question(system, messages, tools, check, lane)
            record.value = turn = await ask_with_repairs(question, record, run)
            return turn
        record.attempts = 1
        made = prepare(name, AIMessage) if prepare else await rule(messages)
        record.value = turn = _without_repeats(made, messages)
        try:
            check(turn)
        except ValueError as error:
            wrong = f"{record.responder} answered {name} wrongly: {error}"
            raise BadAnswer(wrong, str(turn.tool_calls)) from error
    return turn


def _question(
    system: str, messages: Sequence[BaseMessage], tools: Sequence[BaseTool], check: Check, lane: Lane
) -> Question[AIMessage]:
    by_name = {tool.name: tool for tool in tools}

    def accept(message: AIMessage) -> AIMessage:
        turn = _without_repeats(_checked_calls(message, by_name), messages)
        try:
            check(turn)
        except ValueError as error:
            raise Unusable(str(error), complete_text(message) or str(turn.tool_calls)) from error
        return turn

    # What the model is to react to: the last human message, and the calls and results after it.
    at = max((i for i, m in enumerate(messages) if isinstance(m, HumanMessage)), default=0)
    return Question(
        ModelRequest(system, messages[:at], messages[at:]),
        CallOptions(CALL_TOKENS, 0.0, SEED, tools=tuple(map(_described, tools))),
        accept,
        lane,
        False,
        "Call a tool again, or answer in plain words.",
    )


def _described(tool: BaseTool) -> Json:
    """Describe a tool to a model, with a flat schema of its arguments."""
    # Ollama's client 0.6 keeps of an argument only type, items, description and enum.
    parameters = flat(cast(type[BaseModel], tool.tool_call_schema))
    function = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return {"type": "function", "function": function}


def _checked_calls(message: AIMessage, tools: dict[str, BaseTool]) -> AIMessage:
    """Return a turn whose tool calls are known and valid; calls written as text become tool calls."""
    text = complete_text(message)
    spelled = [] if message.tool_calls else calls_in(text)  # small models write calls as text
    calls = [(call["name"], call["args"], call["id"]) for call in message.tool_calls]
    calls += [(name, args, uuid4().hex) for name, args in spelled]
    said = "" if spelled else without_thought(text)  # the text of a call is not shown
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
    schema = cast(type[BaseModel], tools[name].tool_call_schema)
    # `flat` requires fields with a default too, which a call may leave out.
    demanded = [field for field, about in schema.model_fields.items() if about.is_required()]
    missing = [field for field in flat(schema).get("required", ()) if field in demanded and field not in args]
    if missing:
        raise Unusable(f"The call of {name} lacks: {', '.join(missing)}.", spelled)
    try:
        return schema.model_validate(args).model_dump(mode="json")
    except ValidationError as error:
        raise Unusable(f"The call of {name} is invalid: {error}", spelled) from error


def _without_repeats(message: AIMessage, messages: Sequence[BaseMessage]) -> AIMessage:
    """Drop calls that were made before with the same arguments."""
    # Else a small model repeats one call until its last turn.
    made = [(c["name"], c["args"]) for m in messages if isinstance(m, AIMessage) for c in m.tool_calls]
    kept = []
    for call in message.tool_calls:
        if (call["name"], call["args"]) not in made:
            made.append((call["name"], call["args"]))
            kept.append(call)
    return message.model_copy(update={"tool_calls": kept})
