"""Operations that a model may use as tools, and their descriptions for the model.

Parameters and their bounds are those of the declared operations. `offers.yaml` has the differences for a
model: the name, a description that says when to use it, smaller limits, and the form of the result.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import httpx
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from mneme.api.inbox import MAX_MESSAGE_CHARS, ChatMessage
from mneme.api.operation import Operation, Operations, complaint
from mneme.client.memory import OPERATIONS
from mneme.core.errors import BadInput, Conflict, LedgerInUse, MnemeError, NotFound
from mneme.integrations import results
from mneme.integrations.results import MAX_LISTED_ITEMS, bounded, short

FAILURES = (MnemeError, httpx.HTTPError, OSError)
"""Errors that a model is told; any other is a fault of Mneme."""
WAIT_SECONDS = 20.0
"""Seconds that a model waits for the memory agent, which then continues in the background."""

FewAtMost = Annotated[int, Field(ge=1, le=MAX_LISTED_ITEMS, description="How many at most.")]
Text = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_MESSAGE_CHARS,
        description="What the user said, in the user's words, in the first person.",
        examples=["I moved from Oslo to Bergen in May."],
    ),
]
TEXT_ARGUMENT = "text"
"""Name of the argument by which a model gives text instead of messages."""
NEXT: Mapping[type[MnemeError], str] = {
    NotFound: "Search or list again to get what is there now.",
    Conflict: "Something changed meanwhile: look again, then decide whether it is still right.",
    LedgerInUse: "Try again in some seconds.",
}
"""Hints about errors for a model; an error's own hint addresses a person at a command line."""


OPERATION_CLASSES: Mapping[str, type[Operations]] = {each.__name__: each for each in OPERATIONS.values()}


@dataclass(frozen=True)
class Offer:
    """An operation as a tool for a model, as `offers.yaml` has it."""

    name: str
    title: str
    operation_name: str
    """The class and the operation."""
    description: str
    told: Callable[[Any], list[str]]
    """Renders a result as lines of text."""
    takes: Mapping[str, int | None] = field(default_factory=dict)
    """The parameters that a model gives, as declared; a number replaces the default."""
    is_destructive: bool = False
    is_idempotent: bool = False

    @property
    def kind(self) -> type[Operations]:
        return OPERATION_CLASSES[self.operation_name.partition(".")[0]]

    @property
    def operation(self) -> Operation:
        return self.kind.OFFERED[self.operation_name.partition(".")[2]]

    @cached_property
    def arguments(self) -> type[BaseModel]:
        """The type of what the model gives."""
        fields: dict[str, Any] = {}
        for name, other in self.takes.items():
            declared = (FewAtMost, other) if other else self.operation.fields.get(name)
            fields[name] = declared or (Text, ...)  # no operation has it: a model gives text, not messages
        model: type[BaseModel] = create_model(self.name, __config__=ConfigDict(extra="forbid"), **fields)
        return model

    def data(self, result: Any) -> dict[str, Any]:
        """Return a result as plain data without empty fields, with long texts and lists cut.

        Some clients show a model this in place of the text.
        """
        return {"result": bounded(self.operation.returns.dump_python(result, mode="json"))}

    def checked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Check a model's arguments and return those of the operation. Raises BadInput naming the field."""
        try:
            read = self.arguments.model_validate(dict(given))
        except ValidationError as error:
            wrong = [complaint(each["loc"], each["msg"]) for each in error.errors()]
            raise BadInput(f"{self.name} cannot use this: {'; '.join(wrong)}.", "Correct it.") from error
        taken = {name: getattr(read, name) for name in self.takes}
        if TEXT_ARGUMENT not in taken:
            return taken
        return {"messages": [ChatMessage(role="user", content=taken[TEXT_ARGUMENT])], "seconds": WAIT_SECONDS}

    async def call(self, operations: Operations, given: Mapping[str, Any], memory_agent: str) -> Any:
        """Execute the operation, and return its typed result. Raises MnemeError."""
        more = {"memory_agent": memory_agent} if "memory_agent" in self.operation.parameters else {}
        return await getattr(operations, self.operation.name)(**self.checked(given), **more)


def error_text(error: BaseException) -> str:
    """Return an error as a text that a model can act on."""
    if not isinstance(error, MnemeError):
        return f"The memory cannot be reached ({type(error).__name__}). Go on without it, and say so."
    return short(f"{error} {NEXT.get(type(error), error.hint)}")


OFFERS = tuple(
    Offer(name, operation_name=given.pop("operation"), told=getattr(results, given.pop("told")), **given)
    for name, given in yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")).items()
)
"""All tools, in the order in which a model sees them."""
MCP_TOOLS = (
    "search_memories", "recall", "add_memory", "update_memory", "forget_memory", "memory_history",
)  # fmt: skip
"""Default tools of an MCP client: each tool takes room in its model's context."""
AGENT_TOOLS = ("search_memories", "remember")
"""Default tools of a LangChain agent."""
ALL_TOOLS = "all"


def chosen(names: Collection[str]) -> tuple[Offer, ...]:
    """Return the tools of these names, or all for `ALL_TOOLS`. Raises BadInput for another name."""
    known = [each.name for each in OFFERS]
    if unknown := sorted({*names} - {*known, ALL_TOOLS}):
        raise BadInput(
            f"There is no tool {', '.join(unknown)}.", f"Tools: {', '.join(known)}; or {ALL_TOOLS}."
        )
    return tuple(each for each in OFFERS if ALL_TOOLS in names or each.name in names)  # in our order
