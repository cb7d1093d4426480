"""A person's answer to an interrupt, in whichever form a client sends it.

- Our own form: the fields that the interrupt's `response_schema` names, or the words of the first one.
- agent-inbox: `[{"type": "accept" | "edit" | "response" | "ignore", "args": …}]`; where the question has
  `action_requests`, as ours have, the same in `decisions`, `accept` being called `approve` and a response
  `reject`. What was edited is in `args`, each changed value as a text.
- agent-chat-ui, and LangChain's human-in-the-loop middleware: `{"decisions": [{"type": "approve" | "edit" |
  "reject" | "respond", "edited_action": {"name": …, "args": …}, "message": …}]}`.
"""

import json
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ValidationError

from mneme.core.errors import BadInput, first_fault

Kind = Literal["accept", "edit", "reject", "respond", "ignore"]
ANSWER_TYPES: dict[str, Kind] = {each: each for each in get_args(Kind)}
ANSWER_TYPES |= {"approve": "accept", "response": "respond"}


class PersonAnswer(NamedTuple):
    """A person's answer in the form of agent-inbox or agent-chat-ui: what was done, and with what."""

    kind: Kind
    args: dict[str, Any]
    text: str


Answer = TypeVar("Answer")


def ask_person(question: dict[str, Any], schema: type[BaseModel], read: Callable[[Any], Answer]) -> Answer:
    """Wait for a readable answer; after an unreadable one ask again, with the reason in `wrong`.

    `read` raises BadInput for what it cannot use.
    """
    from langgraph.types import interrupt  # noqa: PLC0415  (slow to import; what only reads an answer needs it not)

    # As a class, the schema would end the run with a validation error where an answer does not fit.
    wrong, form = "", schema.model_json_schema()
    while True:  # a resumed node starts anew; LangGraph gives its interrupts their answers in the same order
        said = interrupt({**question, "wrong": wrong}, response_schema=form)
        try:
            return read(_from_text(said))
        except BadInput as unusable:
            wrong = f"{unusable} {unusable.hint}".strip()


def action(name: str, about: str, proposed: BaseModel, allowed: Sequence[str]) -> dict[str, Any]:
    """Return the parts of a question that both clients show: the action, its arguments, allowed decisions."""
    args = proposed.model_dump(mode="json", exclude_none=True)  # agent-inbox cannot show None
    schema = type(proposed).model_json_schema()
    return {
        "action_requests": [{"name": name, "args": args, "description": about}],
        "review_configs": [
            {"action_name": name, "allowed_decisions": list(allowed), "args_schema": schema},
        ],
    }


def client_answer(said: Any) -> PersonAnswer | None:
    """Return an answer in a client's form; None for one in our own. Raises BadInput."""
    given = said["decisions"] if isinstance(said, dict) and said.get("decisions") else said
    # A question has one action, so that only the first of several answers can be meant.
    first = given[0] if isinstance(given, list) and given else given
    if not isinstance(first, dict) or "type" not in first:
        return None
    if first["type"] not in ANSWER_TYPES:
        raise BadInput(f"There is no decision {first['type']!r}.", f"There are: {', '.join(ANSWER_TYPES)}.")
    args, kind = first.get("args"), ANSWER_TYPES[first["type"]]
    if kind == "reject" and isinstance(args, str):  # so agent-inbox sends what was written to the agent
        kind = "respond"
    edited = first.get("edited_action") or args
    edited = edited if isinstance(edited, dict) else {}
    text = first.get("message") or (args if isinstance(args, str) else "")
    # Both clients send the edited arguments beside the action's name; other programs send them alone.
    return PersonAnswer(kind, edited.get("args", edited) if kind == "edit" else {}, str(text).strip())


Model = TypeVar("Model", bound=BaseModel)


def read_answer(
    kind: type[Model], said: Any, form: str, fields_of: Callable[[PersonAnswer], dict[str, Any]]
) -> Model:
    """Return an answer in our own form, or in a client's, of which `fields_of` gives the fields.

    Words alone are the first field. Raises BadInput with `form` as its hint.
    """
    given = client_answer(said)
    fields = fields_of(given) if given else said
    if isinstance(fields, str):
        fields = {next(iter(kind.model_fields)): fields}
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise BadInput(first_fault(error, "the answer"), form) from error


def _from_text(said: Any) -> Any:
    """Parse an answer that was typed as JSON into a text field; any other text stays as it is."""
    if not isinstance(said, str):
        return said
    try:
        return json.loads(said)
    except ValueError:
        return said


Item = TypeVar("Item")
Listed = Annotated[list[Item], BeforeValidator(_from_text)]
"""A list, or the text that agent-inbox makes of an edited list."""
